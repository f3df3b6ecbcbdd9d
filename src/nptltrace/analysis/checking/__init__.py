"""The checker of a traceset's events: its facts with names, and cycles of lock orders."""
