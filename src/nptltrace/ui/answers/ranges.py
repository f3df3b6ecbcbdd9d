"""What analysis says of a traceset or a range of it, as documents with the rows beside them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace.analysis.checking.checker import Checker
from nptltrace.analysis.checking.lock_cycles import lock_cycles
from nptltrace.analysis.findings import findings_of
from nptltrace.analysis.model import Window, feed_window, finish_model, new_model
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.contention import contention_of
from nptltrace.analysis.report.diff import compare
from nptltrace.analysis.report.documents import findings_document, report_document
from nptltrace.analysis.report.measures import measure
from nptltrace.analysis.report.over_time import over_time
from nptltrace.analysis.vocabulary import document_types
from nptltrace.catalog import BY_ID
from nptltrace.errors import PttError
from nptltrace.findings.kind import digest, kinds
from nptltrace.trace.traceset import Traceset
from nptltrace.ui import protocol  # noqa: TC001 -- `fits` looks names up in this module
from nptltrace.ui.answers.flame import flame
from nptltrace.ui.answers.thread_lines import kept_threads, text_of_threads
from nptltrace.ui.jobs import Jobs
from nptltrace.ui.model_tables import PathPieces
from nptltrace.ui.shapes import fits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from nptltrace.analysis.checking.lock_cycles import CycleLock, LockCycle
    from nptltrace.analysis.report.diff import Difference
    from nptltrace.analysis.report.figures import Contention
    from nptltrace.analysis.report.over_time import LockOverTime, Place
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.ui.answers.earlier import By, Earlier
    from nptltrace.ui.answers.rows import Rows
    from nptltrace.ui.folder import Folder
    from nptltrace.ui.model_tables import Tables

__all__ = ["NAMED", "CyclicOrder", "Ranges", "Whole", "event_types", "sites_in_use", "with_rows"]

# How many objects, sites and pairs are named at most.
NAMED = 2000
# How many causes of the waits of each thread.
CAUSES = 500
_IDS = 1024
_SLICES = 64


class CyclicOrder(TypedDict):
    """An order of two locks that is in a cycle: of both process, address, kind, and when."""

    held: list[int]
    wanted: list[int]
    suppressed: list[str]


class _Judged(TypedDict):
    """What the checker says, as it is kept."""

    rules: str
    findings: protocol.Findings | None
    cycles: list[CyclicOrder]
    uncontended: str
    all_objects: int


class Whole:
    """What is said of the whole traceset; kept beside the levels of detail.

    Attributes:
        findings: What `ptt check` finds, without rows.
        cycles: The orders of locks that are in cycles; there when the findings are.
        uncontended: What is said where nothing was contended, else empty.
        all_objects: How many objects there are, in the report or not.
    """

    def __init__(self) -> None:
        self.findings: protocol.Findings | None = None
        self.cycles: list[CyclicOrder] = []
        self.uncontended = ""
        self.all_objects = 0
        self._lock = Lock()
        self._report: document_types.Report | None = None
        # A report that was not read yet: it is long, and not always asked for.
        self._kept: bytes | None = None

    @property
    def report(self) -> document_types.Report | None:
        """The report, call sites included; None before there is one.

        Raises:
            PttError: What was kept of it makes no sense.
        """
        with self._lock:
            if self._report is None and self._kept is not None:
                found = None
                with suppress(ValueError, RecursionError):
                    found = json.loads(self._kept)
                if not fits(document_types.Report, found):
                    raise PttError("the report that is kept in .ptt-view is damaged: remove it")
                self._report = found
            return self._report

    def open(self, folder: Folder, identity: bytes, source: Traceset) -> bool:
        """Take what was kept; False if there is nothing that fits.

        Args:
            folder: Where it may lie.
            identity: Of the traces, as `keep` had it.
            source: The traces; it gets what is known of threads.
        """
        fd = folder.read("analysis")
        if fd is None:
            return False
        with suppress(OSError, ValueError, RecursionError), os.fdopen(fd, "rb") as file:
            if file.read(32) != identity:
                return False
            judged = json.loads(file.readline())
            threads, report = file.readline(), file.read()
            names = kept_threads(threads, source)
            if names is not None and fits(_Judged, judged):
                source.know_threads(names)
                # Those of other rules are no use; the rest is.
                self.findings = judged["findings"] if judged["rules"] == digest() else None
                self.cycles = judged["cycles"]
                self.uncontended = judged["uncontended"]
                self.all_objects = judged["all_objects"]
                self._kept = report
                return True
        return False

    def keep(self, folder: Folder, identity: bytes, source: Traceset) -> None:
        """Keep it as far as it is there, and what is known of threads, where there is room."""
        try:
            with os.fdopen(folder.create("analysis"), "wb") as file:
                file.write(identity)
                judged: _Judged = {
                    "rules": digest(), "findings": self.findings, "cycles": self.cycles,
                    "uncontended": self.uncontended, "all_objects": self.all_objects,
                }  # fmt: skip
                for text in (json.dumps(judged), text_of_threads(source.thread_names)):
                    file.write(text.encode("utf-8", "surrogatepass") + b"\n")
                file.write(json.dumps(self.report).encode("utf-8", "surrogatepass"))
        except OSError:
            folder.drop("analysis")
        else:
            folder.keep("analysis")

    def fill(self, model: libptttrack_sums.Model, source: Traceset, symbols: Symbols) -> None:
        """Fill the report in from a finished model."""
        found = contention_of(model, source, symbols, named=NAMED, causes=CAUSES)
        self._report = report_document(found, by="site")
        self.uncontended = found.uncontended
        self.all_objects = found.all_objects

    def find(self, source: Traceset, symbols: Symbols, step: Callable[[float], None]) -> None:
        """Fill the findings in; `step` is as in `checked`."""
        self.findings, self.cycles = checked(source, symbols, step)


def checked(
    source: Traceset, symbols: Symbols, step: Callable[[float], None]
) -> tuple[protocol.Findings, list[CyclicOrder]]:
    """Return what `ptt check` finds in all that there is, without rows, and the cyclic orders.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        step: Called back often with how far it is, 0 to 1; what that raises is let pass.
    """
    checker = Checker(source)
    first, last = source.reader.key_range() or (0, 0)
    for n in range(1, _SLICES):
        step(n / _SLICES)
        key = first + (last - first) * n // _SLICES
        checker.read(source.reader.time_of_key(key))
    checker.read()
    checker.finish()
    source.learn_threads()
    result = findings_of(source, symbols, checker)
    found = [one for one in result.findings if not one.suspect]
    document: Any = findings_document(found, result.uncovered, result.futex_waits)
    document |= {"rows": [], "lost": result.lost, "partial": result.partial}
    document |= {"kinds": list(kinds()), "failures": result.failures}
    return document, _orders_of(lock_cycles(source, checker.check))


def _orders_of(cycles: Sequence[LockCycle]) -> list[CyclicOrder]:
    def place(lock: CycleLock, at_ns: int) -> list[int]:
        return [lock.process, lock.address, lock.kind, at_ns]

    return [
        {
            "held": place(held, wanted.ts_ns),
            "wanted": place(wanted, wanted.ts_ns),
            "suppressed": list(cycle.suppressed),
        }
        for cycle in cycles
        for held, wanted in zip((cycle.locks[-1], *cycle.locks), cycle.locks, strict=False)
    ]


class Ranges:
    """Looks at ranges, one at a time, with traces opened for that alone.

    Args:
        paths: The traces.
        symbols: Names addresses of the same traces.
        changed: Called now and then while an answer is worked out.
    """

    def __init__(
        self, paths: Sequence[Path], symbols: Symbols, changed: Callable[[], None]
    ) -> None:
        self._paths, self._symbols = paths, symbols
        self._jobs = Jobs(changed)
        self._lock = Lock()
        self._source: Traceset | None = None
        self._changes = 0

    def forget(self, age_s: float = 0.0) -> None:
        """Forget the answers, at least those of that age: the traces have changed."""
        with self._lock:
            self._source = None
            self._changes += 1
        self._jobs.forget(age_s)

    def close(self) -> None:
        """Give up what is being worked out."""
        self._jobs.close()

    def contention(self, window: Window, *, pairs: bool) -> Contention:
        """Return the contention of a range; see `libptttrack_sums.contention`.

        Raises:
            Later: It is worked on.
        """

        def find(step: Callable[[float], None]) -> Contention:
            source = self._opened()
            source.learn_threads()
            flags = libptttrack_sums.PATH | (libptttrack_sums.PAIRS if pairs else 0)
            model, _ = _looked_at(source, window, flags, step)
            return contention_of(
                model, source, self._symbols, named=NAMED, causes=CAUSES, pairs=pairs
            )

        found: Contention = self._jobs.ask((window, pairs), find)
        return found

    def checked(self) -> tuple[protocol.Findings, list[CyclicOrder]]:
        """Return what `checked` does, of all that there is by now.

        Raises:
            Later: It is worked on.
        """
        found: tuple[protocol.Findings, list[CyclicOrder]] = self._jobs.ask(
            "checked", lambda step: checked(self._opened(), self._symbols, step)
        )
        return found

    def path(self) -> PathPieces:
        """Return the critical path of all that there is by now.

        Raises:
            Later: It is worked on.
        """

        def find(step: Callable[[float], None]) -> PathPieces:
            model, _ = _looked_at(self._opened(), Window(), libptttrack_sums.PATH, step)
            pieces = [piece.copy() for piece in model.path()]
            segments = np.concatenate([model.table("segments")[:0], *pieces])[::-1]
            return PathPieces(segments, model.table("threads"), model.table("objects"))

        found: PathPieces = self._jobs.ask("path", find)
        return found

    def flame(self, window: Window, shown: StackMeasure) -> protocol.Flame:
        """Return the stacks of a range, without rows.

        Raises:
            Later: It is worked on.
        """
        found: protocol.Flame = self._jobs.ask(
            (window, shown), lambda step: flame(self._paths, self._symbols, window, shown, step)
        )
        return found

    def over_time(
        self, window: Window, locks: Sequence[Place], edges: NDArray[np.int64]
    ) -> list[LockOverTime]:
        """Return some locks over time; see `over_time`.

        Raises:
            Later: It is worked on.
        """
        first, last = int(edges[0]), int(edges[-1])

        def find(step: Callable[[float], None]) -> list[LockOverTime]:
            def so_far(ts: int) -> None:
                step(min(max((ts - first) / max(last - first, 1), 0.0), 1.0))

            return over_time(self._opened(), window, locks, edges, so_far)

        key = (window, tuple(locks), first, last, len(edges))
        found: list[LockOverTime] = self._jobs.ask(key, find)
        return found

    def diff(self, earlier: Earlier, window: Window, by: By) -> Difference:
        """Return what changed since an earlier run, as far as a range of this one goes.

        Raises:
            Later: It is worked on.
        """

        def find(step: Callable[[float], None]) -> Difference:
            before = earlier.run(by, lambda: step(0.0))
            after = measure(
                self._opened(), self._symbols, by=by, scope=Scope(window), step=lambda: step(0.5)
            )
            return compare([before], [after])

        found: Difference = self._jobs.ask(("diff", window, by), find)
        return found

    def statistics(self, window: Window) -> tuple[Contention, NDArray[Any], int]:
        """Return the contention of a range without names, its events by type, its objects.

        Raises:
            Later: It is worked on.
        """

        def find(step: Callable[[float], None]) -> tuple[Contention, NDArray[Any], int]:
            source = self._opened()
            model, counts = _looked_at(source, window, libptttrack_sums.PATH, step)
            objects = model.table("objects")
            places = objects[(objects["kind"] != 1) & (objects["threads"] > 0)][
                ["process", "address", "kind"]
            ]
            return contention_of(model, source, named=0), counts, len(np.unique(places))

        found: tuple[Contention, NDArray[Any], int] = self._jobs.ask((window,), find)
        return found

    def _opened(self) -> Traceset:
        """Return the traces, which stay open while they do not change."""
        with self._lock:
            source, changes = self._source, self._changes
        if source is None:
            source = Traceset(*self._paths)
            self._symbols.of(source)  # which chooses its call sites
            with self._lock:
                # Where they have changed meanwhile, no other answer is from what they were.
                if changes == self._changes:
                    self._source = source
        return source


def _looked_at(
    source: Traceset, window: Window, flags: int, step: Callable[[float], None]
) -> tuple[libptttrack_sums.Model, NDArray[Any]]:
    """Return a model that has seen a range, and how many events of each type there are."""
    model = new_model(source, flags)
    counts = np.zeros(_IDS, np.int64)
    end = source.end_ns() or 0 if window.end_ns is None else window.end_ns
    first = None
    for buffer in feed_window(model, source, window):
        ts = buffer.column("ts")
        counts += np.bincount(buffer.column("id")[window.has(ts)], minlength=_IDS)[:_IDS]
        first = int(ts[0]) if first is None else first
        step(min(max((int(ts[-1]) - first) / max(end - first, 1), 0.0), 1.0))
    finish_model(model, source)
    return model, counts


def event_types(counts: NDArray[Any]) -> dict[str, int]:
    """Return numbers of events by the names of their types, most frequent first."""
    found: dict[str, int] = {}
    for number in np.flatnonzero(counts).tolist():
        name = BY_ID[number].name if number in BY_ID else f"EVENT_{number}"
        found[name] = found.get(name, 0) + int(counts[number])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def with_rows(  # noqa: PLR0917
    document: Any, uncontended: str, by: str, limit: int, rows: Rows, totals: dict[str, int]
) -> protocol.Contention:
    """Return a report as the page wants it: cut to a number of lines, and with their rows.

    Args:
        document: The report.
        uncontended: What is said where nothing was contended.
        by: As `ptt report --by`.
        limit: How many objects, sites and pairs to list.
        rows: The rows of the timeline.
        totals: How many there are of each.
    """
    hidden = {"site": {"pairs"}, "thread,object": {"sites"}}.get(by, {"sites", "pairs"})
    report: Any = {name: value for name, value in document.items() if name not in hidden}
    for name in ("objects", "sites", "pairs"):
        if name in report:
            report[name] = report[name][:limit]
    return {
        "report": report,
        "uncontended": uncontended,
        "object_rows": [
            rows.named_row(o["pid"], o["object"], o["kind"], o["name"], o["init_site"])
            for o in report["objects"]
        ],
        "thread_rows": [
            rows.thread_row(t["pid"], t["tid"], t["start_ns"]) for t in report["threads"]
        ],
        "pair_rows": [
            [
                rows.thread_row(pair["pid"], pair["tid"]),
                rows.named_row(pair["pid"], pair["object"], pair["kind"], pair["object_name"], ""),
            ]
            for pair in report.get("pairs", [])
        ],
        "objects_total": totals.get("objects", len(document["objects"])),
        "sites_total": totals.get("sites", len(document.get("sites", []))),
        "pairs_total": totals.get("pairs", len(document.get("pairs", []))),
    }


def sites_in_use(tables: Tables) -> int:
    """Return how many call sites a report of everything has."""
    rows = tables.sites
    busy = (rows["wait_n"].sum(axis=1) > 0) | (rows["hold_n"] > 0) | (rows["caused_ns"] > 0)
    return int(np.count_nonzero(busy[1:]))
