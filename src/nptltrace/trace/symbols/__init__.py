"""Names of addresses: symbol tables, debug information, names that a trace carries."""
