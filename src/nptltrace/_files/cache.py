"""The user's cache: directories of files that can be created again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory", "shrink"]

_SIZE_MAX = 1 << 30  # bytes of a directory


def cache_directory(name: str) -> Path | None:
    """Return a directory of the cache, which may not exist yet.

    Returns:
        `$XDG_CACHE_HOME/nptltrace/NAME`, by default `~/.cache/nptltrace/NAME`; None if the user has
        no home directory. See the XDG Base Directory Specification.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(base) if base.startswith("/") else Path.home() / ".cache"
    except RuntimeError:
        return None
    return cache / "nptltrace" / name


def shrink(directory: Path) -> None:
    """Remove the oldest files by modification time until 1 GiB is left.

    Files with names that begin with a dot are skipped: another process writes them.
    """
    files = [file for file in directory.iterdir() if not file.name.startswith(".")]
    newest_first = sorted(((f.stat().st_mtime, f.stat().st_size, f) for f in files), reverse=True)
    total = 0
    for _, size, file in newest_first:
        total += size
        if total > _SIZE_MAX:
            file.unlink(missing_ok=True)
