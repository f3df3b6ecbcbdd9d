"""The thread that reads traces for the viewer, and its results so far.

Questions come in other threads. The worker reads the traces from their beginning, so that the page
can draw all of a large trace after a while. An earlier answer is about the events read so far.
"""

from __future__ import annotations

import errno
from hashlib import sha256
from threading import Condition, Event, RLock, Thread
from typing import TYPE_CHECKING, Any

from nptltrace.analysis.recording_state import is_recorded, killed
from nptltrace.errors import NativeError, PttError, one_line
from nptltrace.trace.reading.watermark import Settled
from nptltrace.trace.traceset import Traceset
from nptltrace.trace.tsdl_reader import read_metadata
from nptltrace.ui.folder import Folder, identity_of
from nptltrace.ui.jobs import NotReady
from nptltrace.ui.levels_of_detail import Levels
from nptltrace.ui.queries.events import EventList
from nptltrace.ui.queries.full_report import FullReport
from nptltrace.ui.queries.naming import Naming
from nptltrace.ui.queries.ranges import Ranges
from nptltrace.ui.queries.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.tsdl_reader import Metadata

__all__ = ["Worker"]

# How many bytes of packets to search for names of threads before anything is shown.
_SEARCHED = 64 << 20
_POLL_S = 0.2
# How old an answer about a range may be while the recording goes on.
_OLD_S = 3.0


class _ViewerEnds(Exception):  # noqa: N818 -- no error
    """The viewer ends: nobody needs the result of the work."""


class Worker:
    """Reads opened traces, goes on while they are recorded, and keeps the results in files.

    Args:
        source: The opened traces. The worker opens them again only if new traces replaced them.
        follow: Whether to take in the events that a recording goes on writing.
        name_addresses: Returns symbols of opened traces.

    Attributes:
        source: The opened traces.
        symbols: Names addresses in the traces.
        naming: Names threads, objects and call sites of the traces.
        events: Lists events of the traces.
        levels: The levels of detail: what the page draws.
        ranges: Computes sums of ranges.
        report: The report and the findings of the whole recording.
        lock: Held by the worker while it changes data, and by each thread that reads this data.
        killed: The unfinished traces of recorders that were killed.
        error: Why the traces could not be read; the empty text if there was no error.
        grows: Whether the recording went on when the worker last looked. Until all of it was read,
            answers are about the events so far.
        closed: Set when the viewer shall end.
    """

    def __init__(
        self, source: Traceset, *, follow: bool, name_addresses: Callable[[Traceset], Symbols]
    ) -> None:
        self._follow, self._name_addresses = follow, name_addresses
        self.lock = RLock()
        self._folder = Folder(source)
        self.ranges = Ranges(self._notify)
        self._use(source)
        self.levels = Levels(source, self._folder, self.lock)
        self.report = FullReport()
        self._rows: Rows | None = None
        self._changed = Condition()
        self._version = 0
        self.error = ""
        self.grows = False
        self.killed: list[Path] = []
        self._is_recorded()
        self._stop = Event()
        self.closed = False
        self._thread = Thread(target=self._work, name="levels of detail", daemon=True)

    def _use(self, source: Traceset) -> None:
        """Answer from opened traces. Called again when the traces have changed."""
        self.source = source
        self.symbols = self._name_addresses(source)
        self.naming = Naming(source, self.symbols)
        uuids = b"".join(trace.metadata.uuid.bytes for trace in source.traces)
        self.events = EventList(source, self.symbols, self.naming, sha256(uuids).hexdigest()[:12])
        self.ranges.use(source, self.symbols)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def wait_ready(self) -> None:
        """Wait until everything was read and searched for bugs."""
        self._thread.join()

    def stop(self) -> None:
        """End the waits for a change or an answer. A signal handler may call this function."""
        self.closed = True
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End."""
        self.stop()
        self._stop.set()
        self.ranges.close()
        if self._thread.is_alive():
            self._thread.join(5)
        self.levels.close()
        self._folder.close()

    def wait_change(self, version: int, timeout_s: float) -> int:
        """Return the version of the state as soon as it differs from `version`, or in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version or self.closed, timeout_s)
            return self._version

    def _notify(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    # ---- results so far ----

    def rows(self) -> Rows:
        """Return the rows so far.

        Raises:
            NotReady: There are no rows yet.
        """
        with self.lock:
            tables = None if self.levels.detail is None else self.levels.tables
            self.require(tables)
            assert tables is not None  # noqa: S101
            if self._rows is None or self._rows.tables is not tables:
                self._rows = Rows(tables, self.naming, self.levels.lanes, self.levels.turns)
            return self._rows

    def require(self, result: Any) -> None:
        """Make sure that a result of the worker is there.

        Raises:
            NotReady: The result is None so far.
            PttError: The result will never be there.
        """
        if result is None:
            if self.error:
                raise PttError(self.error)
            raise NotReady(self.levels.progress)

    def is_partial(self, result: Any) -> bool:
        """Return whether to answer about the events so far, as a result is not there yet.

        Raises:
            NotReady: The result comes later: no recording goes on.
            PttError: The result will never be there.
        """
        if result is None and self.grows and not self.error:
            return True
        self.require(result)
        return False

    # ---- the thread ----

    def _work(self) -> None:
        try:
            if not self._open_kept():
                self.source.names.learn(_SEARCHED)
                self._read_somewhere()
                if not self._stop.is_set():
                    self._make_report()
            self._notify()
            if not self._stop.is_set():
                self._find_bugs()
        except _ViewerEnds:
            pass
        except (PttError, OSError, MemoryError) as error:
            self.error = one_line(error) or type(error).__name__
            if _lacks_room(error):
                self.error += f", in {self._folder.place}: make room there, or set TMPDIR"
        self._notify()

    def _open_kept(self) -> bool:
        """Open the kept files of the traces; False if a file is missing."""
        if self._follow and self._is_recorded():
            return False
        return self.report.open(self._folder, self._identity(), self.source) and self.levels.open()

    def _identity(self) -> bytes:
        """Return a digest for the kept report, which depends on the names of call sites."""
        rule = "\n".join(self.symbols.passed_over.patterns)
        return sha256(identity_of(self.source) + rule.encode()).digest()

    def _read_somewhere(self) -> None:
        """Read the traces; keep files in a temporary directory if the traces have no room."""
        try:
            self._read()
        except (NativeError, OSError) as error:
            if not _lacks_room(error):
                raise
            self.levels.close()
            if not self._folder.leave():
                raise
            with self.lock:
                self.levels = Levels(self.source, self._folder, self.lock)
            self._read()

    def _read(self) -> None:
        """Read the traces, and go on while they are recorded."""
        levels = self.levels
        levels.begin()
        settled = Settled(self.source)
        while not self._stop.is_set():
            running = self._follow and self._is_recorded()
            self.grows |= running
            if self.killed and not running:
                self._refresh()
            if not running:
                break
            levels.read(settled.until_ns(), self._stop.is_set, self._notify)
            levels.show()
            self._stop.wait(_POLL_S)
            self._refresh()
            self._notify()
        # `_finish` reads a recording again after its end.
        if not self.grows or not self._described_anew():
            levels.read(None, self._stop.is_set, self._notify)
        self.ranges.forget()
        if not self._stop.is_set():
            self._finish()
            self._notify()

    def _is_recorded(self) -> bool:
        """Return whether one of the traces grows; find the traces of killed recorders."""
        grows = is_recorded(self.source)  # first: a recorder may die between the two calls
        self.killed = killed(self.source)
        return grows

    def _refresh(self) -> None:
        """Take in the packets written since the last call, while nobody else reads the traces."""
        with self.ranges.paused(), self.lock:
            threads = len(self.source.thread_ids)
            self.levels.refresh()
            self.events.refresh()
            if len(self.source.thread_ids) != threads:
                self.source.names.learn()
        self.ranges.forget(_OLD_S)

    def _finish(self) -> None:
        """Finish the levels of detail. Read again if the recorders have changed the metadata.

        A recorder measures the speed of its clock, and writes it at the end of the recording.
        """
        metadata, source = self._described_anew(), self.source
        if not metadata:
            self.levels.finish()
            return
        uuids = [trace.metadata.uuid for trace in source.traces]
        if [described.uuid for described in metadata] == uuids:
            with self.ranges.paused(), self.lock:
                source.describe_anew(metadata)
                self._use(source)
            self.ranges.forget()
            self._notify()
        else:  # new traces have replaced these traces
            source = Traceset(*(trace.path for trace in source.traces))
            self._name_addresses(source)  # also chooses the call sites
        source.names.learn(_SEARCHED)
        levels = Levels(source, self._folder, self.lock)
        levels.begin()
        levels.read(None, self._stop.is_set, self._notify)
        if not self._stop.is_set():
            levels.finish()
            with self.ranges.paused(), self.lock:
                self.levels = levels
                if source is not self.source:
                    self._use(source)
            self.ranges.forget()

    def _described_anew(self) -> list[Metadata]:
        """Return the metadata of the traces if a recorder has changed it; else an empty list."""
        metadata = [read_metadata(trace.path) for trace in self.source.traces]
        known = [trace.metadata.text for trace in self.source.traces]
        return [] if [described.text for described in metadata] == known else metadata

    def _make_report(self) -> None:
        """Make the report of the whole recording from the model."""
        levels = self.levels
        assert levels.model is not None  # noqa: S101
        self.source.names.learn()
        self._rows = None
        self.report.fill(levels.model, self.source, self.symbols)
        levels.model = None
        self.report.keep(self._folder, self._identity(), self.source)

    def _find_bugs(self) -> None:
        """Search the whole recording for bugs, unless that was done before."""
        if self.report.findings is None:
            self.report.find(self.source, self.symbols, self._go_on)
            self.report.keep(self._folder, self._identity(), self.source)

    def _go_on(self, _: float) -> None:
        """Give up the work if the viewer ends."""
        if self._stop.is_set():
            raise _ViewerEnds


def _lacks_room(error: Exception) -> bool:
    return getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}
