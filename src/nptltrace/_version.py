"""Which version this is, and when it was released: the date of what is built of it."""

__version__ = "0.1.0"
__date__ = "2026-11-21"
