"""Waits, holds and idle time added up by call stack.

A `StackMeasure` chooses a column of a table, and the stack:

- `waits`: `dur_ns` of contended waits, by the stack of the waiter
- `holders`: `held_ns` of contended waits, by the stack of the holder
- `holds`: `dur_ns` of holds
- `idle`: `dur_ns` of idle waits
- `inside`: `waited_ns` of what holders did meanwhile, by the stack of that. If it is not known: by
  the stack of the acquisition
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from nptltrace.analysis.report.stacks.values import summed
from nptltrace.analysis.vocabulary.doing import DOING
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["STACK_MEASURES", "TITLES", "StackMeasure", "stack_measure", "stack_sums", "with_doing"]

StackMeasure = Literal["waits", "holders", "holds", "idle", "inside"]
STACK_MEASURES: tuple[StackMeasure, ...] = get_args(StackMeasure)

TITLES: dict[StackMeasure, str] = {
    "waits": "contended waits, by waiter",
    "holders": "contended waits, by holder",
    "holds": "holds",
    "idle": "idle waits",
    "inside": "contended waits, by what the holder did",
}

# The table, its column of stacks, and its column of times.
_SOURCES: dict[StackMeasure, tuple[str, str, str]] = {
    "waits": ("waits", "stack_id", "dur_ns"),
    "holders": ("waits", "holder_stack_id", "held_ns"),
    "holds": ("holds", "stack_id", "dur_ns"),
    "idle": ("waits", "stack_id", "dur_ns"),
    "inside": ("hold_samples", "stack_id", "waited_ns"),
}
# Columns for the thread of the holder, by the columns for the thread of the waiter.
_HOLDER = {"process": "owner_process", "tid": "owner_tid"}
_CLASS = {"waits": "contended", "holders": "contended", "idle": "idle"}


def stack_measure(name: str) -> StackMeasure:
    """Return a measure by its name.

    Raises:
        UsageError: There is no such measure.
    """
    for measure in STACK_MEASURES:
        if measure == name:
            return measure
    raise UsageError(f"nothing to show is called {name!r}: there are {', '.join(STACK_MEASURES)}")


def stack_sums(
    tables: TraceTables,
    measure: StackMeasure,
    by: Sequence[str] = (),
    beside: dict[str, pa.Table] | None = None,
    step: Callable[[int], None] | None = None,
) -> pa.Table:
    """Return count and time by stack, the longest first.

    Args:
        tables: The tables of a traceset.
        measure: The measure to add up.
        by: More columns to add up by: columns of numbers.
        beside: A dictionary with the names of more tables. Its values become these tables, which
            are read in the same pass.
        step: Called now and then with the time of the last event so far, in ns.

    Returns:
        A table with the columns of `by`, and `stack_id` (null if unknown), `count` and `ns`. For
        `inside` also `doing`, what the thread did at the stack.
    """
    keys = [*by, *(["doing"] if measure == "inside" else []), "stack_id"]
    pieces = list(_pieces(tables, measure, keys, {} if beside is None else beside, step))
    if not pieces:
        others = [pa.string()] * (len(keys) - len(by)) + [pa.int64(), pa.int64()]
        types = [pa.uint32()] * len(by) + others
        schema = pa.schema(zip([*keys, "count", "ns"], types, strict=True))
        pieces = [schema.empty_table()]
    sums = summed(pieces, keys, ("count", "ns"))
    return sums.sort_by([("ns", "descending"), ("count", "descending"), ("stack_id", "ascending")])


def _pieces(
    tables: TraceTables, measure: StackMeasure, keys: list[str], beside: dict[str, pa.Table],
    step: Callable[[int], None] | None,
) -> Iterator[pa.Table]:  # fmt: skip
    """Yield the sums of parts of the table, all with the same schema."""
    table, stack, time = _SOURCES[measure]
    renamed = _HOLDER if measure == "holders" else {}
    for name, piece in tables.pieces((table, *beside)):
        if name in beside:
            beside[name] = piece
        if name != table or not piece.num_rows:
            continue
        if step is not None:
            step(pc.max(piece["t_ns"]).as_py())
        chosen = piece
        if measure in _CLASS:
            chosen = piece.filter(pc.equal(piece["class"].cast("string"), _CLASS[measure]))
        if measure == "inside":
            chosen = with_doing(chosen)
        stacks = chosen[stack].combine_chunks()
        columns = [chosen[renamed.get(key, key)] for key in keys[:-1]]
        rows = pa.table([*columns, stacks.indices, chosen[time].cast("int64")], [*keys, "ns"])
        sums = rows.group_by(keys).aggregate([([], "count_all"), ("ns", "sum")])
        sums = sums.rename_columns([*keys, "count", "ns"])
        names = stacks.dictionary.take(sums["stack_id"].combine_chunks())
        yield sums.set_column(len(keys) - 1, "stack_id", names)


def with_doing(rows: pa.Table) -> pa.Table:
    """Return rows of hold_samples with the column `doing`, and a stack where there was none."""
    state, call = (rows[name].cast("string") for name in ("state", "call"))
    named = pc.if_else(pc.equal(state, "ready"), DOING["ready"], state)
    doing = pc.coalesce(pc.binary_join_element_wise(named, call, " in "), named)
    stacks = pc.coalesce(*(rows[name].cast("string") for name in ("stack_id", "hold_stack_id")))
    at = rows.column_names.index("stack_id")
    kept = rows.set_column(at, "stack_id", pc.dictionary_encode(stacks))
    return kept.append_column("doing", doing)
