"""The names that Python programs give to new objects, read from their source.

`self.jobs = queue.Queue()` gives the locks of the queue a name. A running program has no way from a
lock back to that name, so the name is read from the source, unless the file changed after the
program started.
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

_LARGE = 4 << 20  # bytes of a file
_LONG = 500  # characters of a line
_MOST = 1000  # assignments of a function
_MODULE = "<module>"
# The line ends of the Python compiler.
_NEWLINE = re.compile(r"\r\n|\r|\n")
# A one-line statement that assigns the result of a call to a name or an attribute.
_CALL = r"[\w.]+(?:\[[\w., \[\]]*\])?\((?:[^()#]|\([^()#]*\))*\)"
_ASSIGNS = re.compile(rf"\s*(?P<to>[A-Za-z_][\w.]*)\s*(?::[^=]+)?=\s*(?P<call>{_CALL})\s*(?:#.*)?$")
_BEGINS = re.compile(r"\s*(?:async\s+)?(?:def|class)\s")
_CLASS = re.compile(r"\s*class\s+(\w+)")
# The conventional names of the first parameter of methods.
_OWN = frozenset({"self", "cls"})


def targets_of(codes: Sequence[Sequence[Any]], began_ns: int) -> list[list[Any]]:
    """Return the assignments in functions, in the form of `info/processes.jsonl`.

    The name of an attribute begins with its class; the name of a global begins with its module.

    Args:
        codes: The functions, from `codes_of_log`, of a process with our root directory.
        began_ns: When the process began, in ns since 1970. Files that changed later are not read.
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
    """Yield (line, name, called function) of each assignment in a function."""
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
    """Return the class of a method. Before Python 3.11, code objects have no qualified names."""
    owner = function.rpartition("<locals>.")[2].rpartition(".")[0]
    if owner or "." in function:
        return owner
    indent = _indent(lines[begin - 1])
    around = (text for text in reversed(lines[: begin - 1]) if text.strip())
    outer = next((text for text in around if _indent(text) < indent and _BEGINS.match(text)), "")
    name = _CLASS.match(outer)
    return name[1] if name else ""


def _lines(path: str, began_ns: int) -> list[str]:
    """Return the lines of a file; none if the file changed after the process began."""
    if not path.startswith("/"):
        return []
    try:
        # The program chose the path; an open of a device or a pipe may have effects.
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        status = os.fstat(place)
        changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGE or changed_ns > began_ns:
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
    """Return the line of a function's `def`; decorators are on earlier lines."""
    numbers = range(first, len(lines) + 1)
    return next((n for n in numbers if _BEGINS.match(lines[n - 1])), first)


def _body(lines: list[str], begin: int) -> Iterable[tuple[int, str]]:
    """Yield (number, text) of the lines of the function with its `def` at line `begin`."""
    indent = _indent(lines[begin - 1])
    for number in range(begin + 1, len(lines) + 1):
        text = lines[number - 1]
        if text.strip() and _indent(text) <= indent and text.lstrip()[0] not in ")]}#":
            return
        yield number, text


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
