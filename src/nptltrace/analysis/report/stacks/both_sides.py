"""Both sides' call stacks of contended waits: who waited where, behind whom, and how long.

They are added up while a model follows the traces, by thread, object and call site, by whose
numbers the entries of a report find theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.trace.code.call_site import hex_of_site, stack_sites
from nptltrace.trace.symbols.frames import stack_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nptltrace._binding.libptttrack_sums import Model
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["BothStacks", "WaitStacks"]

_CONTENDED = 0
_KEYS = ("thread", "object", "site", "stack", "owner", "holder_site", "holder_stack", "released")
_SUMS = ("count", "ns", "held_ns")
_PIECES = 100  # sums to keep before they are made one


@dataclass(frozen=True, slots=True)
class BothStacks:
    """Contended waits with the same call stacks.

    Attributes:
        waiter: The frames of the waiters from the call site on as text, the innermost first.
        holder: Those of the holder where it took the object, or where that is not known of the
            first release of it meanwhile; none if neither is.
        released: Whether the holder's are those of the release.
        waits: How many.
        wait_ns: How long.
        held_ns: The part of it in which the object was held.
    """

    waiter: tuple[str, ...]
    holder: tuple[str, ...]
    released: bool
    waits: int
    wait_ns: int
    held_ns: int


class WaitStacks:
    """Adds waits up by both stacks, and finds those of an entry.

    Args:
        by: What the entries are: `object`, `thread`, `site` or `thread,object`.

    Attributes:
        by: As given.
    """

    def __init__(self, by: str) -> None:
        self.by = by
        self._pieces: list[pa.Table] = []
        self._found: dict[str, NDArray[Any]] = {}
        self._texts: dict[tuple[int, int, int], tuple[str, ...]] = {}

    def add(self, model: Model) -> None:
        """Take in the waits that a model has reported, which keeps rows."""
        rows = model.table("waits", copy=False)
        rows = rows[rows["wait_class"] == _CONTENDED]
        if not len(rows):
            return
        columns = {name: rows[name] for name in _KEYS if name != "released"} | {
            "released": rows["holder_site"] != rows["owner_site"],
            "count": np.ones(len(rows), np.int64),
            "ns": rows["dur_ns"],
            "held_ns": rows["held_ns"],
        }
        self._pieces.append(_summed(pa.table({n: np.array(c) for n, c in columns.items()})))
        if len(self._pieces) > _PIECES:
            self._pieces = [_summed(pa.concat_tables(self._pieces))]

    def finish(self, model: Model, source: Traceset, symbols: Symbols | None) -> None:
        """Get ready for `of`: all waits were added.

        Args:
            model: What the numbers mean.
            source: The opened traces.
            symbols: Names addresses, or None.
        """
        self._threads, self._sites = model.table("threads"), model.table("sites")
        self._source, self._symbols = source, symbols
        names = (*_KEYS, *_SUMS)
        empty = pa.table({name: pa.array([], pa.int64()) for name in names})
        found = _summed(pa.concat_tables(self._pieces)) if self._pieces else empty
        self._found = {name: found[name].to_numpy() for name in names}

    def finder(self) -> Callable[..., list[BothStacks]]:
        """Return what finds the stacks of one or several entries, each a tuple of numbers."""
        keys = np.stack([self._found[name].astype(np.int64) for name in self.by.split(",")])
        places: dict[tuple[int, ...], list[int]] = {}
        for at, key in enumerate(zip(*keys.tolist(), strict=True)):
            places.setdefault(key, []).append(at)
        return lambda *entries: self._stacks(
            [at for entry in entries for at in places.get(entry, ())]
        )

    def _stacks(self, rows: list[int]) -> list[BothStacks]:
        """Return the stacks of some rows, the longest waits first."""
        sums: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[int]] = {}
        for at in rows:
            row = {name: int(column[at]) for name, column in self._found.items()}
            waiter = self._text(row["thread"], row["stack"], row["site"])
            holder = self._text(row["owner"], row["holder_stack"], row["holder_site"])
            both = waiter, holder, bool(row["released"])
            known = sums.setdefault(both, [0] * len(_SUMS))
            for place, name in enumerate(_SUMS):
                known[place] += row[name]
        found = [BothStacks(*both, *numbers) for both, numbers in sums.items()]
        return sorted(
            found,
            key=lambda one: (-one.wait_ns, -one.waits, one.waiter, one.holder, one.released),
        )

    def _text(self, thread: int, stack: int, site: int) -> tuple[str, ...]:
        """Return a stack of a thread by its number, or the call site where it is not known."""
        process = int(self._threads["process"][thread])
        address = int(self._sites["address"][site])
        key = process, stack, address
        if key not in self._texts:
            self._texts[key] = tuple(self._named(process, stack, address))
        return self._texts[key]

    def _named(self, process: int, stack: int, site: int) -> list[str]:
        processes = self._source.processes
        stacks = processes[process].stacks if process < len(processes) else {}
        if self._symbols is None:
            return [hex_of_site(site)] if site else []
        return stack_texts(self._symbols, process, stack_sites(stacks, stack), site)


def _summed(rows: pa.Table) -> pa.Table:
    sums = rows.group_by(_KEYS).aggregate([(name, "sum") for name in _SUMS])
    return sums.rename_columns([*_KEYS, *_SUMS])
