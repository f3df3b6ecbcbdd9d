"""Puts the names of a program's own files into its trace at the end of the recording.

A program's own files may be rebuilt at any time, and then the names of this run are lost. Files of
packages change seldom; `ptt bundle` adds their names too. The user waits for the end of the
recording, so the time is limited.
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

# Speeds on a slow machine: to read a trace, and to read debug information of a file.
_TRACE_BYTES_PER_S = 500e6
_FILE_BYTES_PER_S = 15e6
# The first events, and the streams of the first threads, have most addresses of locks and threads.
# There may be tens of thousands of streams. To open a stream takes as long as to read some KB.
_EVENTS = 4_000_000
_STREAMS = 2_000


def keep_names(trace: Path, seconds: float) -> list[str]:
    """Put names of functions, lines and variables into a trace, in a limited time.

    Args:
        trace: A finished trace.
        seconds: About how much processor time it may take.

    Returns:
        Paths of the files that take too long; the path of the trace, if all of it takes too long.

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
    """A trace with the recorded call sites. Readers choose other call sites later."""

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Do nothing: to choose call sites, PTT must read all modules."""

    def new_files(self, trace: TraceFiles) -> list[tuple[str, int, str]]:
        """Return the first stream files: more are not worth the time."""
        return super().new_files(trace)[:_STREAMS]


@dataclass(slots=True)
class _Chooser:
    """Chooses the addresses to look up: addresses in the program's own files, until time is up.

    Attributes:
        symbols: Names addresses.
        end: When time is up, by `time.process_time`, in seconds.
        left_out: Paths of files that take too long.
    """

    symbols: Symbols
    end: float
    left_out: list[str] = field(default_factory=list)

    def __call__(self, occurring: Iterable[Occurrence]) -> Iterator[Occurrence]:
        """Yield the addresses to look up, small files first."""
        by_module: dict[Module, list[Occurrence]] = {}
        sizes: dict[Module, int] = {}
        for occurrence in occurring:
            _, process, address = occurrence
            module = self.symbols.module_at(process, address)
            if module is None or not is_own_file(module.path):
                continue
            if module not in sizes:
                files = self.symbols.files(process, module)
                sizes[module] = sum(elf.path.stat().st_size for elf in files)
            by_module.setdefault(module, []).append(occurrence)
        for module in sorted(by_module, key=lambda module: sizes[module]):
            if sizes[module] > (self.end - time.process_time()) * _FILE_BYTES_PER_S:
                self.left_out.append(module.path)
                continue
            for occurrence in by_module[module]:
                if time.process_time() > self.end:
                    self.left_out.append(module.path)
                    break
                yield occurrence
