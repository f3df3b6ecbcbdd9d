"""Identities of call sites: hashes of build-id and offset, so that they are the same in all runs.

They need no symbols, and no files but what the trace says of modules.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace._escaping import readable
from nptltrace.trace.code.call_site import address_of_site, is_entry
from nptltrace.trace.code.python_code import code_and_offset, is_python
from nptltrace.trace.reading.parallel import event_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.trace.code.python_code import PythonCode
    from nptltrace.trace.traceset import Traceset

__all__ = ["Place", "Sites"]

_RECORDS = 1  # class of streams that hold addresses, where others hold numbers of sites


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file a call site is.

    Attributes:
        module: File name of the module; empty for code that belongs to none. Of a function of
            Python the path of its source.
        build_id: Of the module, or empty.
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
            frames: Those of call stacks, too.
        """
        trace_of = self._source.trace_of
        given: set[tuple[int, int]] = set()
        for process, site in self._occurring(frames=frames):
            with self._lock:
                number = self._number(process, site)
            if number >= 0 and (trace_of(process), number) not in given:
                given.add((trace_of(process), number))
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
        self._source.learn_threads()
        yield from sorted(self._source.thread_names.entries)
        entered = {
            (process, address_of_site(site)) for process, site in self._source.thread_names.entries
        }
        shared = False
        for number, process in enumerate(self._source.processes):
            inner = (address for _, address in process.stacks.values() if frames)
            chosen = self._source.chosen_sites(number)
            for address in dict.fromkeys((*process.sites.values(), *chosen, *inner)):
                if process.map.is_shared(address):
                    shared = True
                elif (number, address) not in entered:
                    yield number, address
        streams = (reader.stream_info(stream) for stream in range(reader.stream_count()))
        # Of which module an address is, only the time of an event says.
        if shared or any(stream.stream_class == _RECORDS for stream in streams):
            seen: set[tuple[int, int]] = set()
            for table in event_batches(self._source):
                found = table.group_by(["process", "site"]).aggregate([])
                pairs = zip(found["process"].to_pylist(), found["site"].to_pylist(), strict=True)
                seen.update(pairs)
            yield from sorted(seen)
