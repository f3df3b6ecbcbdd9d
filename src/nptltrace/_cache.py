"""The user's cache: directories of files that can be created again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory", "shrink"]

_MOST = 1 << 30  # bytes of a directory


def cache_directory(name: str) -> Path | None:
    """Return a directory of the cache, `~/.cache/nptltrace/NAME` unless XDG says otherwise.

    None for a user who has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(base) if base.startswith("/") else Path.home() / ".cache"
    except RuntimeError:
        return None
    return cache / "nptltrace" / name


def shrink(directory: Path) -> None:
    """Remove the files that were not used for longest, until the rest is small enough.

    Files whose names begin with a dot are being written.
    """
    files = [file for file in directory.iterdir() if not file.name.startswith(".")]
    known = sorted(((f.stat().st_mtime, f.stat().st_size, f) for f in files), reverse=True)
    total = 0
    for _, size, file in known:
        total += size
        if total > _MOST:
            file.unlink(missing_ok=True)
