"""What the exports by call stack share: waits, holds or idle time of each stack, named."""

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

# The option that all of these formats take.
OPTIONS = ("show",)


@dataclass(frozen=True, slots=True)
class Sample:
    """What happened at a stack, with one object.

    Attributes:
        frames: The frames from the call site on, the innermost first; never empty.
        object: What it was about, as `mutex g_lock`.
        count: How often.
        ns: How long.
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
        Sample(stacks.of(row["stack_id"]) or (UNKNOWN,), labels.get(row["lock_id"], ""),
               row["count"], row["ns"])
        for row in sums.to_pylist()
    ]  # fmt: skip


def object_labels(rows: Iterable[dict[str, object]]) -> dict[object, str]:
    """Return what to call objects, by their numbers in the table `objects`."""
    return {row["lock_id"]: f"{row['kind']} {row['name']}" for row in rows}


def summary(written: list[Sample], shown: StackMeasure) -> str:
    """Return in a few words what was written."""
    n = len({sample.frames for sample in written})
    ns = sum(sample.ns for sample in written)
    return f"{n:,} {plural(n, 'stack')} of {TITLES[shown]}: {ns / 1e9:.6g} s"


def modules(tables: TraceTables) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of the modules by what frames have of them: name and build-id."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tables.table("modules").to_pylist():
        rows.setdefault((row["name"], row["build_id"]), row)
    return rows


class Numbers(dict[Key, int]):
    """Numbers strings, functions or frames, which a file names once, as they are asked for.

    Args:
        first: The number of the first key.
    """

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: Key) -> int:
        """Number a key that was not asked for before."""
        number = self[key] = self._first + len(self)
        return number
