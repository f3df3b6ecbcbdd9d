"""Finds objects by their events, before the tables are read."""
