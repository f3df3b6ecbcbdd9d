"""Identities of call sites and call stacks that are the same in all runs.

The identity of a call site is a hash of its module's build-id and its offset there. The identity of
a call stack is a hash of the identities of its frames. Both need no symbols and no file besides the
trace.

A process reports a stack as a return address and the number of its caller's stack. If the trace has
no stack for an event, the call site stands for a stack of one frame.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding.headers.ptt_abi import PTT_STACK_WHOLE
from nptltrace._dataclasses import dataclass
from nptltrace._escaping import readable
from nptltrace.trace.code.call_site import address_of_site, is_entry
from nptltrace.trace.code.python_code import code_and_offset, is_python
from nptltrace.trace.reading.parallel import event_batches
from nptltrace.trace.symbols.frames import recorded_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.trace.code.python_code import PythonCode
    from nptltrace.trace.traceset import Traceset

__all__ = ["Place", "Sites", "Stack", "Stacks"]

_RECORDS = 1  # class of streams that hold addresses, where others hold numbers of sites


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file a call site is.

    Attributes:
        module: File name of the module; empty for code that belongs to none. Of a function of
            Python the path of its source.
        build_id: Build-id of the module, or empty.
        offset: Where in the module, as its own symbol table counts; the address where there is no
            module. Of a function of Python the number of the instruction in it.
    """

    module: str
    build_id: str
    offset: int


class Sites:
    """Gives call sites their identities, each once; several threads may ask at once.

    Args:
        source: The opened traces.
    """

    def __init__(self, source: Traceset) -> None:
        self._source = source
        self._code: dict[tuple[int, int], int] = {}
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._array = pa.array([], pa.string())
        self._lock = Lock()

    def ids(self, process: NDArray[Any], site: NDArray[Any]) -> pa.Array:
        """Return the identities of call sites, null where there is none.

        Args:
            process: Numbers of processes in the traceset.
            site: Call sites in them.
        """
        # Few of many: the sites are numbered first, then the pairs.
        sites = pa.array(site).dictionary_encode()
        count = max(len(sites.dictionary), 1)
        pairs = np.asarray(sites.indices) + process.astype(np.int64) * count
        encoded = pa.array(pairs).dictionary_encode()
        known = sites.dictionary.to_pylist()
        with self._lock:
            codes = [
                self._number(pair // count, known[pair % count])
                for pair in encoded.dictionary.to_pylist()
            ]
            if len(self._array) != len(self._ids):
                self._array = pa.array(self._ids, pa.string())
            identities = self._array
        found = np.array([*codes, 0], np.int32)[np.asarray(encoded.indices)]
        return pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), identities)

    def all(self, *, frames: bool) -> Iterator[tuple[str, int, int]]:
        """Yield identity, process and site of every call site there is, each run's once.

        Args:
            frames: Whether to add the call sites in call stacks.
        """
        trace_of = self._source.trace_of
        yielded: set[tuple[int, int]] = set()
        for process, site in self._occurring(frames=frames):
            with self._lock:
                number = self._number(process, site)
            if number >= 0 and (trace_of(process), number) not in yielded:
                yielded.add((trace_of(process), number))
                yield self._ids[number], process, site

    def place(self, process: int, site: int) -> Place:
        """Return where a call site is."""
        address = address_of_site(site)
        code = self._code_of(process, site)
        if code is not None:
            return Place(code.path, "", code_and_offset(site)[1])
        module = self._source.processes[process].map.at(site)
        if module is None:
            return Place("", "", address)
        bias = module.start - module.offset if module.bias is None else module.bias
        return Place(readable(PurePath(module.path).name), module.build_id, address - bias)

    def _code_of(self, process: int, site: int) -> PythonCode | None:
        if not is_python(site):
            return None
        return self._source.processes[process].codes.get(code_and_offset(site)[0])

    def identity(self, process: int, site: int) -> str:
        """Return the identity of a call site that is not 0."""
        with self._lock:
            return self._ids[self._number(process, site)]

    def _number(self, process: int, site: int) -> int:
        """Return the number of a call site, the same for all of one identity; -1 for none."""
        if not site:
            return -1
        known = self._code.get((process, site))
        if known is None:
            identity = self._identity(process, site)
            known = self._numbers.setdefault(identity, len(self._ids))
            if known == len(self._ids):
                self._ids.append(identity)
            self._code[process, site] = known
        return known

    def _identity(self, process: int, site: int) -> str:
        """Return 128 bits in hexadecimal."""
        place = self.place(process, site)
        what = place.build_id or place.module
        if not what:  # code that nobody else has
            what = f"{self._source.traces[self._source.trace_of(process)].metadata.uuid} {process}"
        code = self._code_of(process, site)
        if code is not None:
            line = code.line(place.offset)
            what = f"{what} {code.function} {code.first_line} {code.minor} {line}"
        text = f"{what} {place.offset:x}{' entry' if is_entry(site) else ''}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _occurring(self, *, frames: bool) -> Iterator[tuple[int, int]]:
        """Yield process and site of all call sites."""
        reader = self._source.reader
        self._source.names.learn()
        yield from sorted(self._source.names.known.entries)
        entered = {
            (process, address_of_site(site)) for process, site in self._source.names.known.entries
        }
        shared = False
        for number, process in enumerate(self._source.processes):
            inner = (address for _, address in process.stacks.values() if frames)
            chosen = self._source.chosen.of_process(number)
            for address in dict.fromkeys((*process.sites.values(), *chosen, *inner)):
                if process.map.is_shared(address):
                    shared = True
                elif (number, address) not in entered:
                    yield number, address
        streams = (reader.stream_info(stream) for stream in range(reader.stream_count()))
        # Only the time of an event says which module had an address.
        if shared or any(stream.stream_class == _RECORDS for stream in streams):
            seen: set[tuple[int, int]] = set()
            for table in event_batches(self._source):
                found = table.group_by(["process", "site"]).aggregate([])
                pairs = zip(found["process"].to_pylist(), found["site"].to_pylist(), strict=True)
                seen.update(pairs)
            yield from sorted(seen)


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
            site: Call sites in them, for rows without a stack.
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
        """Return the stack of a number; None if the stack or a module in it is not known."""
        with self._lock:
            return self._stack(process, number)

    def all(self) -> Iterator[Stack]:
        """Yield all stacks that events can have, each run's once; those of one frame as well.

        The stack of an event may be that of the caller in another stack. Such a one is among them
        if events are known to be called from its innermost frame, whether one has it or not.
        """
        trace_of = self._source.trace_of
        yielded: set[tuple[int, str]] = set()
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
                if stack and (trace_of(process), stack.identity) not in yielded:
                    yielded.add((trace_of(process), stack.identity))
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
        # Only the time of an event says which module had such an address.
        if not frames or any(info.map.is_shared(address) for address in frames):
            return None
        truncated = node != PTT_STACK_WHOLE
        site = self._source.chosen.of_stack(process, number) or recorded_site(info, frames)
        text = " ".join(self._sites.identity(process, address) for address in frames)
        text = f"{'cut' if truncated else 'whole'} {text}"
        identity = blake2b(text.encode(), digest_size=16).hexdigest()
        return Stack(identity, process, site, tuple(frames), truncated)
