"""What the builder of a distribution package fills in; a wheel leaves it empty."""

from __future__ import annotations

__all__ = ["NATIVE_DIR"]

NATIVE_DIR: str = ""
"""Prefix of the native files (holding lib, include, share) when they are not inside the package."""
