"""What Python programs assign new objects to, by the lines of their source.

`self.jobs = queue.Queue()` says what the locks of that queue are called in the program. Nothing in
the running program leads from a lock back to that name, so it is read from the source, as long as
that is what the program was started with.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import islice

__all__ = ["targets_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

_LARGE = 4 << 20
_LONG = 500
_MOST = 1000  # of a function
# A statement of one line that assigns what a call returns, and nothing but that.
_CALL = r"[\w.]+(?:\[[\w., \[\]]*\])?\((?:[^()#]|\([^()#]*\))*\)"
_ASSIGNS = re.compile(rf"\s*(?P<to>[A-Za-z_][\w.]*)\s*(?::[^=]+)?=\s*(?P<call>{_CALL})\s*(?:#.*)?$")
_BEGINS = re.compile(r"\s*(?:async\s+)?(?:def|class)\s")


def targets_of(codes: Sequence[Sequence[Any]], pid: int, started_ns: int) -> list[list[Any]]:
    """Return what is assigned in functions, as it stands in `info/processes.jsonl`.

    Args:
        codes: The functions, as `codes_of_log` returns them.
        pid: Their process, through whose root directory the files are looked for.
        started_ns: When it began; a file that has changed since then may say anything.
    """
    sources: dict[str, list[str]] = {}
    found = []
    for number, _, first, path, function, _ in codes:
        if path not in sources:
            sources[path] = _lines(path, pid, started_ns)
        body = _body(sources[path], first, whole=function == "<module>")
        found += [[number, *target] for target in islice(_assigned(body), _MOST)]
    return found


def _assigned(body: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the line of each assignment, to what, and what is called."""
    for line, text in body:
        found = _ASSIGNS.match(text) if len(text) <= _LONG else None
        if found:
            callee = found["call"].partition("(")[0].partition("[")[0]
            yield line, found["to"], callee.rpartition(".")[2]


def _lines(path: str, pid: int, started_ns: int) -> list[str]:
    """Return the lines of a file as it was when a process began; none where that is not known."""
    if not path.startswith("/"):
        return []
    for place in (f"/proc/{pid}/root{path}", path):
        try:
            fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_mtime_ns > started_ns:
                return []
            return os.read(fd, _LARGE).decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        finally:
            os.close(fd)
    return []


def _body(lines: list[str], first: int, *, whole: bool) -> Iterator[tuple[int, str]]:
    """Yield numbers and texts of the lines of a function that begins at a line, or of a module."""
    if not 0 < first <= len(lines):
        return
    if whole:
        yield from enumerate(lines, 1)
        return
    # Decorators come before.
    begin = next((n for n in range(first, len(lines) + 1) if _BEGINS.match(lines[n - 1])), first)
    indent = _indent(lines[begin - 1])
    for number in range(begin + 1, len(lines) + 1):
        text = lines[number - 1]
        if text.strip() and _indent(text) <= indent and text.lstrip()[0] not in ")]}#":
            return
        yield number, text


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
