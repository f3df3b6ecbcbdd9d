"""Opens traces for reading: files, clocks, processes, threads and names behind one reader.

Nothing here needs NumPy; `nptltrace.trace.reading` makes columns of the events.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nptltrace._units import plural
from nptltrace.errors import PttError
from nptltrace.trace.chosen_sites import ChosenSites
from nptltrace.trace.objects.python_objects import PythonObjects
from nptltrace.trace.open_traces import OpenTraces, TraceFiles
from nptltrace.trace.thread_naming import ThreadNaming

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses
    from nptltrace.trace.tsdl_reader import Metadata

__all__ = ["BEFORE", "TraceFiles", "Traceset"]

# Where a trace that was cut out of another keeps the events that led to its beginning.
BEFORE = "info/before"


class Traceset(OpenTraces):
    """Traces opened for reading, with the names of their threads and the call sites of events.

    Args:
        paths: Trace directories, and logs of POSIX trace streams.

    Raises:
        TraceFormatError: A path is not a trace.
        UsageError: The traces cannot be read as one traceset.

    Attributes:
        names: Names the threads.
        chosen: Call sites that are chosen from stacks.
        python: The objects of Python interpreters and their purposes.
        notes: More remarks, which users of the traceset add; see `remarks`.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        super().__init__(*paths)
        self.names = ThreadNaming(self)
        self.chosen = ChosenSites(self)
        self.python = PythonObjects(self)
        self.notes: list[str] = []
        self._before: list[tuple[TraceFiles, Traceset]] | None = None

    def refresh(self) -> None:
        """Take in new files and events. No other thread may read the traceset meanwhile."""
        self._renew()

    def _renew(self) -> None:
        self.take_in()
        self.names.forget()
        self.python.forget()
        self._before = None
        self.chosen.update()

    def describe_anew(self, metadata: Iterable[Metadata]) -> None:
        """Take in new metadata of the traces, and new files and events.

        Args:
            metadata: The present metadata of each trace. At the end of a recording, they tell the
                measured speed of its clock.
        """
        for trace, described in zip(self.traces, metadata, strict=True):
            trace.metadata = described
        self._renew()

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Choose the call sites of events from their stacks; see `ChosenSites.choose`."""
        self.chosen.choose(choose, uses)

    def before(self) -> list[tuple[TraceFiles, Traceset]]:
        """Return pairs of a trace that was cut out of another, and the events before it.

        These events led to the beginning of the trace, and are not part of the traceset. Their
        times are times of the traceset.
        """
        if self._before is None:
            self._before = []
            for trace in self.traces:
                path = trace.path / BEFORE
                with suppress(PttError, OSError):
                    if (path / "metadata").is_file():
                        early = Traceset(path)
                        place = self.alignment.placements[trace.number]
                        early.reader.set_clock(0, place.frequency, place.origin, place.shift_ns)
                        self._before.append((trace, early))
        return self._before

    def identity(self, use: str) -> bytes:
        """Return a 32-byte digest of the traces.

        Args:
            use: The purpose of the digest; another purpose has another digest.
        """
        from hashlib import sha256

        digest = sha256(use.encode())
        # If a recording is followed, the numbers of processes and threads depend on their arrival.
        digest.update(repr((self.reader.processes(0), self.thread_ids)).encode())
        digest.update(self.chosen.text().encode())
        for trace in self.traces:
            digest.update(trace.metadata.uuid.bytes)
            beside = ("metadata", "info/session.json", "info/processes.jsonl")
            for name in sorted([*trace.files, *beside]):
                try:
                    size = (trace.path / name).stat().st_size
                except OSError:
                    size = -1
                digest.update(f"{name} {size}\n".encode("utf-8", "surrogateescape"))
        return digest.digest()

    def uncovered(self) -> list[dict[str, Any]]:
        """Return the modules that the traces do not cover fully, and why."""
        return [item for trace in self.traces for item in trace.info.uncovered]

    def remarks(self) -> list[str]:
        """Return remarks that a reader of any results should know, a sentence each."""
        remarks: list[str] = []
        for trace in self.traces:
            session = trace.info.session
            texts = [*trace.info.remarks]
            if session.filter:
                texts.append(f"recorded with --filter {session.filter}: other events are not there")
            if without := session.number("events_without_site"):
                texts.append(
                    f"{without} {plural(without, 'event has', 'events have')} no call site: "
                    "their process has more call sites than there are numbers"
                )
            if without := session.number("events_without_stack"):
                texts.append(
                    f"{without} {plural(without, 'event has', 'events have')} no call stack: "
                    "the call was not found in it, or its process has too many"
                )
            if session.raw.get("buffers_shortened"):
                texts.append(
                    "another program shortened the buffers of the recording: "
                    "the events in them are lost, and nobody knows how many"
                )
            if session.raw.get("counts_overwritten"):
                texts.append(
                    "the program overwrote counts of the tracer in its memory: "
                    "how many events are lost is not known"
                )
            if missing := self.missing_events(trace):
                texts.append(
                    f"{missing} {plural(missing, 'event that was', 'events that were')} recorded "
                    "are not in it: files are missing or empty"
                )
            if self.reader.trace_info(trace.number).packets == 0 and not trace.running:
                texts.append("holds no events")
            remarks += [f"{trace.path}: {remark}" for remark in texts]
        if self.alignment.note:
            remarks.append(self.alignment.note)
        return remarks + self.notes
