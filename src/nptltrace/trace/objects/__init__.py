"""Objects by the events that are about them, found before the tables are read."""
