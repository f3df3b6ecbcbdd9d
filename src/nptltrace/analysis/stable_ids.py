"""Identities of call sites and call stacks that are the same in all runs.

The identity of a call site is a hash of its module's build-id and its offset in the module. The
identity of a call stack is a hash of the identities of its frames. Both need only the trace: no
symbols and no other file.

A process reports a stack as a return address and the number of the caller's stack. If the trace has
no stack for an event, the call site stands for a stack of one frame.
"""

from __future__ import annotations

from _blake2 import blake2b  # `hashlib` would load OpenSSL
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

_RECORDS = 1  # class of streams with addresses of call sites; other streams have their numbers


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a call site in a file.

    Attributes:
        module: File name of the module; empty for code without a module. For a function of Python:
            the path of its source.
        build_id: Build-id of the module, or empty.
        offset: Offset in the module, as in its symbol table; without a module, the address. For a
            function of Python: the number of the instruction in the function.
    """

    module: str
    build_id: str
    offset: int


class Sites:
    """Computes the identities of call sites, each once. Several threads may call at once.

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
        """Return the identities of call sites as a dictionary array, null for site 0.

        Args:
            process: Numbers of processes in the traceset.
            site: A call site in each of these processes.
        """
        # Most rows repeat a few sites. So sites are numbered first, then pairs with a process.
        sites = pa.array(site).dictionary_encode()
        count = max(len(sites.dictionary), 1)
        pairs = np.asarray(sites.indices) + process.astype(np.int64) * count
        encoded = pa.array(pairs).dictionary_encode()
        addresses = sites.dictionary.to_pylist()
        with self._lock:
            numbers = [
                self._number(pair // count, addresses[pair % count])
                for pair in encoded.dictionary.to_pylist()
            ]
            if len(self._array) != len(self._ids):
                self._array = pa.array(self._ids, pa.string())
            identities = self._array
        codes = np.array([*numbers, 0], np.int32)[np.asarray(encoded.indices)]
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), identities)

    def all(self, *, frames: bool) -> Iterator[tuple[str, int, int]]:
        """Yield identity, process and address of every call site, once for each run.

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
        """Return the position of a call site in its file."""
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
        """Return the number of a call site's identity; -1 for site 0."""
        if not site:
            return -1
        number = self._code.get((process, site))
        if number is None:
            identity = self._identity(process, site)
            number = self._numbers.setdefault(identity, len(self._ids))
            if number == len(self._ids):
                self._ids.append(identity)
            self._code[process, site] = number
        return number

    def _identity(self, process: int, site: int) -> str:
        """Return 128 bits in hexadecimal."""
        place = self.place(process, site)
        owner = place.build_id or place.module
        if not owner:  # code that no other process has
            owner = f"{self._source.traces[self._source.trace_of(process)].metadata.uuid} {process}"
        code = self._code_of(process, site)
        if code is not None:
            line = code.line(place.offset)
            owner = f"{owner} {code.function} {code.first_line} {code.minor} {line}"
        text = f"{owner} {place.offset:x}{' entry' if is_entry(site) else ''}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _occurring(self, *, frames: bool) -> Iterator[tuple[int, int]]:
        """Yield process and address of all call sites; some may come twice."""
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
        # If several modules had an address, only the times of the events tell them apart.
        if shared or any(stream.stream_class == _RECORDS for stream in streams):
            seen: set[tuple[int, int]] = set()
            for table in event_batches(self._source):
                rows = table.group_by(["process", "site"]).aggregate([])
                pairs = zip(rows["process"].to_pylist(), rows["site"].to_pylist(), strict=True)
                seen.update(pairs)
            yield from sorted(seen)


@dataclass(frozen=True, slots=True)
class Stack:
    """A call stack.

    Attributes:
        identity: 128 bits in hexadecimal.
        process: Number of a process in the traceset with the stack.
        site: The call site of the stack's events: the innermost frame outside of wrappers.
        frames: Call sites, the innermost first.
        truncated: The thread began with another frame, outside of the outermost frame here.
    """

    identity: str
    process: int
    site: int
    frames: tuple[int, ...]
    truncated: bool


class Stacks:
    """Computes the identities of call stacks, each once. Several threads may call at once.

    Args:
        source: The opened traces.
        sites: Computes the identities of call sites.
    """

    def __init__(self, source: Traceset, sites: Sites) -> None:
        self._source, self._sites = source, sites
        self._known: dict[tuple[int, int], Stack | None] = {}
        self._lock = Lock()

    def ids(self, process: NDArray[Any], stack: NDArray[Any], site: NDArray[Any]) -> pa.Array:
        """Return the identities of stacks as a dictionary array, null without stack and call site.

        Args:
            process: Numbers of processes in the traceset.
            stack: Number of a stack in each of these processes, 0 for none.
            site: A call site in each of these processes, for rows without a stack.
        """
        alone = self._sites.ids(process, site)
        rows = np.flatnonzero(stack)
        if not len(rows):
            return alone
        pairs, which = np.unique(
            process[rows].astype(np.int64) << 32 | stack[rows], return_inverse=True
        )
        with self._lock:
            stacks = [self._stack(pair >> 32, pair & 0xFFFFFFFF) for pair in pairs.tolist()]
        code_of = {identity: code for code, identity in enumerate(alone.dictionary.to_pylist())}
        codes = np.full(len(stacks), -1, np.int32)
        for number, one in enumerate(stacks):
            if one is not None:
                codes[number] = code_of.setdefault(one.identity, len(code_of))
        indices = alone.indices.fill_null(-1).to_numpy().astype(np.int32)
        chosen = codes[which]
        indices[rows] = np.where(chosen >= 0, chosen, indices[rows])
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, mask=indices < 0), pa.array(list(code_of), pa.string())
        )

    def stack(self, process: int, number: int) -> Stack | None:
        """Return a stack by its number; None if the stack or one of its modules is unknown."""
        with self._lock:
            return self._stack(process, number)

    def all(self) -> Iterator[Stack]:
        """Yield all stacks that events can have, once for each run, also stacks of one frame.

        A stack of a caller inside another stack may be the stack of an event too. It is yielded if
        some stack of events begins with its innermost frame.
        """
        trace_of = self._source.trace_of
        yielded: set[tuple[int, str]] = set()
        for process, info in enumerate(self._source.processes):
            calls = info.stacks
            inner = {caller for caller, _ in calls.values()}
            called_at = {calls[number][1] for number in calls.keys() - inner} | info.recorded
            with self._lock:
                stacks = [
                    self._stack(process, number)
                    for number, (_, address) in calls.items()
                    if number not in inner or address in called_at
                ]
            for stack in stacks:
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
        # If several modules had an address, only the time of the event tells them apart.
        if not frames or any(info.map.is_shared(address) for address in frames):
            return None
        truncated = node != PTT_STACK_WHOLE
        site = self._source.chosen.of_stack(process, number) or recorded_site(info, frames)
        text = " ".join(self._sites.identity(process, address) for address in frames)
        text = f"{'cut' if truncated else 'whole'} {text}"
        identity = blake2b(text.encode(), digest_size=16).hexdigest()
        return Stack(identity, process, site, tuple(frames), truncated)
