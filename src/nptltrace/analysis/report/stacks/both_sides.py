"""Contended waits by the call stacks of waiter and holder.

They are added up by thread, object and call site while a model follows the traces. The entries of a
report find their stacks by the numbers of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.report.stacks.values import PIECES, summed
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


@dataclass(frozen=True, slots=True)
class BothStacks:
    """Contended waits with the same call stacks.

    Attributes:
        waiter: Frames of the waiters from the call site on as text, the innermost first.
        holder: Frames of the holder where it took the object. If unknown: frames of the first
            release during the waits, or nothing.
        released: Whether `holder` has the frames of the release.
        waits: Number of waits.
        wait_ns: Total duration of the waits.
        held_ns: Part of `wait_ns` while a thread held the object.
    """

    waiter: tuple[str, ...]
    holder: tuple[str, ...]
    released: bool
    waits: int
    wait_ns: int
    held_ns: int


class WaitStacks:
    """Adds waits up by both stacks, and finds the stacks of an entry of a report.

    Args:
        by: The entries: `object`, `thread`, `site` or `thread,object`.

    Attributes:
        by: The entries.
    """

    def __init__(self, by: str) -> None:
        self.by = by
        self._pieces: list[pa.Table] = []
        self._sums: dict[str, NDArray[Any]] = {}
        self._texts: dict[tuple[int, int, int], tuple[str, ...]] = {}

    def add(self, model: Model) -> None:
        """Take in the new waits of a model with the flag `ROWS`."""
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
        table = pa.table({name: np.array(column) for name, column in columns.items()})
        self._pieces.append(summed([table], _KEYS, _SUMS))
        if len(self._pieces) > PIECES:
            self._pieces = [summed(self._pieces, _KEYS, _SUMS)]

    def finish(self, model: Model, source: Traceset, symbols: Symbols | None) -> None:
        """Prepare for `finder`, after all waits were added.

        Args:
            model: The model of the added waits.
            source: The opened traces.
            symbols: Names addresses, or None.
        """
        self._threads, self._sites = model.table("threads"), model.table("sites")
        self._source, self._symbols = source, symbols
        names = (*_KEYS, *_SUMS)
        empty = pa.table({name: pa.array([], pa.int64()) for name in names})
        sums = summed(self._pieces, _KEYS, _SUMS) if self._pieces else empty
        self._sums = {name: sums[name].to_numpy() for name in names}

    def finder(self) -> Callable[..., list[BothStacks]]:
        """Return a function from one or more entries, each a tuple of numbers, to their stacks."""
        keys = np.stack([self._sums[name].astype(np.int64) for name in self.by.split(",")])
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
            row = {name: int(column[at]) for name, column in self._sums.items()}
            waiter = self._text(row["thread"], row["stack"], row["site"])
            holder = self._text(row["owner"], row["holder_stack"], row["holder_site"])
            both = waiter, holder, bool(row["released"])
            numbers = sums.setdefault(both, [0] * len(_SUMS))
            for place, name in enumerate(_SUMS):
                numbers[place] += row[name]
        return sorted(
            (BothStacks(*both, *numbers) for both, numbers in sums.items()),
            key=lambda s: (-s.wait_ns, -s.waits, s.waiter, s.holder, s.released),
        )

    def _text(self, thread: int, stack: int, site: int) -> tuple[str, ...]:
        """Return a stack of a thread by its number, or only the call site if it is unknown."""
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
