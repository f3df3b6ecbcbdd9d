"""Puts the names of a program's own files into its trace when the recording has ended.

These are the files that are built anew, with which the names of this run would be gone. What a
package installed changes seldom, and whoever wants its names as well asks `ptt bundle`. Somebody
waits for the end of a recording, so that all of this takes a limited time.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace.trace.bundling.own_files import is_own_file
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nptltrace.trace.bundling.bundle_writer import Occurrence
    from nptltrace.trace.code.modules import Module
    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import TraceFiles

__all__ = ["keep_names"]

# What a second is enough for, on a slow machine: bytes of a trace that are read, and of a file
# whose debug information is.
_TRACE_BYTES_PER_S = 500e6
_FILE_BYTES_PER_S = 15e6
# Locks and threads are named by events, of which the first ones have most; so have the streams of
# the first threads, of which there may be tens of thousands: to open one takes as long as some KB.
_EVENTS = 4_000_000
_STREAMS = 2_000


def keep_names(trace: Path, seconds: float) -> list[str]:
    """Put names of functions, lines and variables into a trace, in a limited time.

    Args:
        trace: A finished trace.
        seconds: About how long it may take, of the processor's time.

    Returns:
        Paths of the files for which that was too short; of the trace, if it was for all.

    Raises:
        PttError: The trace cannot be read or written.
    """
    end = time.process_time() + seconds
    with os.scandir(trace) as files:
        size = sum(file.stat().st_size for file in files if file.name.startswith("stream-"))
    if size > seconds * _TRACE_BYTES_PER_S:
        return [str(trace)]
    from nptltrace.trace.bundling.bundle_writer import write_bundle
    from nptltrace.trace.symbols.lookup import Symbols

    source = _AsRecorded(trace)
    chooser = _Chooser(Symbols(source, environment=False), end)
    write_bundle(source, chooser.symbols, only=chooser, events=_EVENTS)
    return chooser.left_out


class _AsRecorded(Traceset):
    """A trace whose call sites are those recorded: others are chosen when it is read."""

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Leave them as they are: to choose, all modules would have to be looked into."""

    def new_files(self, trace: TraceFiles) -> list[tuple[str, int, str]]:
        """Return as many of the files as are worth the time."""
        return super().new_files(trace)[:_STREAMS]


@dataclass(slots=True)
class _Chooser:
    """Chooses what is looked up: addresses in files of the program's own, until time is up.

    Attributes:
        symbols: Names addresses.
        end: When time is up.
        left_out: Paths of files for which it was.
    """

    symbols: Symbols
    end: float
    left_out: list[str] = field(default_factory=list)

    def __call__(self, occurring: Iterable[Occurrence]) -> Iterator[Occurrence]:
        """Yield what is looked up, small files first."""
        of: dict[Module, list[Occurrence]] = {}
        sizes: dict[Module, float] = {}
        for occurrence in occurring:
            _, process, address = occurrence
            module = self.symbols.module_at(process, address)
            if module is None or not is_own_file(module.path):
                continue
            if module not in of:
                sizes[module] = self._bytes(process, module)
            of.setdefault(module, []).append(occurrence)
        for module in sorted(of, key=lambda module: sizes[module]):
            if sizes[module] > (self.end - time.process_time()) * _FILE_BYTES_PER_S:
                self.left_out.append(module.path)
                continue
            yield from self._until_end(module, of[module])

    def _until_end(self, module: Module, found: Iterable[Occurrence]) -> Iterator[Occurrence]:
        for occurrence in found:
            if time.process_time() > self.end:
                self.left_out.append(module.path)
                return
            yield occurrence

    def _bytes(self, process: int, module: Module) -> float:
        """Return how much there is to read of a module."""
        return sum(elf.path.stat().st_size for elf in self.symbols.files(process, module))
