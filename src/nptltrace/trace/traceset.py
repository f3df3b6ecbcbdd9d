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

# Of a trace that was cut out of another: the events that led to its beginning.
BEFORE = "info/before"


class Traceset(OpenTraces):
    """Traces opened for reading, with the names of their threads and the call sites of events.

    Args:
        paths: Trace directories, and logs of POSIX trace streams.

    Raises:
        TraceFormatError: A path is not a trace.
        UsageError: They cannot be read as one traceset.

    Attributes:
        names: Names the threads.
        chosen: Call sites that are chosen from stacks.
        python: What objects of Python interpreters are for.
        notes: Further remarks, of whoever works with the traces; see `remarks`.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        super().__init__(*paths)
        self.names = ThreadNaming(self)
        self.chosen = ChosenSites(self)
        self.python = PythonObjects(self)
        self.notes: list[str] = []
        self._before: list[tuple[TraceFiles, Traceset]] | None = None

    def refresh(self) -> None:
        """Take in what has been written since. No other thread may read meanwhile."""
        self._renew()

    def _renew(self) -> None:
        self.take_in()
        self.names.forget()
        self.python.forget()
        self._before = None
        self.chosen.update()

    def describe_anew(self, metadata: Iterable[Metadata]) -> None:
        """Take in what the recorders now say of the traces, and what has been written since.

        Args:
            metadata: The present metadata of each trace. When a recording ends, they say how fast
                its clock was.
        """
        for trace, described in zip(self.traces, metadata, strict=True):
            trace.metadata = described
        self._renew()

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Have events with a stack come from a call site that is chosen from it; see `ChosenSites`.

        Args:
            choose: Returns call sites by numbers of stacks, where they differ from those recorded.
            uses: Returns the call sites that lie in a wrapper, or where threads sleep.
        """
        self.chosen.choose(choose, uses)

    def before(self) -> list[tuple[TraceFiles, Traceset]]:
        """Return for traces that were cut out of others the events that led to their beginnings.

        They are in no other way a part of the traceset. Times are those of the traceset.
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
            use: What the digest is for; another use has another digest.
        """
        from hashlib import sha256

        digest = sha256(use.encode())
        # A recording that was followed has its processes and threads in the order they came in.
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
        """Return the modules of which not all that they do is in the traces, and why."""
        return [item for trace in self.traces for item in trace.info.uncovered]

    def remarks(self) -> list[str]:
        """Return what a reader of the results should know, a sentence each."""
        found: list[str] = []
        for trace in self.traces:
            found += [f"{trace.path}: {remark}" for remark in trace.info.remarks]
            if trace.info.session.filter:
                chosen = trace.info.session.filter
                found.append(
                    f"{trace.path}: recorded with --filter {chosen}: other events are not there"
                )
            without = trace.info.session.number("events_without_site")
            if without:
                have = plural(without, "event has", "events have")
                found.append(
                    f"{trace.path}: {without} {have} no call site: "
                    "their process has more of them than there are numbers"
                )
            without = trace.info.session.number("events_without_stack")
            if without:
                have = plural(without, "event has", "events have")
                found.append(
                    f"{trace.path}: {without} {have} no call stack: the call was not found in it, "
                    "or its process has too many"
                )
            if trace.info.session.raw.get("buffers_shortened"):
                found.append(
                    f"{trace.path}: another program shortened the buffers of the recording: "
                    "the events in them are lost, and nobody knows how many"
                )
            if trace.info.session.raw.get("counts_overwritten"):
                found.append(
                    f"{trace.path}: the program overwrote counts of the tracer in its memory: "
                    "how many events are lost is not known"
                )
            missing = self.missing_events(trace)
            if missing:
                have = plural(missing, "event that was", "events that were")
                found.append(
                    f"{trace.path}: {missing} {have} recorded are not in it: "
                    "files are missing or empty"
                )
            if self.reader.trace_info(trace.number).packets == 0 and not trace.running:
                found.append(f"{trace.path}: holds no events")
        if self.alignment.note:
            found.append(self.alignment.note)
        return found + self.notes
