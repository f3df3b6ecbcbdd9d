"""Which files of a program are its own: those that are built anew, and no package installed."""

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
    """Return whether a file may be built anew at any time."""
    installed = path.startswith(_INSTALLED) and not path.startswith(_BUILT_HERE)
    # frames of the tracer and of handlers are shown to nobody
    return not installed and not path.startswith(f"{native_dir()}/")


def has_own_files(trace: Path) -> bool:
    """Return whether calls in a trace come from such a file.

    `ptt record` asks at the end of each recording; so nothing is loaded for it.
    """
    try:
        text = read_whole(trace / "info" / "processes.jsonl").decode("utf-8", "replace")
    except OSError:
        return False
    lines = text.splitlines()
    return any(is_own_file(path) for line in lines for path in _paths(line))


def _paths(line: str) -> list[str]:
    """Return the paths of the modules in a line; none of a line that makes no sense."""
    try:
        found = json.loads(line).get("modules", {}).get("modules", ())
        return [str(module["path"]) for module in found]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
