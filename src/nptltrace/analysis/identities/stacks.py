"""Identities of call stacks: hashes of those of their frames, so that all runs have the same.

A process reports a stack as a return address and the stack of its caller. Where a trace has
no stack of an event, its call site stands for one of a single frame.
"""

from __future__ import annotations

from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding.headers.ptt_abi import PTT_STACK_WHOLE
from nptltrace._dataclasses import dataclass
from nptltrace.trace.symbols.frames import recorded_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.analysis.identities.sites import Sites
    from nptltrace.trace.traceset import Traceset

__all__ = ["Stack", "Stacks"]


@dataclass(frozen=True, slots=True)
class Stack:
    """A call stack.

    Attributes:
        identity: 128 bits in hexadecimal.
        process: Number of a process in the traceset that has it.
        site: The call site of its events: where the program calls, past wrappers.
        frames: Call sites, the innermost first.
        truncated: Its thread did not begin with the outermost frame: others called it.
    """

    identity: str
    process: int
    site: int
    frames: tuple[int, ...]
    truncated: bool


class Stacks:
    """Gives call stacks their identities, each once; several threads may ask at once.

    Args:
        source: The opened traces.
        sites: Gives call sites theirs.
    """

    def __init__(self, source: Traceset, sites: Sites) -> None:
        self._source, self._sites = source, sites
        self._known: dict[tuple[int, int], Stack | None] = {}
        self._lock = Lock()

    def ids(self, process: NDArray[Any], stack: NDArray[Any], site: NDArray[Any]) -> pa.Array:
        """Return the identities of stacks, null where there is neither stack nor call site.

        Args:
            process: Numbers of processes in the traceset.
            stack: Numbers of stacks in them, 0 for none.
            site: Call sites in them, for what has no stack.
        """
        alone = self._sites.ids(process, site)
        rows = np.flatnonzero(stack)
        if not len(rows):
            return alone
        pairs, which = np.unique(
            process[rows].astype(np.int64) << 32 | stack[rows], return_inverse=True
        )
        with self._lock:
            found = [self._stack(pair >> 32, pair & 0xFFFFFFFF) for pair in pairs.tolist()]
        words = alone.dictionary.to_pylist()
        places = {word: place for place, word in enumerate(words)}
        codes = np.full(len(found), -1, np.int32)
        for number, one in enumerate(found):
            if one is not None:
                codes[number] = places.setdefault(one.identity, len(places))
        indices = alone.indices.fill_null(-1).to_numpy().astype(np.int32)
        chosen = codes[which]
        indices[rows] = np.where(chosen >= 0, chosen, indices[rows])
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, mask=indices < 0), pa.array(list(places), pa.string())
        )

    def stack(self, process: int, number: int) -> Stack | None:
        """Return the stack of a number; None where it is not known, or not of which module."""
        with self._lock:
            return self._stack(process, number)

    def all(self) -> Iterator[Stack]:
        """Yield all stacks that events can have, each run's once; those of one frame as well.

        The stack of an event may be that of the caller in another stack. Such a one is among them
        if events are known to be called from its innermost frame, whether one has it or not.
        """
        trace_of = self._source.trace_of
        given: set[tuple[int, str]] = set()
        for process, info in enumerate(self._source.processes):
            calls = info.stacks
            inner = {caller for caller, _ in calls.values()}
            called_at = {calls[number][1] for number in calls.keys() - inner} | info.recorded
            with self._lock:
                found = [
                    self._stack(process, number)
                    for number, (_, address) in calls.items()
                    if number not in inner or address in called_at
                ]
            for stack in found:
                if stack and (trace_of(process), stack.identity) not in given:
                    given.add((trace_of(process), stack.identity))
                    yield stack
        for identity, process, site in self._sites.all(frames=False):
            yield Stack(identity, process, site, (site,), truncated=True)

    def _stack(self, process: int, number: int) -> Stack | None:
        key = process, number
        if key not in self._known:
            self._known[key] = self._read(process, number)
        return self._known[key]

    def _read(self, process: int, number: int) -> Stack | None:
        info = self._source.processes[process]
        frames: list[int] = []
        node = number
        while node in info.stacks and len(frames) <= len(info.stacks):
            node, address = info.stacks[node]
            frames.append(address)
        # Of which module such an address is only the time of an event says.
        if not frames or any(info.map.is_shared(address) for address in frames):
            return None
        truncated = node != PTT_STACK_WHOLE
        site = self._source.chosen_site(process, number) or recorded_site(info, frames)
        text = " ".join(self._sites.identity(process, address) for address in frames)
        text = f"{'cut' if truncated else 'whole'} {text}"
        identity = blake2b(text.encode(), digest_size=16).hexdigest()
        return Stack(identity, process, site, tuple(frames), truncated)
