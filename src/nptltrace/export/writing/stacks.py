"""Parts of the formats with call stacks: waits, holds or idle time of each stack, with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nptltrace._dataclasses import dataclass
from nptltrace._units import plural
from nptltrace.analysis.report.stacks.sums import TITLES, stack_sums
from nptltrace.analysis.stack_names import UNKNOWN, Frames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.analysis.stack_names import Frame

__all__ = ["OPTIONS", "Numbers", "Sample", "modules", "object_labels", "samples", "summary"]

Key = TypeVar("Key")

# The options of all formats with stacks.
OPTIONS = ("show",)


@dataclass(frozen=True, slots=True)
class Sample:
    """The waits, holds or idle waits at one stack for one object.

    Attributes:
        frames: The frames from the call site on, the innermost first; never empty.
        object: The object, as `mutex g_lock`; empty if it is not known.
        count: The number of waits or holds.
        ns: Their time, in ns.
    """

    frames: tuple[Frame, ...]
    object: str
    count: int
    ns: int


def samples(tables: TraceTables, shown: StackMeasure) -> list[Sample]:
    """Return the samples, the longest first."""
    beside = {"objects": tables.empty("objects")}
    sums = stack_sums(tables, shown, ("lock_id",), beside)
    labels = object_labels(beside["objects"].to_pylist())
    stacks = Frames(tables)
    return [
        Sample(stacks.of(row["stack_id"], row.get("doing")) or (UNKNOWN,),
               labels.get(row["lock_id"], ""), row["count"], row["ns"])
        for row in sums.to_pylist()
    ]  # fmt: skip


def object_labels(rows: Iterable[dict[str, object]]) -> dict[object, str]:
    """Return labels of objects, as `mutex g_lock`, by their numbers in the table `objects`."""
    return {row["lock_id"]: f"{row['kind']} {row['name']}" for row in rows}


def summary(written: list[Sample], shown: StackMeasure) -> str:
    """Return a short text about the written samples."""
    n = len({sample.frames for sample in written})
    ns = sum(sample.ns for sample in written)
    return f"{n:,} {plural(n, 'stack')} of {TITLES[shown]}: {ns / 1e9:.6g} s"


def modules(tables: TraceTables) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of the table `modules`, by name and build-id as in frames."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tables.table("modules").to_pylist():
        rows.setdefault((row["name"], row["build_id"]), row)
    return rows


class Numbers(dict[Key, int]):
    """Numbers keys in the order of their first use: strings, functions or frames of a file.

    Args:
        first: The number of the first key.
    """

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: Key) -> int:
        """Give a new key the next number."""
        number = self[key] = self._first + len(self)
        return number
