"""The kinds of findings: PTT's own kinds, and kinds that users add."""

from __future__ import annotations

import inspect
import marshal
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError
from nptltrace.findings.facts import Severity
from nptltrace.scripts import installed, run_script

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from types import CodeType
    from typing import Any

    from nptltrace.findings.facts import Found, Trace

__all__ = ["Kind", "digest", "finding", "kinds", "load", "load_installed"]

_HERE = Path(__file__).parent
_GROUP = "nptltrace.findings"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding.

    Attributes:
        name: Name in JSON and after `--kind`.
        severity: `error` for a bug that has done harm, `warning` for a pattern that has not yet.
        find: Yields the findings of a trace.
        file: Path of the file with the kind's function.
        line: Line of the function.
        tables: Whether it may read tables. For tables, the events are read once more.
        group: Folder of a kind of PTT; empty for a kind of a user.
    """

    name: str
    severity: Severity
    find: Callable[[Trace], Iterable[Found]]
    file: str
    line: int
    tables: bool
    group: str

    @property
    def text(self) -> str:
        """The documentation of the kind, as Markdown."""
        return inspect.cleandoc(self.find.__doc__ or "")


# By name; kinds of PTT first.
_KINDS: dict[str, Kind] = {}


def finding(
    name: str, *, severity: Severity, tables: bool = False
) -> Callable[[Callable[[Trace], Iterable[Found]]], Callable[[Trace], Iterable[Found]]]:
    """Make a kind of finding from a function that reads a trace and yields findings.

    The function's docstring is the kind's documentation.

    Args:
        name: Name of the kind: lower-case words with hyphens between them.
        severity: `error` for a bug that has done harm, `warning` for a pattern that has not yet. A
            `Found` may have another severity.
        tables: Whether the function reads tables. For tables, the events are read once more. So
            such a kind runs less often while PTT follows a recording. Kinds of users may always
            read tables.

    Raises:
        UsageError: There is a kind with this name, or the arguments or the function are wrong.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(f"@finding: {name!r} must be lower-case words with hyphens")
    if severity not in get_args(Severity):
        raise UsageError(f"@finding: severity is 'error' or 'warning', not {severity!r}")

    def add(function: Callable[[Trace], Iterable[Found]]) -> Callable[[Trace], Iterable[Found]]:
        code = _code(function)
        if not function.__doc__:
            raise UsageError(
                f"@finding: {function.__name__} needs a docstring that says what it is"
            )
        path = Path(code.co_filename)
        built_in = path.is_relative_to(_HERE)
        known = _KINDS.get(name)
        if known is not None and known.file != str(path):
            raise UsageError(f"@finding: there is a kind {name!r} already")
        _KINDS[name] = Kind(
            name=name,
            severity=severity,
            find=function,
            file=str(path),
            line=code.co_firstlineno,
            tables=tables or not built_in,
            group=path.parent.name if built_in else "",
        )
        return function

    return add


def kinds() -> dict[str, Kind]:
    """Return all kinds by name, PTT's own kinds first."""
    for path in sorted(_HERE.glob("*/[a-z]*.py")):
        import_module(f"{__package__}.{path.parent.name}.{path.stem}")
    return dict(sorted(_KINDS.items(), key=lambda item: not item[1].group))


def load(path: str | os.PathLike[str]) -> None:
    """Add the kinds of a file of rules. They replace the kinds of an earlier load of the file.

    Args:
        path: A Python file with functions that have the decorator `finding`.

    Raises:
        UsageError: The file cannot be read or run, or has no kind of finding.
    """
    kinds()
    for name in [name for name, kind in _KINDS.items() if kind.file == str(path)]:
        del _KINDS[name]
    run_script(path)
    if not any(kind.file == str(path) for kind in _KINDS.values()):
        raise UsageError(f"{path}: has no function with the decorator @finding")


def _code(function: Any) -> CodeType:
    """Return the code of a function inside its decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code: CodeType = function.__code__
    return code


@cache
def load_installed() -> list[str]:
    """Add the kinds of installed packages; return the errors of packages that failed."""
    kinds()
    return installed(_GROUP)


def digest() -> str:
    """Return a text that changes whenever the kinds of users change."""
    load_installed()
    import hashlib

    sums = hashlib.sha256()
    for kind in kinds().values():
        if not kind.group:
            try:
                text = Path(kind.file).read_bytes()
            except OSError:  # of a notebook
                text = marshal.dumps(_code(kind.find), 2)
            sums.update(f"{kind.name} {kind.severity} {len(text)} ".encode() + text)
    return sums.hexdigest()
