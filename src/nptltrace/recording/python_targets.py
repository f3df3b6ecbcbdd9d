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
_MODULE = "<module>"
# As the compiler counts lines.
_NEWLINE = re.compile(r"\r\n|\r|\n")
# A statement of one line that assigns what a call returns, and nothing but that.
_CALL = r"[\w.]+(?:\[[\w., \[\]]*\])?\((?:[^()#]|\([^()#]*\))*\)"
_ASSIGNS = re.compile(rf"\s*(?P<to>[A-Za-z_][\w.]*)\s*(?::[^=]+)?=\s*(?P<call>{_CALL})\s*(?:#.*)?$")
_BEGINS = re.compile(r"\s*(?:async\s+)?(?:def|class)\s")
_CLASS = re.compile(r"\s*class\s+(\w+)")
# What methods call the object that they belong to, or its class.
_OWN = frozenset({"self", "cls"})


def targets_of(codes: Sequence[Sequence[Any]], began_ns: int) -> list[list[Any]]:
    """Return what is assigned in functions, as it stands in `info/processes.jsonl`.

    Attributes have their class in front, and what a module assigns has the module.

    Args:
        codes: The functions, as `codes_of_log` returns them, of a process with our root directory.
        began_ns: When it began; a file that has changed since then may say anything.
    """
    sources: dict[str, list[str]] = {}
    targets = []
    for number, _, first, path, function, _ in codes:
        if path not in sources:
            sources[path] = _lines(path, began_ns)
        if 0 < first <= len(sources[path]):
            assigned = islice(_assigned(sources[path], first, path, function), _MOST)
            targets += [[number, *target] for target in assigned]
    return targets


def _assigned(
    lines: list[str], first: int, path: str, function: str
) -> Iterator[tuple[int, str, str]]:
    """Yield the line of each assignment in a function, to what, and what is called."""
    begin = first if function == _MODULE else _def_line(lines, first)
    owner = _module(path) if function == _MODULE else _class(lines, begin, function)
    body = enumerate(lines, 1) if function == _MODULE else _body(lines, begin)
    for line, text in body:
        assignment = _ASSIGNS.match(text) if len(text) <= _LONG else None
        if assignment:
            callee = assignment["call"].partition("(")[0].partition("[")[0]
            yield line, _target(assignment["to"], owner, function), callee.rpartition(".")[2]


def _target(to: str, owner: str, function: str) -> str:
    if function == _MODULE:
        return f"{owner}.{to}"
    of, _, attribute = to.partition(".")
    return f"{owner}.{attribute}" if of in _OWN and attribute and owner else to


def _module(path: str) -> str:
    directory, _, name = path.rpartition("/")
    stem = name.removesuffix(".py")
    return directory.rpartition("/")[2] if stem == "__init__" else stem


def _class(lines: list[str], begin: int, function: str) -> str:
    """Return the class of a method; before Python 3.11 its name does not say it."""
    owner = function.rpartition("<locals>.")[2].rpartition(".")[0]
    if owner or "." in function:
        return owner
    indent = _indent(lines[begin - 1])
    around = (text for text in reversed(lines[: begin - 1]) if text.strip())
    outer = next((text for text in around if _indent(text) < indent and _BEGINS.match(text)), "")
    name = _CLASS.match(outer)
    return name[1] if name else ""


def _lines(path: str, began_ns: int) -> list[str]:
    """Return the lines of a file as it was when a process began; none where that is not known."""
    if not path.startswith("/"):
        return []
    try:
        # A program may name what has effects when it is opened.
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        about = os.fstat(place)
        changed_ns = max(about.st_mtime_ns, about.st_ctime_ns)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGE or changed_ns > began_ns:
            return []
        file = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _NEWLINE.split(os.read(file, _LARGE).decode("utf-8", "replace"))
        finally:
            os.close(file)
    except OSError:
        return []
    finally:
        os.close(place)


def _def_line(lines: list[str], first: int) -> int:
    """Return the line of a function's `def`; decorators come before."""
    numbers = range(first, len(lines) + 1)
    return next((n for n in numbers if _BEGINS.match(lines[n - 1])), first)


def _body(lines: list[str], begin: int) -> Iterable[tuple[int, str]]:
    """Yield numbers and texts of the lines of a function whose `def` is at a line."""
    indent = _indent(lines[begin - 1])
    for number in range(begin + 1, len(lines) + 1):
        text = lines[number - 1]
        if text.strip() and _indent(text) <= indent and text.lstrip()[0] not in ")]}#":
            return
        yield number, text


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
