"""Tells which files are a program's own: files that are built, not installed by a package."""

from __future__ import annotations

import json

from nptltrace._files.whole import read_whole
from nptltrace._paths import native_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["has_own_files", "is_own_file"]

_INSTALLED = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/nix/", "/gnu/", "/snap/", "[")
_BUILT_HERE = "/usr/local/"


def is_own_file(path: str) -> bool:
    """Return whether a file may be rebuilt at any time."""
    installed = path.startswith(_INSTALLED) and not path.startswith(_BUILT_HERE)
    # Frames of the tracer and of handlers are never shown.
    return not installed and not path.startswith(f"{native_dir()}/")


def has_own_files(trace: Path) -> bool:
    """Return whether a process of a trace has such a file mapped.

    `ptt record` asks this at the end of each recording, so this module imports little.
    """
    try:
        text = read_whole(trace / "info" / "processes.jsonl").decode("utf-8", "replace")
    except OSError:
        return False
    lines = text.splitlines()
    return any(is_own_file(path) for line in lines for path in _paths(line))


def _paths(line: str) -> list[str]:
    """Return the paths of the modules in a line; nothing for a damaged line."""
    try:
        modules = json.loads(line).get("modules", {}).get("modules", ())
        return [str(module["path"]) for module in modules]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
