"""Waits, holds and idle time added up by call stack.

What is shown is one of `SHOWN`: contended waits by the stack of the waiter, the same by the stack
of whoever held the object meanwhile, holds, and idle waits. The times add up to what the tables
say: `dur_ns` of contended waits, their `held_ns`, `dur_ns` of holds, and of idle waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["SHOWN", "TITLES", "Shown", "shown_of", "stack_sums"]

Shown = Literal["waits", "holders", "holds", "idle"]
SHOWN: tuple[Shown, ...] = get_args(Shown)

TITLES: dict[Shown, str] = {
    "waits": "contended waits, by waiter",
    "holders": "contended waits, by holder",
    "holds": "holds",
    "idle": "idle waits",
}

# Of which table, and which of its columns are the stack and the time.
_SOURCES: dict[Shown, tuple[str, str, str]] = {
    "waits": ("waits", "stack_id", "dur_ns"),
    "holders": ("waits", "holder_stack_id", "held_ns"),
    "holds": ("holds", "stack_id", "dur_ns"),
    "idle": ("waits", "stack_id", "dur_ns"),
}
# Whose thread is meant in waits by holder.
_HOLDER = {"process": "owner_process", "tid": "owner_tid"}
_CLASS = {"waits": "contended", "holders": "contended", "idle": "idle"}


def shown_of(name: str) -> Shown:
    """Return what is to be shown by its name.

    Raises:
        UsageError: There is no such thing.
    """
    for shown in SHOWN:
        if shown == name:
            return shown
    raise UsageError(f"nothing to show is called {name!r}: there are {', '.join(SHOWN)}")


def stack_sums(
    tables: TraceTables,
    shown: Shown,
    by: Sequence[str] = (),
    beside: dict[str, pa.Table] | None = None,
    step: Callable[[int], None] | None = None,
) -> pa.Table:
    """Return count and time by stack, the longest first.

    Args:
        tables: The tables of a traceset.
        shown: What to add up.
        by: Further columns to add up by, of numbers.
        beside: Tables of these names are put in here, where reading the trace makes them anyway.
        step: Called back now and then with the time up to which the trace was read.

    Returns:
        A table with the columns of `by`, and `stack_id` (null where it is not known), `count` and
        `ns`.
    """
    keys = [*by, "stack_id"]
    pieces = list(_pieces(tables, shown, keys, {} if beside is None else beside, step))
    if not pieces:
        pieces = [_empty(keys)]
    found = pa.concat_tables(pieces).group_by(keys).aggregate([("count", "sum"), ("ns", "sum")])
    found = found.rename_columns([*keys, "count", "ns"])
    return found.sort_by([("ns", "descending"), ("count", "descending"), ("stack_id", "ascending")])


def _pieces(
    tables: TraceTables, shown: Shown, keys: list[str], beside: dict[str, pa.Table],
    step: Callable[[int], None] | None,
) -> Iterator[pa.Table]:  # fmt: skip
    """Yield sums of parts of the table, all of one schema."""
    table, stack, time = _SOURCES[shown]
    renamed = _HOLDER if shown == "holders" else {}
    for name, piece in tables.pieces((table, *beside)):
        if name in beside:
            beside[name] = piece
        if name != table or not piece.num_rows:
            continue
        if step is not None:
            step(pc.max(piece["t_ns"]).as_py())
        chosen = piece
        if shown in _CLASS:
            chosen = piece.filter(pc.equal(piece["class"].cast("string"), _CLASS[shown]))
        stacks = chosen[stack].combine_chunks()
        columns = [chosen[renamed.get(key, key)] for key in keys[:-1]]
        rows = pa.table([*columns, stacks.indices, chosen[time].cast("int64")], [*keys, "ns"])
        sums = rows.group_by(keys).aggregate([([], "count_all"), ("ns", "sum")])
        sums = sums.rename_columns([*keys, "count", "ns"])
        names = stacks.dictionary.take(sums["stack_id"].combine_chunks())
        yield sums.set_column(len(keys) - 1, "stack_id", names)


def _empty(keys: list[str]) -> pa.Table:
    names = [*keys, "count", "ns"]
    types = [pa.uint32()] * (len(keys) - 1) + [pa.string(), pa.int64(), pa.int64()]
    return pa.schema(list(zip(names, types, strict=True))).empty_table()
