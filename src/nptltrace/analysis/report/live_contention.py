"""Follows a recording that still runs, and reports the contention in its latest interval.

Times and durations are ns; times count from the traceset's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.model import (
    Window,
    add_parents,
    add_purposes,
    add_site_uses,
    begin_window,
    restrict,
    share_memory,
)
from nptltrace.analysis.objects import is_lock
from nptltrace.analysis.recording_state import ended_ns, is_recorded
from nptltrace.analysis.report.naming import NamedObject, Naming
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.trace.reading.prefetch import followed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nptltrace.analysis.model import Counted
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.catalog.tables import WaitClass
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = [
    "Follower", "LiveContention", "LiveFigures", "LiveObject", "LiveSite", "LiveThread", "LiveWait",
]  # fmt: skip

_UNSEEN = 2**63 - 1
_CONTENDED, _IDLE, _UNKNOWN, _TIMEOUT, _CANCELLED = (
    WAIT_CLASSES.index(name) for name in ("contended", "idle", "unknown", "timeout", "cancelled")
)


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """Contended waits in the interval, and since the start.

    Attributes:
        waits: Number of waits that ended in the interval.
        wait_ns: Duration of waits in the interval, also of waits that go on.
        held_ns: Part of `wait_ns` while a thread held the object.
        total_waits: Number of waits that ended since the start.
        total_wait_ns: Duration of waits since the start, also of waits that go on.
        total_held_ns: Part of `total_wait_ns` while a thread held the object.
    """

    waits: int
    wait_ns: int
    held_ns: int
    total_waits: int
    total_wait_ns: int
    total_held_ns: int

    @property
    def wake_ns(self) -> int:
        """Rest of `wait_ns`, until the threads are awake."""
        return self.wait_ns - self.held_ns

    @property
    def total_wake_ns(self) -> int:
        """Rest of `total_wait_ns`, until the threads are awake."""
        return self.total_wait_ns - self.total_held_ns


@dataclass(frozen=True, slots=True)
class LiveObject(NamedObject):
    """An object that threads wait for, or waited for.

    Attributes:
        pid: Process id.
        waiters: Number of threads in a contended wait for the object now.
        holder: The holder now, as the first waiter shows; None if unknown.
        holder_site: Where the holder took the object.
        longest_ns: How long the first waiter has waited.
        figures: Waits for the object.
    """

    pid: int
    waiters: int
    holder: ThreadName | None
    holder_site: str
    longest_ns: int
    figures: LiveFigures


@dataclass(frozen=True, slots=True)
class LiveWait(NamedObject):
    """The current wait of a thread for an object.

    Attributes:
        wait_class: Class of the wait, as far as it is known before the wait ends.
        t_ns: When the wait began.
        dur_ns: How long the wait has lasted so far.
        site: Call site of the wait.
        owner: The thread that holds the object, or None.
    """

    wait_class: WaitClass
    t_ns: int
    dur_ns: int
    site: str
    owner: ThreadName | None


@dataclass(frozen=True, slots=True)
class LiveThread:
    """A thread that lives, or that waited in the interval.

    Attributes:
        thread: The thread.
        wanted: The current wait of the thread, or None.
        held: Number of locks that the thread holds now.
        figures: Waits of the thread.
        idle_ns: Duration of idle waits in the interval.
        caused_ns: How long other threads waited for the thread in the interval, in waits that have
            ended.
    """

    thread: ThreadName
    wanted: LiveWait | None
    held: int
    figures: LiveFigures
    idle_ns: int
    caused_ns: int


@dataclass(frozen=True, slots=True)
class LiveSite:
    """A call site where threads wait, or where a thread took a lock that others waited for.

    Attributes:
        site: The call site as text.
        pid: Process id.
        kind: Kind of the objects that are used there.
        waiters: Number of threads in a contended wait there now.
        figures: Waits that began there.
        caused_ns: How long other threads waited for holds that began there, in the interval.
    """

    site: str
    pid: int
    kind: str
    waiters: int
    figures: LiveFigures
    caused_ns: int


@dataclass(frozen=True, slots=True)
class LiveContention:
    """The contention in an interval of a recording, and the state at its end.

    Attributes:
        now_ns: End of the interval.
        since_ns: Beginning of the interval.
        running: Whether the recording is still running.
        lost: Number of known lost events.
        waiting: Number of threads in a contended wait now.
        unknown_ns: Duration in the interval of waits of class `unknown`.
        given_up: Whether a thread gave up a wait for a lock in the interval.
        uncovered: Modules that the trace does not cover completely, and why.
        figures: Waits of all threads.
        objects: The objects, the most waited for first.
        threads: The threads, the most waiting first.
        sites: The call sites, the most waiting first.
    """

    now_ns: int
    since_ns: int
    running: bool
    lost: int
    waiting: int
    unknown_ns: int
    given_up: bool
    uncovered: list[dict[str, Any]]
    figures: LiveFigures
    objects: list[LiveObject]
    threads: list[LiveThread]
    sites: list[LiveSite]


class Follower:
    """Follows the events of a recording, and reports its contention.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        begin_ns: Count from this time on.
        choose: Returns the things to count, of the threads and objects that are known when it is
            called; None to count all.
    """

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols | None = None,
        *,
        begin_ns: int | None = None,
        choose: Callable[[], Counted] | None = None,
    ) -> None:
        self._choose = choose
        self._source, self._symbols = source, symbols
        self._model = libptttrack_sums.Model()
        self._cursor = libpttread.Cursor(source.reader)
        part = Window(begin_ns, None).of(source)
        self._begin: Window | None = part
        self._begun = part.begin_ns
        self._now = part.begin_ns or 0
        self._threads = 0
        self._chooses = False
        self._known_processes: tuple[int, int] = (0, 0)
        self._known_codes = 0
        self._before: _Sums | None = None

    def read(self, until_ns: int | None = None) -> None:
        """Follow the new events.

        Args:
            until_ns: Stop before this time, in ns; None for the end of the trace.

        Raises:
            NativeError: Memory is out.
        """
        self._learn()
        for buffer in followed(self._source, self._cursor, until_ns):
            self._model.feed(buffer)
        if until_ns is None or not is_recorded(self._source):
            last = max((ns for ns in self._ends() if ns != libptttrack_sums.NEVER), default=0)
            until_ns = last if until_ns is None else min(until_ns, last)
        self._now = max(self._now, until_ns)
        first = self._model.table("threads", copy=False)["first_ns"][1:].min(initial=_UNSEEN)
        if self._begun is None and first != _UNSEEN:
            self._begun = int(first)

    @property
    def now_ns(self) -> int:
        """The end of the followed events, in ns."""
        return self._now

    def refresh(self) -> None:
        """Open the events that the recorder has written meanwhile."""
        self._source.refresh()
        self._cursor.refresh()

    def present(self, named: int | None = None) -> LiveContention:
        """Return the contention since the last call, or since the beginning of the trace.

        Args:
            named: Number of objects, threads and sites to report; None for all.
        """
        # There is no time before the first event.
        begun, now = (0, 0) if self._begun is None else (self._begun, self._now)
        sums = _Sums.of(self._model, begun, now, self._ends())
        before = self._before or _Sums.none(begun)
        report = _View(self._source, self._symbols, self._model, before, sums).present(named)
        self._before = sums
        return report

    def _ends(self) -> list[int]:
        """Return the end of each process, or the last time when the process is known to run."""
        return self._model.ends(self._source.killed_ns(), ended_ns(self._source))

    def _learn(self) -> None:
        """Declare new threads and processes."""
        reader, source = self._source.reader, self._source
        processes = source.processes
        if reader.thread_count() != self._threads:
            for number, (owner, tid) in enumerate(reader.threads()):
                self._model.thread(number, owner, tid)
            self._threads = reader.thread_count()
            self._chooses = True
            source.names.learn()
            add_parents(self._model, source)
        if self._choose is not None and self._chooses:
            counted = self._choose()
            restrict(self._model, counted)
            # The next object at the address of an open choice is not known yet: choose again.
            self._chooses = any(chosen.is_open for chosen in counted.objects or ())
        counts = (len(processes), sum(len(process.shared) for process in processes))
        if counts != self._known_processes:
            self._known_processes = counts
            share_memory(self._model, source)
        codes = sum(len(process.codes) for process in processes)
        if codes != self._known_codes:
            self._known_codes = codes
            add_purposes(self._model, source)
        add_site_uses(self._model, source)
        if self._begin is not None:
            begin_window(self._model, source, self._begin)
            self._begin = None


class _Sums:
    """Sums up to a time by row of the model, with the waits that go on."""

    def __init__(
        self, begun_ns: int, now_ns: int, tables: dict[str, NDArray[Any]], opened: NDArray[Any]
    ) -> None:
        self.now_ns, self.opened = now_ns, opened
        self.waits = {name: rows["wait_n"][:, _CONTENDED] for name, rows in tables.items()}
        self.wait_ns = {
            name: rows["wait_ns"].astype(np.int64) for name, rows in tables.items()
        }  # by class
        self.held_ns = {name: rows["held_ns"].astype(np.int64) for name, rows in tables.items()}
        self.caused = {
            name: rows["caused_ns"].astype(np.int64)
            for name, rows in tables.items()
            if "caused_ns" in (rows.dtype.names or ())
        }
        for name, column in (("objects", "object"), ("threads", "thread"), ("sites", "site")):
            if name in self.wait_ns:
                at = (opened[column], opened["wait_class"])
                before = np.maximum(begun_ns - opened["t_ns"], 0)
                np.add.at(self.wait_ns[name], at, np.maximum(opened["dur_ns"] - before, 0))
                np.add.at(self.held_ns[name], opened[column], opened["held_ns"])

    @classmethod
    def none(cls, now_ns: int) -> _Sums:
        """Return the sums without any event."""
        return cls(now_ns, now_ns, {}, np.zeros(0, np.int64))

    @classmethod
    def of(
        cls, model: libptttrack_sums.Model, begun_ns: int, now_ns: int, ends: list[int]
    ) -> _Sums:
        """Return the sums of the events that a model has seen, from `begun_ns` to `now_ns`.

        A thread of a process that has ended does not wait any more.
        """
        opened = model.waiting(now_ns, ends)
        tables = {name: model.table(name) for name in ("objects", "threads", "sites")}
        sums = cls(begun_ns, now_ns, tables, opened)
        process = model.table("threads", copy=False)["process"][opened["thread"]]
        sums.opened = opened[np.array([*ends, now_ns])[process] >= now_ns]
        return sums


class _View:
    """Reports the contention between two states of a model."""

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols | None,
        model: libptttrack_sums.Model,
        before: _Sums,
        after: _Sums,
    ) -> None:
        self._source, self._before, self._after = source, before, after
        self._rows = {name: model.table(name) for name in ("objects", "threads", "sites")}
        rows = self._rows
        self._names = Naming(source, symbols, rows["threads"], rows["objects"], rows["sites"])
        self._lost = model.lost
        opened = after.opened
        self._contended = opened[opened["wait_class"] == _CONTENDED]

    def present(self, named: int | None) -> LiveContention:
        """Return the figures of an interval, and the waits that go on at its end."""
        source = self._source
        return LiveContention(
            now_ns=self._after.now_ns,
            since_ns=self._before.now_ns,
            running=source.running,
            lost=max(self._lost, source.lost_events()),
            waiting=len(np.unique(self._contended["thread"])),
            unknown_ns=int(self._wait_ns("threads", _UNKNOWN).sum()),
            given_up=self._given_up(),
            uncovered=source.uncovered(),
            figures=self._figures("threads", slice(None)),
            objects=self._objects(named),
            threads=self._threads(named),
            sites=self._sites(named),
        )

    def _given_up(self) -> bool:
        spent = self._wait_ns("objects", _TIMEOUT) + self._wait_ns("objects", _CANCELLED)
        return any(is_lock(self._names.kind(at)) for at in np.flatnonzero(spent).tolist())

    # ---- numbers ----

    def _since(
        self, name: str, after: dict[str, NDArray[Any]], before: dict[str, NDArray[Any]]
    ) -> NDArray[Any]:
        """Return the growth of a column, never negative: a wait may change its class."""
        new = after[name].astype(np.int64)
        old = before.get(name)
        if old is not None:
            new = new.copy()
            new[: len(old)] -= old.astype(np.int64)
        return np.asarray(np.maximum(new, 0))

    def _wait_ns(self, name: str, wait_class: int = _CONTENDED) -> NDArray[Any]:
        after, before = self._after.wait_ns, self._before.wait_ns
        return np.asarray(self._since(name, after, before)[:, wait_class])

    def _figures(self, name: str, at: int | slice) -> LiveFigures:
        """Return the sums of a row, or of all rows."""
        after, before = self._after, self._before
        return LiveFigures(
            waits=int(self._since(name, after.waits, before.waits)[at].sum()),
            wait_ns=int(self._wait_ns(name)[at].sum()),
            held_ns=int(self._since(name, after.held_ns, before.held_ns)[at].sum()),
            total_waits=int(after.waits[name][at].sum()),
            total_wait_ns=int(after.wait_ns[name][at, _CONTENDED].sum()),
            total_held_ns=int(after.held_ns[name][at].sum()),
        )

    def _first_waits(self, column: str) -> dict[int, int]:
        """Return the row of the oldest contended wait by object, thread or site."""
        order = np.argsort(-self._contended["t_ns"], kind="stable")
        return dict(zip(self._contended[column][order].tolist(), order.tolist(), strict=True))

    def _order(
        self, name: str, column: str, named: int | None, *more: NDArray[Any]
    ) -> tuple[list[int], NDArray[Any]]:
        """Return the rows to report, the worst first, and the number of waiters of every row."""
        count = len(self._rows[name])
        waiters = np.bincount(self._contended[column], minlength=count)
        total = self._after.wait_ns[name][:, _CONTENDED]
        keys = (self._wait_ns(name), *more, waiters, total)
        reported = np.any([key > 0 for key in keys], axis=0)
        reported[0] = False  # row 0 stands for none
        order = np.lexsort([-key for key in reversed(keys)])
        return order[reported[order]][:named].tolist(), waiters

    # ---- parts ----

    def _objects(self, named: int | None) -> list[LiveObject]:
        order, waiters = self._order("objects", "object", named)
        first = self._first_waits("object")
        objects = []
        for at in order:
            row = self._rows["objects"][at]
            wait = self._contended[first[at]] if at in first else None
            owner, owner_site, longest = 0, 0, 0
            if wait is not None:
                owner, owner_site = int(wait["owner"]), int(wait["owner_site"])
                longest = int(wait["dur_ns"])
            objects.append(
                LiveObject(
                    kind=self._names.kind(at),
                    address=int(row["address"]),
                    pid=self._names.pid(int(row["process"])),
                    name=self._names.object_name(at),
                    waiters=int(waiters[at]),
                    holder=self._names.thread(owner) if owner else None,
                    holder_site=self._names.site(owner_site) if owner else "",
                    longest_ns=longest,
                    figures=self._figures("objects", at),
                )
            )
        return objects

    def _threads(self, named: int | None) -> list[LiveThread]:
        idle = self._wait_ns("threads", _IDLE)
        caused = self._since("threads", self._after.caused, self._before.caused)
        lives = (self._rows["threads"]["end_ns"] == libptttrack_sums.NEVER) & (
            self._rows["threads"]["first_ns"] != _UNSEEN
        )
        order, _ = self._order("threads", "thread", named, caused, idle, lives.astype(np.int64))
        opened = self._after.opened
        wanted = dict(zip(opened["thread"].tolist(), range(len(opened)), strict=True))
        return [
            LiveThread(
                thread=self._names.thread(at),
                wanted=self._wanted(opened[wanted[at]]) if at in wanted else None,
                held=int(self._rows["threads"]["held"][at]),
                figures=self._figures("threads", at),
                idle_ns=int(idle[at]),
                caused_ns=int(caused[at]),
            )
            for at in order
        ]

    def _wanted(self, wait: Any) -> LiveWait:
        owner, item = int(wait["owner"]), int(wait["object"])
        return LiveWait(
            kind=self._names.kind(item),
            address=self._names.address(item),
            name=self._names.object_name(item),
            wait_class=WAIT_CLASSES[int(wait["wait_class"])],
            t_ns=int(wait["t_ns"]),
            dur_ns=int(wait["dur_ns"]),
            site=self._names.site(int(wait["site"])),
            owner=self._names.thread(owner) if owner else None,
        )

    def _sites(self, named: int | None) -> list[LiveSite]:
        caused = self._since("sites", self._after.caused, self._before.caused)
        order, waiters = self._order("sites", "site", named, caused)
        return [
            LiveSite(
                site=self._names.site(at),
                pid=self._names.pid(int(self._rows["sites"]["process"][at])),
                kind=libptttrack_sums.KINDS.get(int(self._rows["sites"]["kind"][at]), "object"),
                waiters=int(waiters[at]),
                figures=self._figures("sites", at),
                caused_ns=int(caused[at]),
            )
            for at in order
        ]
