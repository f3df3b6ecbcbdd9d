"""The recorded programs of the export tests, and the expected contents of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "NAMES", "PROGRAMS", "WEIRD", "aliases", "holds", "known", "owners", "stacks", "waits",
    "wakeups",
]  # fmt: skip

# Programs of tests/programs, and hostile.c beside this file.
PROGRAMS = ("contention", "mix", "hostile")

# Names that threads may have: any 15 bytes.
NAMES = ("\"q\\u'o<t>&", "a\nb\tc\rd", "%EndEventDef", "]}},{{[", "\u00e9\u4e2d")
# A name that users may give a lock.
WEIRD = 'g"\\ <b>%s</b> {}, 9 0.1 ' + "long" * 2000


def aliases(directory: Path) -> Path:
    """Return a file that gives the lock of the hostile program a name."""
    path = directory / "aliases"
    path.write_text(f"weird {WEIRD}\n")
    return path


def known() -> set[str]:
    """Return the names of all columns of tables and of all keys of JSON documents."""
    from nptltrace.analysis.sql.schema import TABLES
    from nptltrace.analysis.vocabulary.meanings import NAMES as MEANINGS

    return {field.name for table in TABLES.values() for field in table.schema()} | set(MEANINGS)


def _tables(trace: Path) -> Any:
    from nptltrace.analysis.model import model_tables
    from nptltrace.api import Traceset

    return model_tables(Traceset(trace))


def waits(trace: Path) -> list[tuple[int, int, int, int, str]]:
    """Return id, thread, beginning, duration and class of every wait."""
    table = _tables(trace).waits
    columns = [table[name].to_pylist() for name in ("wait_id", "tid", "t_ns", "dur_ns", "class")]
    return sorted(zip(*columns, strict=True))


def wakeups(trace: Path) -> list[tuple[int, int, int, int, int]]:
    """Return the wait, the waker, the woken thread and both times of every wake-up."""
    table = _tables(trace).wakeups
    names = ("wait_id", "waker_tid", "wakee_tid", "t_ns", "woken_ns")
    return sorted(zip(*[table[name].to_pylist() for name in names], strict=True))


def holds(trace: Path) -> list[tuple[int, int, int]]:
    """Return thread, beginning and duration of every hold."""
    table = _tables(trace).holds
    columns = [table[name].to_pylist() for name in ("tid", "t_ns", "dur_ns")]
    return sorted(zip(*columns, strict=True))


def owners(trace: Path) -> set[tuple[int, int]]:
    """Return the wait and the owner of each contended wait for an object that a thread has."""
    return {
        (row["wait_id"], row["owner_tid"])
        for row in _tables(trace).waits.to_pylist()
        if row["owner_tid"] not in {None, row["tid"]} and row["class"] == "contended"
    }


def stacks(trace: Path) -> dict[int, tuple[list[str], list[str]]]:
    """Return the call stacks of waits, by number of the wait: the waiter's, the owner's."""
    from nptltrace.api import Traceset
    from nptltrace.trace.code.call_site import stack_sites
    from nptltrace.trace.symbols.frames import stack_texts
    from nptltrace.trace.symbols.lookup import Symbols

    source = Traceset(trace)
    symbols = Symbols(source)
    processes = source.processes

    def texts(process: int | None, number: int, site: int) -> list[str]:
        if process is None or not number:
            return []
        sites = stack_sites(processes[process].stacks, number)
        return stack_texts(symbols, process, sites, site)

    found = {}
    for row in _tables(trace).waits.to_pylist():
        both = (
            texts(row["process"], row["stack"], row["site"]),
            texts(row["owner_process"], row["owner_stack_number"], row["owner_site"]),
        )
        if row["stack"]:
            found[row["wait_id"]] = both
    return found
