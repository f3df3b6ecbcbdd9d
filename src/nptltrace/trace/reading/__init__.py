"""How events are read: columns, batches, several processors, recordings that go on."""
