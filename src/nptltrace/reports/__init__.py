"""Reports by name: functions that read the tables of a trace and return rows.

    from nptltrace.reports import report

    @report("by-module", title="Contended waits by module")
    def by_module(trace):
        \"\"\"Add up contended waits by the module that asked.\"\"\"
        return trace.sql("select module, count(*) as waits from …")

Each module of this folder has a report of PTT with the name of the module. `ptt report --script
FILE` prints your report as text, JSON or CSV. You need no option for reports of installed packages
with entry points of the group `nptltrace.reports`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError
from nptltrace.scripts import installed, run_script

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from nptltrace.findings.facts import Trace

    Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]

__all__ = ["Report", "built_in", "load", "load_installed", "report", "reports"]

_GROUP = "nptltrace.reports"


@dataclass(frozen=True, slots=True)
class Report:
    """A report.

    Attributes:
        name: Its name, as after `--by`.
        title: The heading of the text output.
        make: Returns the rows: a table, or dictionaries with the same keys.
        file: The file with the function.
    """

    name: str
    title: str
    make: Callable[[Trace], Rows]
    file: str


_REPORTS: dict[str, Report] = {}


def report(
    name: str, *, title: str
) -> Callable[[Callable[[Trace], Rows]], Callable[[Trace], Rows]]:
    """Make a report of a function that reads a trace and returns a table or rows.

    Columns with names that end in `_ns` are durations. The text output shows them with their unit.

    Args:
        name: The name of the report: lower-case words with hyphens between them.
        title: The heading of the text output.

    Raises:
        UsageError: Another report has this name, or the name is wrong.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or name in (
        "object",
        "thread",
        "site",
    ):
        raise UsageError(
            f"@report: {name!r} must be lower-case words with hyphens, and not the name of a "
            "report of PTT"
        )

    def add(make: Callable[[Trace], Rows]) -> Callable[[Trace], Rows]:
        file = make.__code__.co_filename
        known = _REPORTS.get(name)
        if known is not None and known.file != file:
            raise UsageError(f"@report: there is a report {name!r} already")
        _REPORTS[name] = Report(name, title, make, file)
        return make

    return add


def built_in() -> list[str]:
    """Return the names of the reports of PTT itself, without loading them."""
    return sorted(path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[a-z]*.py"))


def reports() -> dict[str, Report]:
    """Return the reports by name, in the order of their addition."""
    return dict(_REPORTS)


def load(path: str | os.PathLike[str]) -> list[str]:
    """Add the reports of a file, and return their names.

    Args:
        path: A Python file with functions that have the decorator `report`.

    Raises:
        UsageError: The file cannot be read or run, or has no report.
    """
    load_installed()
    for name in [name for name, known in _REPORTS.items() if known.file == str(path)]:
        del _REPORTS[name]
    run_script(path)
    names = [name for name, known in _REPORTS.items() if known.file == str(path)]
    if not names:
        raise UsageError(f"{path}: has no function with the decorator @report")
    return names


@cache
def load_installed() -> list[str]:
    """Add the reports of PTT and of installed packages; return the errors of packages that fail."""
    for name in built_in():
        import_module(f"{__name__}.{name.replace('-', '_')}")
    return installed(_GROUP)
