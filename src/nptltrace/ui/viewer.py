"""The answers of the viewer. Each endpoint of `protocol` is a method of `Viewer` of the same name.

A `Worker` reads the traces. The modules of `queries` make the answers from its results.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from nptltrace._binding import libpttread
from nptltrace._version import __version__
from nptltrace.analysis.cutting import write_cut
from nptltrace.analysis.model import Window
from nptltrace.analysis.report.documents import diff_document, report_document, uncovered_modules
from nptltrace.analysis.vocabulary import document_types
from nptltrace.errors import PttError, UsageError
from nptltrace.trace.copying import Part, default_output
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset
from nptltrace.ui import protocol
from nptltrace.ui.jobs import NotReady
from nptltrace.ui.queries import drawing, trace_info
from nptltrace.ui.queries.events import MAX_COUNT, Filters
from nptltrace.ui.queries.flame import MAX_STACKS, with_threads
from nptltrace.ui.queries.full_report import NAMED
from nptltrace.ui.queries.lock_order import order as lock_order
from nptltrace.ui.queries.over_time import edges_of, locks_over_time, rows_waited_for
from nptltrace.ui.queries.ranges import Earlier, event_types, sites_in_use, with_rows
from nptltrace.ui.queries.search import hits
from nptltrace.ui.queries.waits import WaitFilters, wait_chain, wait_list
from nptltrace.ui.worker import Worker

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.ui.queries.full_report import CyclicOrder
    from nptltrace.ui.queries.ranges import By
    from nptltrace.ui.queries.rows import Rows

__all__ = ["NotFound", "Viewer"]

# How many events of the same time to search for the call that began a hold.
_AT_ONCE = 4
_HITS = 1000
_LISTED = 10_000
_UNSEEN = 2**63 - 1


class NotFound(PttError):  # noqa: N818 -- reads as the sentence it reports
    """The trace has no such wait or hold."""


class Viewer:
    """Answers the questions of the page. The methods are the endpoints of `protocol`.

    Args:
        paths: Trace directories.
        follow: Whether to take in the events that a recording goes on writing.
        aliases: Alias files.
        directories: Where to look first for programs and debug files.
        source: The same traces, if the caller has opened them.
        passed_over: Which frames are no call sites; by default the built-in rule.
        before: Trace of an earlier run, to compare the traces with.

    Raises:
        TraceFormatError: A path is not a trace.
        UsageError: The traces cannot be read together.

    Attributes:
        begins_with: The event filters that the page begins with; `open_at` sets them.
        looking: How many pages are open.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        follow: bool = False,
        aliases: Sequence[str] = (),
        directories: Sequence[str] = (),
        source: Traceset | None = None,
        passed_over: PassedOver | None = None,
        before: str | os.PathLike[str] | None = None,
    ) -> None:
        self._earlier = (
            None if before is None else Earlier(before, aliases, directories, passed_over)
        )
        self._paths = [Path(path) for path in paths]
        self._follow = follow
        self._worker = Worker(
            source or Traceset(*paths),
            follow=follow,
            name_addresses=lambda traceset: Symbols(
                traceset, read_aliases(aliases), directories, passed_over
            ),
        )
        self._lock = self._worker.lock
        self._view = Window()
        self.begins_with: dict[str, str] = {}
        self.looking = 0

    @property
    def closed(self) -> bool:
        """Whether the viewer shall end."""
        return self._worker.closed

    def remarks(self) -> list[str]:
        """Return remarks about the traces for the user, a sentence each."""
        source = self._worker.source
        return [
            *trace_info.remarks(source, self._worker.killed),
            *map(str, source.damages()),
            *self._remarks_before(),
        ]

    def _remarks_before(self) -> list[str]:
        """Return remarks about the earlier run for the user, a sentence each."""
        return [] if self._earlier is None else self._earlier.remarks(self._worker.source)

    def open_at(self, window: Window, filters: dict[str, str]) -> None:
        """Choose the first view of the page.

        Args:
            window: The part that the page shows and marks.
            filters: Which events the page lists: text parameters of `event-list`, by name.
        """
        self._view, self.begins_with = window, filters

    def start(self) -> None:
        """Begin to read the trace."""
        self._worker.start()

    def wait_ready(self) -> None:
        """Wait until everything was read and searched for bugs."""
        self._worker.wait_ready()

    def stop(self) -> None:
        """End the waits for a change or an answer. A signal handler may call this function."""
        self._worker.stop()

    def close(self) -> None:
        """End."""
        self._worker.close()

    # ---- ranges ----

    def _range(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Return a range. -1 stands for the start or the end of the whole trace."""
        first, last = self._ends()
        begin = first if from_ns == -1 else from_ns
        end = last + 1 if to_ns == -1 else to_ns
        if begin >= end:
            raise UsageError("the range is empty")
        return begin, end

    def _ends(self) -> tuple[int, int]:
        """Return the times of the first event and of the end: see `Levels.end_ns`."""
        with self._lock:
            source, levels = self._worker.source, self._worker.levels
            first = source.first_ns()
            if first is None:
                return 0, 0
            if levels.tables is not None:  # the first events of a packet may be lost
                first = int(levels.tables.threads["first_ns"][1:].min(initial=_UNSEEN))
                if first == _UNSEEN:
                    return 0, 0
            return first, levels.end_ns

    # ---- the open traces ----

    def wait_change(self, version: int, timeout: float) -> protocol.Live:
        """Return the state as soon as its version differs from `version`, or after the timeout.

        Args:
            version: The version that the caller knows.
            timeout: How long to wait at most, in seconds.
        """
        now = self._worker.wait_change(version, timeout)
        info = self.trace()
        return {
            "version": now,
            "state": info["state"],
            "end_ns": info["end_ns"],
            "events": info["events"],
            "lost": info["lost"],
            "threads": info["threads"],
            "objects": info["objects"],
            "detail": info["detail"],
            "analysed": self._worker.report.findings is not None,
            "message": self._worker.error,
        }

    def trace(self) -> protocol.TraceInfo:
        """Answer `trace`."""
        worker = self._worker
        with self._lock:
            source, levels, tables = worker.source, worker.levels, worker.levels.tables
            losses = trace_info.losses(source)
            first, last = self._ends()
            rows = worker.rows() if tables is not None else None
            return {
                "name": ", ".join(path.name for path in self._paths),
                "paths": [str(path) for path in self._paths],
                "version": __version__,
                "start_unix_ns": source.start_unix_ns,
                "first_ns": first,
                "end_ns": last,
                "events": sum(source.reader.trace_info(t.number).events for t in source.traces),
                "lost": sum(loss["count"] for loss in losses),
                "level": ", ".join(dict.fromkeys(t.info.session.level for t in source.traces)),
                "state": trace_info.state(source, worker.killed),
                "follow": self._follow,
                "processes": trace_info.processes(source),
                "threads": rows.count("thread") if rows else len(source.thread_ids),
                "objects": rows.count("object") if rows else 0,
                "waits": int(tables.threads["wait_n"].sum()) if tables else 0,
                "holds": int(tables.threads["hold_n"].sum()) if tables else 0,
                "losses": losses,
                "uncovered": uncovered_modules(source.uncovered()),
                "damages": [str(damage) for damage in source.damages()[:_HITS]],
                "remarks": trace_info.remarks(source, worker.killed) + self._remarks_before(),
                "view": _fragment(self._view, self.begins_with, first, last),
                "before": "" if self._earlier is None else self._earlier.name,
                "detail": {
                    "ready": levels.ready,
                    "progress": levels.progress,
                    "until_ns": levels.until_ns,
                    "error": worker.error,
                },
            }

    # ---- drawing ----

    def rows(
        self, *, by: str, sort: str, filter: str, rows: list[int], offset: int, limit: int  # noqa: A002
    ) -> pa.Table:  # fmt: skip
        """Answer `rows`."""
        with self._lock:
            return self._worker.rows().table(
                by, sort=sort, text=filter, rows=rows, offset=offset, limit=limit
            )

    def spans(self, by: str, rows: list[int], from_ns: int, to_ns: int, width: int) -> pa.Table:
        """Answer `spans`."""
        return self.drawn(by, rows, *self._range(from_ns, to_ns), _narrowed(width, rows))

    def drawn(self, by: str, rows: list[int], begin: int, end: int, width: int) -> pa.Table:
        """Return the spans to draw in any number of rows, at any width in pixels."""
        with self._lock:
            tables, levels = self._worker.rows().tables, self._worker.levels
            spans = levels.spans(by, rows, begin, end, drawing.bin_width(begin, end, width))
            until_ns = (levels.ongoing or levels).until_ns
        return drawing.span_table(spans, by, tables, until_ns)

    def arrows(self, rows: list[int], from_ns: int, to_ns: int, width: int, limit: int) -> pa.Table:
        """Answer `arrows`."""
        with self._lock:
            tables, detail = self._worker.rows().tables, self._worker.levels.detail
            begin, end = self._range(from_ns, to_ns)
            assert detail is not None  # noqa: S101
            bin_ns = drawing.bin_width(begin, end, _narrowed(width, rows))
            spans = detail.spans("thread", rows, begin, end, bin_ns)
            return drawing.arrow_table(spans, detail, tables, limit)

    def overview(self, width: int) -> pa.Table:
        """Answer `overview`."""
        width = min(max(width, 1), protocol.MAX_WIDTH)
        with self._lock:
            begin, end = self._range(-1, -1)
            levels, reader = self._worker.levels, self._worker.source.reader
            bins = None if levels.detail is None else levels.detail.overview()
            # The numbers of events, from the headers of packets, and of lost events.
            density, lost = reader.density(begin, max((end - begin) // width, 1), width)
            ongoing, tables, is_counted = levels.ongoing, levels.tables, levels.ready
        findings = self._worker.report.findings
        times = [] if findings is None else [finding["ts_ns"] for finding in findings["findings"]]
        return drawing.overview_table(
            begin, end, width, None if is_counted else np.asarray(density), bins, ongoing, tables,
            times, np.asarray(lost),
        )  # fmt: skip

    # ---- details ----

    def wait(self, id: int) -> protocol.WaitChain:  # noqa: A002
        """Answer `wait`."""
        with self._lock:
            chain = wait_chain(self._worker.levels, self._worker.rows(), id)
        if not chain:
            raise NotFound(f"there is no wait {id}")
        return {"chain": chain}

    def waits(
        self, *, from_ns: int, to_ns: int, least_ns: int, wait_class: str, thread: list[int],
        object: list[int], site: str, limit: int,  # noqa: A002
    ) -> pa.Table:  # fmt: skip
        """Answer `wait-list`."""
        with self._lock:
            rows, levels = self._worker.rows(), self._worker.levels
            assert levels.detail is not None  # noqa: S101
            begin, end = self._range(from_ns, to_ns)
            wanted = WaitFilters(begin, end, least_ns, wait_class, thread, object, site)
            return wait_list(levels.detail, levels.ongoing, rows, wanted, min(limit, _LISTED))

    def hold(self, row: int, lane: int, t_ns: int) -> protocol.Hold:
        """Answer `hold`."""
        with self._lock:
            rows = self._worker.rows()
            span, thread = self._worker.levels.hold(row, lane, t_ns), rows.thread(row)
            object_ = None if span is None else rows.object(int(span["other"]))
            if span is None or thread is None or object_ is None:
                raise NotFound("nothing was held at that place and time")
            begin, end = int(span["t_ns"]), int(span["t_ns"] + span["dur_ns"])
            is_open = bool(span["flags"] & protocol.FLAGS["open"])
            events = Filters(threads=rows.thread_numbers([row]), objects=[object_["row"]])
            return {
                "t_ns": begin,
                "dur_ns": end - begin,
                "open": is_open,
                "mode": "shared" if protocol.STATES[span["state"]] == "shared" else "exclusive",
                "max_waiters": int(span["depth"]),
                "thread": thread,
                "object": object_,
                "site": self._site_at(begin, events, rows),
                "stack": self._worker.events.stack_at(begin, _AT_ONCE, events, rows),
                "release_site": "" if is_open else self._site_at(end, events, rows),
            }

    def _site_at(self, t_ns: int, filters: Filters, rows: Rows) -> str:
        """Return the call site of the first event at a time that has a call site."""
        # The call may have been recorded at the same time, and an event may lack the site.
        events = self._worker.events.forward("", t_ns, _AT_ONCE, filters, rows)
        for event in events.to_pylist():
            if event["ts_ns"] == t_ns and event["site"]:
                return str(event["site"])
        return ""

    def events(
        self, *, position: str, t_ns: int, direction: str, count: int, thread: list[int],
        object: list[int], event: str, site: str, pid: str, tid: str, on: str,  # noqa: A002
        text: str, readings: str,
    ) -> pa.Table:  # fmt: skip
        """Answer `event-list`."""
        with self._lock:
            try:
                rows: Rows | None = self._worker.rows()
            except NotReady:
                if thread or object:
                    raise
                rows = None
            filters = Filters(
                threads=rows.thread_numbers(thread) if rows and thread else None,
                objects=object or None,
                event=event, site=site, pid=pid, tid=tid, on=on, text=text,
                readings=readings == "shown",
            )  # fmt: skip
            events = self._worker.events
            ask = events.forward if direction == "forward" else events.backward
            return ask(position, t_ns, min(max(count, 1), MAX_COUNT), filters, rows)

    def search(self, q: str, limit: int) -> protocol.Hits:
        """Answer `search`."""
        limit = min(max(limit, 0), _HITS)
        with self._lock:
            return hits(q, limit, self._worker.rows(), self._worker.report.findings)

    # ---- analysis ----

    def contention(self, by: str, from_ns: int, to_ns: int, limit: int) -> protocol.Contention:
        """Answer `contention`."""
        limit = min(max(limit, 0), NAMED)
        worker, report = self._worker, self._worker.report
        is_whole = from_ns == -1 and to_ns == -1
        if is_whole and by != "thread,object" and not worker.is_partial(report.report):
            document: Any = report.report
            uncontended, sites = report.uncontended, sites_in_use(worker.rows().tables)
            totals = {"objects": report.all_objects, "sites": sites}
        else:
            pairs = by == "thread,object"
            contention = worker.ranges.contention(_window(from_ns, to_ns), pairs=pairs)
            document = report_document(contention, by=by)
            uncontended, totals = contention.uncontended, {"objects": contention.all_objects}
        with self._lock:
            return with_rows(document, uncontended, by, limit, worker.rows(), totals)

    def flame(self, show: StackMeasure, from_ns: int, to_ns: int, limit: int) -> protocol.Flame:
        """Answer `flame`."""
        self._worker.is_partial(self._worker.levels.ready or None)
        graph = self._worker.ranges.flame(_window(from_ns, to_ns), show)
        row_of = self._worker.rows().thread_row
        return with_threads(graph, row_of, min(max(limit, 0), MAX_STACKS))

    def diff(self, by: By, from_ns: int, to_ns: int) -> document_types.Diff:
        """Answer `diff`."""
        if self._earlier is None:
            raise UsageError(
                "there is no run to compare with: name an earlier run with ptt ui --before"
            )
        difference = self._worker.ranges.diff(self._earlier, _window(from_ns, to_ns), by)
        return diff_document(difference, by=by, per="run")

    def over_time(
        self, *, object: list[int], from_ns: int, to_ns: int, bins: int, limit: int,  # noqa: A002
    ) -> protocol.OverTime:  # fmt: skip
        """Answer `over-time`."""
        limit = min(max(limit, 0), protocol.MAX_LOCKS)
        wanted = object or rows_waited_for(self.contention("object", from_ns, to_ns, NAMED), limit)
        edges = edges_of(*self._range(from_ns, to_ns), bins)
        rows = self._worker.rows()
        wanted = [row for row in wanted[:limit] if 0 < row < len(rows.tables.first)]
        places = rows.object_places(wanted)
        locks = self._worker.ranges.over_time(_window(from_ns, to_ns), places, edges)
        return locks_over_time(edges, locks, wanted, rows)

    def statistics(self, from_ns: int, to_ns: int) -> protocol.Statistics:
        """Answer `statistics`."""
        begin, end = self._range(from_ns, to_ns)
        # The whole trace also has context switches before the first event of a thread.
        window = _window(from_ns, to_ns)
        contention, counts, objects = self._worker.ranges.statistics(window)
        document: Any = report_document(contention, by="object")
        wanted = document_types.Figures.__required_keys__
        figures: Any = {name: value for name, value in document.items() if name in wanted}
        return {
            "from_ns": begin,
            "to_ns": end,
            "events": int(counts.sum()),
            "event_types": event_types(counts),
            "threads": len(contention.threads),
            "objects": objects,
            "figures": figures,
            "blocked_ns": contention.figures.blocked_ns,
            "running_ns": sum(thread.running_ns for thread in contention.threads),
        }

    def findings(self) -> protocol.Findings:
        """Answer `findings`."""
        findings, _ = self._bugs()
        rows = self._worker.rows()
        return {
            **findings,
            "rows": [
                {
                    "threads": [
                        rows.thread_row(finding["pid"], tid, finding["ts_ns"])
                        for tid in finding["threads"]
                    ],
                    "objects": [
                        rows.object_row(finding["pid"], address, finding["ts_ns"])
                        for address in finding["objects"]
                    ],
                }
                for finding in findings["findings"]
            ],
        }

    def _bugs(self) -> tuple[protocol.Findings, list[CyclicOrder]]:
        """Return the findings of `ptt check`, and the lock orders that are in cycles.

        Raises:
            NotReady: The search is not over.
        """
        report = self._worker.report
        findings = report.findings
        if self._worker.is_partial(findings):
            return self._worker.ranges.bugs()
        assert findings is not None  # noqa: S101
        return findings, report.cycles

    def critical(self) -> protocol.Critical:
        """Answer `critical`."""
        report = self._worker.report.report
        if self._worker.is_partial(report):
            contention = self._worker.ranges.contention(Window(), pairs=False)
            report = report_document(contention, by="object")
        assert report is not None  # noqa: S101
        path, rows = report["critical_path"], self._worker.rows()
        return {
            "path": path,
            "thread_rows": [rows.thread_row(t["pid"], t["tid"]) for t in path["threads"]],
        }

    def path(self, from_ns: int, to_ns: int, width: int) -> pa.Table:
        """Answer `path`."""
        begin, end = self._range(from_ns, to_ns)
        rows = self._worker.rows()
        tables = rows.tables
        if self._worker.is_partial(self._worker.levels.ready or None):
            pieces = rows.of_pieces(self._worker.ranges.path())
        else:
            pieces = tables.segments, tables.rows(tables.segments["object"])
        return drawing.path_table(*pieces, begin, end, drawing.bin_width(begin, end, width))

    def order(self, limit: int) -> protocol.Order:
        """Answer `order`."""
        _, cycles = self._bugs()
        with self._lock:
            return lock_order(self._worker.rows(), cycles, min(max(limit, 0), NAMED))

    # ---- files to write ----

    def cut(self, from_ns: int, to_ns: int) -> protocol.Written:
        """Answer `cut`."""
        path = plain = default_output(self._paths[0], "cut")
        number = 1
        while path.exists():
            number += 1
            path = plain.with_name(f"{plain.stem}-{number}{plain.suffix}")
        # The worker waits meanwhile: it must not read on before the part has been written.
        with self._worker.ranges.paused():
            begin, end = self._range(from_ns, to_ns)
            source = self._worker.source
            cursor = libpttread.Cursor(source.reader)
            cursor.seek_key(source.reader.key_of_time(begin))
            last = libpttread.Position(source.reader.key_of_time(end), 0, 0, 0, 0)
            part = Part(cursor.place(), last, begin_ns=begin, end_ns=end)
            written = write_cut(source, path, part)
        return {"path": str(written.path), "events": written.events}


def _window(from_ns: int, to_ns: int) -> Window:
    """Return a range. -1 stands for the start or the end of the whole trace."""
    return Window(None if from_ns == -1 else from_ns, None if to_ns == -1 else to_ns)


def _narrowed(width: int, rows: list[int]) -> int:
    """Return the width for drawing so many rows, in pixels: at most `width`."""
    return min(width, protocol.MAX_DRAWN // max(len(rows), 1))


def _fragment(window: Window, filters: dict[str, str], first_ns: int, end_ns: int) -> str:
    """Return the fragment of an address that selects a part of a trace and filters."""
    begin, end = window.begin_ns, window.end_ns
    part = {}
    if (begin, end) != (None, None):
        whole = (first_ns if begin is None else begin, end_ns if end is None else end)
        part = dict.fromkeys(("t", "mark"), "{}-{}".format(*whole))
    chosen = {f"f.{name}": text for name, text in filters.items() if text}
    return urlencode(part | chosen)
