"""Sums of a range of a traceset, and the rows of the timeline that they belong to."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace.analysis.answers import Answers
from nptltrace.analysis.model import Window, feed_window, finish_model, new_model
from nptltrace.analysis.report.contention import contention_of
from nptltrace.analysis.report.diff import compare
from nptltrace.analysis.report.over_time import over_time
from nptltrace.catalog import BY_ID
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset
from nptltrace.ui.jobs import Jobs
from nptltrace.ui.model_tables import PathPieces
from nptltrace.ui.queries.flame import flame
from nptltrace.ui.queries.full_report import CAUSES, NAMED, find_bugs

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from nptltrace.analysis.report.diff import Difference
    from nptltrace.analysis.report.figures import Contention
    from nptltrace.analysis.report.measures import Run
    from nptltrace.analysis.report.over_time import LockOverTime, Place
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.ui import protocol
    from nptltrace.ui.model_tables import Tables
    from nptltrace.ui.queries.full_report import CyclicOrder
    from nptltrace.ui.queries.rows import Rows

__all__ = ["By", "Earlier", "Ranges", "event_types", "sites_in_use", "with_rows"]

By = Literal["site", "object", "thread"]
_IDS = 1024


class Earlier:
    """An earlier run, to compare the traces with. Its sums are made on demand and kept.

    Args:
        path: The trace of the earlier run.
        aliases: Alias files.
        directories: Where to look first for programs and debug files.
        passed_over: Which frames are no call sites; by default the built-in rule.

    Raises:
        TraceFormatError: The path is not a trace.

    Attributes:
        name: The name of the trace.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        aliases: Sequence[str],
        directories: Sequence[str],
        passed_over: PassedOver | None,
    ) -> None:
        self.name = Path(path).resolve().name
        source = Traceset(path)
        symbols = Symbols(source, read_aliases(aliases), directories, passed_over)
        self._answers = Answers(source, symbols)
        self._lock = Lock()
        self._runs: dict[By, Run] = {}

    def run(self, by: By, step: Callable[[], None]) -> Run:
        """Return the sums of the run; arguments as for `Answers.run`."""
        with self._lock:
            if by not in self._runs:
                self._runs[by] = self._answers.run(by=by, step=step)
            return self._runs[by]

    def remarks(self, later: Traceset) -> list[str]:
        """Return remarks about the run for the user, also in comparison with a later run."""
        source, run = self._answers.traceset, f"{self.name}, the run before"
        remarks = [f"{run}: {text}" for text in (*source.remarks(), *source.damages())]
        levels = [traces.traces[0].info.session.level for traces in (source, later)]
        if all(levels) and levels[0] != levels[1]:
            both = " and ".join(levels)
            remarks.append(
                f"{run}: recorded at another level ({both}): events of one level only differ"
            )
        return remarks


class Ranges:
    """Computes sums of ranges of opened traces, one at a time, in a separate thread.

    Each question raises `NotReady` while the thread computes the answer.

    Args:
        changed: Called now and then during the work on an answer.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._jobs = Jobs(changed)

    def use(self, source: Traceset, symbols: Symbols) -> None:
        """Answer from opened traces. The symbols name addresses of the traces."""
        self._source, self._symbols = source, symbols

    def paused(self) -> AbstractContextManager[None]:
        """Compute nothing inside the `with` block: the opened traces may change there."""
        return self._jobs.paused()

    def forget(self, age_s: float = 0.0) -> None:
        """Forget the answers of this age or older: the traces have changed."""
        self._jobs.forget(age_s)

    def close(self) -> None:
        """Give up the work on an answer."""
        self._jobs.close()

    def _answers(self, window: Window) -> Answers:
        return Answers(self._source, self._symbols, None, (window.begin_ns, window.end_ns))

    def contention(self, window: Window, *, pairs: bool) -> Contention:
        """Return the contention of a range; see `contention_of`."""

        def work(step: Callable[[float], None]) -> Contention:
            self._source.names.learn()
            flags = libptttrack_sums.PATH | (libptttrack_sums.PAIRS if pairs else 0)
            model, _ = _read(self._source, window, flags, step)
            return contention_of(
                model, self._source, self._symbols, named=NAMED, causes=CAUSES, pairs=pairs
            )

        contention: Contention = self._jobs.ask((window, pairs), work)
        return contention

    def bugs(self) -> tuple[protocol.Findings, list[CyclicOrder]]:
        """Return the result of `find_bugs` for all events so far."""
        bugs: tuple[protocol.Findings, list[CyclicOrder]] = self._jobs.ask(
            "bugs", lambda step: find_bugs(self._source, self._symbols, step)
        )
        return bugs

    def path(self) -> PathPieces:
        """Return the critical path of all events so far."""

        def work(step: Callable[[float], None]) -> PathPieces:
            model, _ = _read(self._source, Window(), libptttrack_sums.PATH, step)
            pieces = [piece.copy() for piece in model.path()]
            segments = np.concatenate([model.table("segments")[:0], *pieces])[::-1]
            return PathPieces(segments, model.table("threads"), model.table("objects"))

        path: PathPieces = self._jobs.ask("path", work)
        return path

    def flame(self, window: Window, measure: StackMeasure) -> protocol.Flame:
        """Return the stacks of a range, without rows."""
        graph: protocol.Flame = self._jobs.ask(
            (window, measure), lambda step: flame(self._answers(window), measure, step)
        )
        return graph

    def over_time(
        self, window: Window, locks: Sequence[Place], edges: NDArray[np.int64]
    ) -> list[LockOverTime]:
        """Return some locks over time; see `over_time`."""
        first, last = int(edges[0]), int(edges[-1])

        def work(step: Callable[[float], None]) -> list[LockOverTime]:
            def so_far(ts: int) -> None:
                step(min(max((ts - first) / max(last - first, 1), 0.0), 1.0))

            return over_time(self._source, window, locks, edges, so_far)

        key = (window, tuple(locks), first, last, len(edges))
        over: list[LockOverTime] = self._jobs.ask(key, work)
        return over

    def diff(self, earlier: Earlier, window: Window, by: By) -> Difference:
        """Return the difference between an earlier run and a range of this run."""

        def work(step: Callable[[float], None]) -> Difference:
            before = earlier.run(by, lambda: step(0.0))
            after = self._answers(window).run(by=by, step=lambda: step(0.5))
            return compare([before], [after])

        difference: Difference = self._jobs.ask(("diff", window, by), work)
        return difference

    def statistics(self, window: Window) -> tuple[Contention, NDArray[Any], int]:
        """Return the contention of a range without names, event counts by type, object count."""

        def work(step: Callable[[float], None]) -> tuple[Contention, NDArray[Any], int]:
            model, counts = _read(self._source, window, libptttrack_sums.PATH, step)
            objects = model.table("objects")
            places = objects[(objects["kind"] != 1) & (objects["threads"] > 0)][
                ["process", "address", "kind"]
            ]
            return contention_of(model, self._source, named=0), counts, len(np.unique(places))

        sums: tuple[Contention, NDArray[Any], int] = self._jobs.ask((window,), work)
        return sums


def _read(
    source: Traceset, window: Window, flags: int, step: Callable[[float], None]
) -> tuple[libptttrack_sums.Model, NDArray[Any]]:
    """Return a model of a range, and the number of events of each type in the range."""
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
    names: dict[str, int] = {}
    for number in np.flatnonzero(counts).tolist():
        name = BY_ID[number].name if number in BY_ID else f"EVENT_{number}"
        names[name] = names.get(name, 0) + int(counts[number])
    return dict(sorted(names.items(), key=lambda item: -item[1]))


def with_rows(  # noqa: PLR0917
    document: Any, uncontended: str, by: str, limit: int, rows: Rows, totals: dict[str, int]
) -> protocol.Contention:
    """Return a report in the shape for the page: limited lists, with the rows of the timeline.

    Args:
        document: The report.
        uncontended: The message if nothing was contended.
        by: As for `ptt report --by`.
        limit: How many objects, sites and pairs to list.
        rows: The rows of the timeline.
        totals: How many objects, sites and pairs there are, by the name of the list.
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
    """Return the number of call sites in a report of the whole trace."""
    rows = tables.sites
    busy = (rows["wait_n"].sum(axis=1) > 0) | (rows["hold_n"] > 0) | (rows["caused_ns"] > 0)
    return int(np.count_nonzero(busy[1:]))
