"""Values that a distribution package fills in. A wheel leaves them empty."""

from __future__ import annotations

__all__ = ["NATIVE_DIR"]

NATIVE_DIR: str = ""
"""Directory of the native files (`lib`, `include`, `share`) if they are outside the package."""
