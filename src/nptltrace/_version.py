"""The version, and the date of its release: wheels and manual pages carry this date."""

__version__ = "0.2.0"
__date__ = "2026-11-29"
