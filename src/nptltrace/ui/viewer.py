"""What the viewer answers from: opened traces, the levels of detail, and what analysis found.

Questions come in threads of their own. A worker reads the trace from its beginning, so that what is
drawn is there after a while even of a large one; whoever asks meanwhile sees what there is by then.
"""

from __future__ import annotations

import errno
from hashlib import sha256
from pathlib import Path
from threading import Condition, Event, RLock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._version import __version__
from nptltrace.analysis.cutting import write_cut
from nptltrace.analysis.model import Window
from nptltrace.analysis.recording_state import is_recorded, killed
from nptltrace.analysis.report.documents import (
    diff_document,
    report_document,
    uncovered_modules,
)
from nptltrace.analysis.vocabulary import document_types
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.errors import NativeError, PttError, UsageError, one_line
from nptltrace.trace.copying import Part, default_output
from nptltrace.trace.reading.watermark import Settled
from nptltrace.trace.selection import event_names
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset
from nptltrace.trace.tsdl_reader import read_metadata
from nptltrace.ui import protocol
from nptltrace.ui.answers import drawing, trace_info
from nptltrace.ui.answers.earlier import Earlier
from nptltrace.ui.answers.events import MAX_COUNT, EventList, Filters
from nptltrace.ui.answers.flame import MAX_STACKS, with_threads
from nptltrace.ui.answers.holders import Stay, holders_of
from nptltrace.ui.answers.lock_order import order as lock_order
from nptltrace.ui.answers.naming import Naming
from nptltrace.ui.answers.over_time import edges_of, locks_over_time, rows_waited_for
from nptltrace.ui.answers.ranges import (
    NAMED,
    Ranges,
    Whole,
    event_types,
    sites_in_use,
    with_rows,
)
from nptltrace.ui.answers.rows import Rows
from nptltrace.ui.answers.waits import Wanted, wait_list
from nptltrace.ui.folder import Folder, identity_of
from nptltrace.ui.jobs import Later
from nptltrace.ui.levels_of_detail import Levels

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.trace.traceset import TraceFiles
    from nptltrace.ui.answers.earlier import By
    from nptltrace.ui.answers.ranges import CyclicOrder

__all__ = ["NotFound", "Viewer"]

# How far to look for names of threads before anything is shown.
_SEARCHED = 64 << 20
_CHAIN = 100
# To say who had an object during a wait, so many spans are looked at.
_MOST_SPANS = 200_000
_AT_ONCE = 4
_NOT_HELD = frozenset(WAIT_CLASSES.index(name) for name in ("idle", "join"))
_POLL_S = 0.2
# What is said of a range of a running recording may be as old.
_OLD_S = 3.0
_HITS = 1000
_LISTED = 10_000
_FAR = 2**61
_UNSEEN = 2**63 - 1
_PROCESSORS = 1 << 16


class _Ended(Exception):  # noqa: N818 -- no error: the viewer ends
    """The viewer ends, and what was worked on is not needed."""


class NotFound(PttError):  # noqa: N818 -- reads as the sentence it reports
    """There is no such thing in this trace."""


class Viewer:
    """Answers what the page asks; its methods are the endpoints of `protocol`.

    Args:
        paths: Trace directories.
        follow: Whether to take in what a recording goes on writing.
        aliases: Alias files.
        directories: Where to look first for programs and debug files.
        source: The same traces, if they were opened before.
        passed_over: Which frames are no call sites; by default the built-in rule.
        before: Trace of the run that these are compared with.

    Raises:
        TraceFormatError: One of them is not a trace.
        UsageError: They cannot be read as one.

    Attributes:
        begins_with: Which events the page lists at first, as `open_at` was told.
        closed: Set when it shall end.
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
        self._names = (tuple(aliases), tuple(directories))
        self._passed_over = passed_over
        # Whoever reads the trace or what is drawn of it holds this; the worker does to change them.
        self._lock = RLock()
        self._source = source or Traceset(*paths)
        self._folder = Folder(self._source)
        self._use(self._source, Levels(self._source, self._folder, self._lock))
        self._rows: Rows | None = None
        self._whole = Whole()
        self._changed = Condition()
        self._version = 0
        self._error = ""
        # Until all of a recording was read, answers about the whole are about what there is by now.
        self._grows = False
        self._view = Window()
        self.begins_with: dict[str, str] = {}
        self._killed: list[Path] = []
        self._is_recorded()
        self._stop = Event()
        self.closed = False
        self.looking = 0
        self._worker = Thread(target=self._work, name="levels of detail", daemon=True)

    def _use(self, source: Traceset, levels: Levels) -> None:
        """Answer from opened traces, and what is drawn of them."""
        aliases, directories = self._names
        self._source, self._levels = source, levels
        self._symbols = Symbols(source, read_aliases(aliases), directories, self._passed_over)
        self._naming = Naming(source, self._symbols)
        uuids = b"".join(trace.metadata.uuid.bytes for trace in source.traces)
        self._events = EventList(
            source, self._symbols, self._naming, sha256(uuids).hexdigest()[:12]
        )  # fmt: skip
        self._ranges = Ranges(self._paths, self._symbols, self._notify)

    def remarks(self) -> list[str]:
        """Return what a user should know of the traces."""
        damages = [str(damage) for damage in self._source.damages()]
        return trace_info.remarks(self._source, self._killed) + damages + self._remarks_before()

    def _remarks_before(self) -> list[str]:
        """Return what a user should know of the run before."""
        return [] if self._earlier is None else self._earlier.remarks(self._source)

    def open_at(self, window: Window, filters: dict[str, str]) -> None:
        """Choose what the page begins with.

        Args:
            window: The part that it shows and marks.
            filters: Which events it lists, by parameters of `event-list` that are texts.
        """
        self._view, self.begins_with = window, filters

    def start(self) -> None:
        """Begin to read the trace."""
        self._worker.start()

    def wait_ready(self) -> None:
        """Wait until everything was read and looked at."""
        self._worker.join()

    def stop(self) -> None:
        """End the waits for a change or an answer; a signal handler may do so."""
        self.closed = True
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End."""
        self.stop()
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join(5)
        self._ranges.close()
        self._levels.close()
        self._folder.close()

    # ---- the worker ----

    def _work(self) -> None:
        try:
            if not self._open():
                self._source.learn_threads(_SEARCHED)
                self._read_somewhere()
                if not self._stop.is_set():
                    self._report()
            self._notify()
            if not self._stop.is_set():
                self._find()
        except _Ended:
            pass
        except (PttError, OSError, MemoryError) as error:
            self._error = one_line(error) or type(error).__name__
            if _lacks_room(error):
                self._error += f", in {self._folder.place}: make room there, or set TMPDIR"
        self._notify()

    def _open(self) -> bool:
        """Open what was kept of the trace; False if not all of it is there."""
        if self._follow and self._is_recorded():
            return False
        return self._whole.open(self._folder, self._identity(), self._source) and (
            self._levels.open()
        )

    def _identity(self) -> bytes:
        """Return what distinguishes what is said of a trace: names of call sites are in it."""
        rule = "\n".join(self._symbols.passed_over.patterns)
        return sha256(identity_of(self._source) + rule.encode()).digest()

    def _read_somewhere(self) -> None:
        """Read, in a temporary place if where the trace lies there is no room."""
        try:
            self._read()
        except (NativeError, OSError) as error:
            if not _lacks_room(error):
                raise
            self._levels.close()
            if not self._folder.leave():
                raise
            with self._lock:
                self._levels = Levels(self._source, self._folder, self._lock)
            self._read()

    def _read(self) -> None:
        """Read the trace, and go on while it is being recorded."""
        levels = self._levels
        levels.begin()
        settled = Settled(self._source)
        while not self._stop.is_set():
            running = self._follow and self._is_recorded()
            self._grows |= running
            if self._killed and not running:
                self._refresh()
            more = levels.read(
                settled.until_ns() if running else None, self._stop.is_set, self._notify
            )
            if not running or self._stop.is_set():
                break
            if more or running:
                levels.show()
            self._stop.wait(_POLL_S)
            self._refresh()
            self._ranges.forget(_OLD_S)
            self._notify()
        self._ranges.forget()
        if not self._stop.is_set():
            if any(_described_anew(trace) for trace in self._source.traces):
                self._read_again()
            else:
                levels.finish()
            self._notify()

    def _is_recorded(self) -> bool:
        """Return whether one of the traces grows; find out whose recorder was killed."""
        grows = is_recorded(self._source)  # first: one that dies between the two is found next time
        self._killed = killed(self._source)
        return grows

    def _refresh(self) -> None:
        """Take in what has been written since."""
        with self._lock:
            threads = len(self._source.thread_ids)
            self._levels.refresh()
            self._events.refresh()
            if len(self._source.thread_ids) != threads:
                self._source.learn_threads()

    def _read_again(self) -> None:
        """Read a recording that has ended once more: now it is known how fast its clock was."""
        source = self._opened_again()
        source.learn_threads(_SEARCHED)
        levels = Levels(source, self._folder, self._lock)
        levels.begin()
        levels.read(None, self._stop.is_set, self._notify)
        if not self._stop.is_set():
            levels.finish()
            with self._lock:
                self._use(source, levels)

    def _report(self) -> None:
        """Say what there is to say of the whole that the model knows."""
        levels = self._levels
        assert levels.model is not None  # noqa: S101
        self._source.learn_threads()
        self._rows = None
        self._whole.fill(levels.model, self._source, self._symbols)
        levels.model = None
        self._whole.keep(self._folder, self._identity(), self._source)

    def _find(self) -> None:
        """Look for bugs in the whole, if that was not done yet."""
        whole = self._whole
        if whole.findings is None:
            whole.find(self._opened_again(), self._symbols, self._go_on)
            whole.keep(self._folder, self._identity(), self._source)

    def _go_on(self, _: float) -> None:
        """Give up what the worker does if it shall end."""
        if self._stop.is_set():
            raise _Ended

    def _opened_again(self) -> Traceset:
        source = Traceset(*self._paths)
        self._symbols.of(source)  # which chooses its call sites
        return source

    def _notify(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    # ---- what is there ----

    def _known(self) -> Rows:
        """Return the rows that are known by now.

        Raises:
            Later: There are none yet.
        """
        with self._lock:
            tables = self._levels.tables
            if tables is None or self._levels.detail is None:
                if self._error:
                    raise PttError(self._error)
                raise Later(self._levels.progress)
            if self._rows is None or self._rows.tables is not tables:
                self._rows = Rows(tables, self._naming, self._lanes, self._turns)
            return self._rows

    def _lanes(self, by: str, count: int) -> Any:
        with self._lock:
            assert self._levels.detail is not None  # noqa: S101
            found = self._levels.detail.lanes(by, count)
            going = self._levels.going
            return found if going is None else going.lanes(by, found)

    def _turns(self) -> Any:
        """Return the turns on each processor, drawn as one for each way in which they ended."""
        with self._lock:
            detail = self._levels.detail
            assert detail is not None  # noqa: S101
            # Threads report what they did late: what is known on the way would look idle.
            count = min(detail.rows("processor"), _PROCESSORS) if self._levels.ready else 0
            return detail.spans("processor", list(range(count)), -_FAR, _FAR, _FAR)

    def _analysed(self, found: Any) -> None:
        """Make sure that something is there.

        Raises:
            Later: It is not yet.
        """
        if found is None:
            if self._error:
                raise PttError(self._error)
            raise Later(self._levels.progress)

    def _is_partial(self, found: Any) -> bool:
        """Return whether to answer about what there is by now, where the whole is not there.

        Raises:
            Later: The whole comes later, or more of it must be read first.
        """
        if found is None and self._grows and not self._error:
            return True
        self._analysed(found)
        return False

    def _range(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Return a range with -1 replaced by where the whole begins and ends."""
        first, last = self._ends()
        begin = first if from_ns == -1 else from_ns
        end = last + 1 if to_ns == -1 else to_ns
        if begin >= end:
            raise UsageError("the range is empty")
        return begin, end

    def _ends(self) -> tuple[int, int]:
        """Return the times of the first and the last event, or where later what went on ends."""
        reader = self._source.reader
        found = reader.key_range()
        if found is None:
            return 0, 0
        first = reader.time_of_key(found[0])
        tables = self._levels.tables
        if tables is not None:  # the events that a packet begins with may be lost
            first = int(tables.threads["first_ns"][1:].min(initial=_UNSEEN))
            if first == _UNSEEN:
                return 0, 0
        return first, self._levels.end_ns

    # ---- live ----

    def wait_change(self, version: int, timeout: float) -> protocol.Live:
        """Return the state when it is another than that version, or after a time."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version or self.closed, timeout)
            now = self._version
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
            "analysed": self._whole.findings is not None,
            "message": self._error,
        }

    # ---- what is open ----

    def trace(self) -> protocol.TraceInfo:
        """Answer `trace`."""
        with self._lock:
            return self._trace()

    def _trace(self) -> protocol.TraceInfo:
        source, levels, tables = self._source, self._levels, self._levels.tables
        losses = trace_info.losses(source)
        first, last = self._ends()
        rows = self._known() if tables is not None else None
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
            "state": trace_info.state(source, self._killed),
            "follow": self._follow,
            "processes": trace_info.processes(source),
            "threads": rows.count("thread") if rows else len(source.thread_ids),
            "objects": rows.count("object") if rows else 0,
            "waits": int(tables.threads["wait_n"].sum()) if tables else 0,
            "holds": int(tables.threads["hold_n"].sum()) if tables else 0,
            "losses": losses,
            "uncovered": uncovered_modules(source.uncovered()),
            "damages": [str(damage) for damage in source.damages()[:_HITS]],
            "remarks": trace_info.remarks(source, self._killed) + self._remarks_before(),
            "view": _fragment(self._view, self.begins_with, first, last),
            "before": "" if self._earlier is None else self._earlier.name,
            "detail": {
                "ready": levels.ready,
                "progress": levels.progress,
                "until_ns": levels.until_ns,
                "error": self._error,
            },
        }

    # ---- drawing ----

    def rows(
        self, *, by: str, sort: str, filter: str, rows: list[int], offset: int, limit: int  # noqa: A002
    ) -> pa.Table:  # fmt: skip
        """Answer `rows`."""
        with self._lock:
            return self._known().table(
                by, sort=sort, text=filter, rows=rows, offset=offset, limit=limit
            )

    def spans(self, by: str, rows: list[int], from_ns: int, to_ns: int, width: int) -> pa.Table:
        """Answer `spans`."""
        return self.drawn(by, rows, *self._range(from_ns, to_ns), _narrowed(width, rows))

    def drawn(self, by: str, rows: list[int], begin: int, end: int, width: int) -> pa.Table:
        """Return what to draw of any number of rows, as many pixels as are asked for."""
        with self._lock:
            known, detail = self._known(), self._levels.detail
            bin_ns = drawing.bin_width(begin, end, width)
            assert detail is not None  # noqa: S101
            if by == "processor" and not self._levels.ready:
                rows = []
            found = detail.spans(by, rows, begin, end, bin_ns)
            going, until_ns = self._levels.going, self._levels.until_ns
            if going is not None:
                found = np.concatenate([found, going.spans(by, rows, begin, end)])
                found = found[np.argsort(found["row"], kind="stable")]
                until_ns = going.until_ns
        return drawing.span_table(found, by, known.tables, until_ns)

    def arrows(self, rows: list[int], from_ns: int, to_ns: int, width: int, limit: int) -> pa.Table:
        """Answer `arrows`."""
        with self._lock:
            known, detail = self._known(), self._levels.detail
            begin, end = self._range(from_ns, to_ns)
            assert detail is not None  # noqa: S101
            spans = detail.spans(
                "thread", rows, begin, end,
                drawing.bin_width(begin, end, _narrowed(width, rows)),
            )  # fmt: skip
            return drawing.arrow_table(spans, detail, known.tables, limit)

    def overview(self, width: int) -> pa.Table:
        """Answer `overview`."""
        width = min(max(width, 1), protocol.MAX_WIDTH)
        with self._lock:
            begin, end = self._range(-1, -1)
            detail, tables = self._levels.detail, self._levels.tables
            bins = None if detail is None else detail.overview()
            density, lost = self._density(begin, end, width)
            going = self._levels.going
        found = self._whole.findings["findings"] if self._whole.findings is not None else []
        return drawing.overview_table(
            begin, end, width, None if self._levels.ready else density, bins, going, tables,
            [finding["ts_ns"] for finding in found], lost,
        )  # fmt: skip

    def _density(self, begin: int, end: int, width: int) -> tuple[Any, Any]:
        """Return how many events there are in each bin, and were lost, as far as packets say."""
        found, lost = self._source.reader.density(begin, max((end - begin) // width, 1), width)
        return np.asarray(found), np.asarray(lost)

    # ---- details ----

    def wait(self, id: int) -> protocol.WaitChain:  # noqa: A002
        """Answer `wait`."""
        with self._lock:
            known, detail = self._known(), self._levels.detail
            chain: list[protocol.Wait] = []
            seen: set[int] = set()
            number = id
            while detail and 0 < number < 2**32 and number not in seen and len(chain) < _CHAIN:
                found = detail.wait(number)
                one = None if found is None else self._wait(known, number, found)
                if found is None or one is None:
                    break
                # What a thread waited for itself before is no reason of another's.
                if chain and chain[-1]["thread"]["row"] == one["thread"]["row"]:
                    break
                chain.append(one)
                seen.add(number)
                number = int(found["parent"])
        if not chain:
            raise NotFound(f"there is no wait {id}")
        return {"chain": chain}

    def _wait(self, known: Rows, number: int, found: Any) -> protocol.Wait | None:
        thread, object_ = known.thread(int(found["thread"])), known.object(int(found["object"]))
        if thread is None or object_ is None:
            return None
        kind, wait_class = int(found["kind"]), int(found["wait_class"])
        owner, woken = int(found["owner"]), int(found["waker_t_ns"])
        t_ns, dur_ns, held_ns = (int(found[name]) for name in ("t_ns", "dur_ns", "held_ns"))
        is_contended = wait_class == WAIT_CLASSES.index("contended")
        mode: Any = "shared" if found["mode"] else "exclusive"
        return {
            "wait_id": number,
            "t_ns": t_ns,
            "dur_ns": dur_ns,
            "held_ns": held_ns if is_contended else None,
            "wake_ns": dur_ns - held_ns if is_contended else None,
            "wait_class": WAIT_CLASSES[min(wait_class, len(WAIT_CLASSES) - 1)],
            "kind": libptttrack_sums.KINDS.get(kind, "object"),
            "mode": mode,
            "open": bool(found["open"]),
            "result": int(found["result"]),
            "queue_depth": int(found["queue_depth"]),
            "thread": thread,
            "object": object_,
            "site": known.site(int(found["site"])),
            "stack": known.stack(int(found["thread"]), int(found["stack"]), int(found["site"])),
            "owner": known.thread(owner),
            "owner_site": known.site(int(found["owner_site"])),
            "owner_stack": known.stack(
                owner, int(found["holder_stack"]), int(found["holder_site"])
            ),
            "owner_since_ns": self._held_since(owner, object_["row"], t_ns),
            "waker": known.thread(int(found["waker"])),
            "waker_site": known.site(int(found["waker_site"])),
            "waker_t_ns": None if woken == libptttrack_sums.NEVER else woken,
            "ready_ns": int(found["ready_ns"]) if found["ready_ns"] >= 0 else None,
            "holders": None
            if wait_class in _NOT_HELD
            else holders_of(
                self._each,
                known,
                Stay(
                    thread["row"], object_["row"], int(found["t_ns"]), int(found["t_ns"]) + dur_ns
                ),
            ),
        }

    def _each(self, by: str, row: int, from_ns: int, to_ns: int) -> Any:
        """Return the spans of a row in a range one by one; None if there are too many."""
        detail, going = self._levels.detail, self._levels.going
        if detail is None or not -_FAR < from_ns < to_ns < _FAR:
            return None
        found = detail.each(by, row, from_ns, to_ns, _MOST_SPANS)
        if found is None or going is None:
            return found
        return np.concatenate([found, going.spans(by, [row], from_ns, to_ns)])

    def _held_since(self, thread: int, row: int, t_ns: int) -> int | None:
        """Return since when a thread had held an object at a time, or None."""
        detail = self._levels.detail
        if not thread or not row or detail is None or not 0 <= t_ns < 2**62:
            return None
        held = detail.spans("object", [row], t_ns, t_ns + 1, 1)
        going = self._levels.going
        if going is not None:
            held = np.concatenate([held, going.spans("object", [row], t_ns, t_ns + 1)])
        held = held[(held["state"] >= protocol.STATES.index("held")) & (held["other"] == thread)]
        return int(held["t_ns"].min()) if len(held) else None

    def waits(
        self, *, from_ns: int, to_ns: int, least_ns: int, wait_class: str, thread: list[int],
        object: list[int], site: str, limit: int,  # noqa: A002
    ) -> pa.Table:  # fmt: skip
        """Answer `wait-list`."""
        with self._lock:
            known, detail = self._known(), self._levels.detail
            assert detail is not None  # noqa: S101
            begin, end = self._range(from_ns, to_ns)
            wanted = Wanted(begin, end, least_ns, wait_class, thread, object, site)
            return wait_list(detail, self._levels.going, known, wanted, min(limit, _LISTED))

    def hold(self, row: int, lane: int, t_ns: int) -> protocol.Hold:
        """Answer `hold`."""
        with self._lock:
            known, detail = self._known(), self._levels.detail
            inside = 0 < row < 2**32 and 0 < lane < 2**16 and -(2**62) < t_ns < 2**62
            found = detail.find("thread", row, lane, t_ns) if detail and inside else None
            going = self._levels.going
            if found is None and going is not None:
                found = going.hold(row, lane, t_ns)
            thread = known.thread(row)
            object_ = None if found is None else known.object(int(found["other"]))
            if found is None or thread is None or object_ is None:
                raise NotFound("nothing was held there then")
            begin, end = int(found["t_ns"]), int(found["t_ns"] + found["dur_ns"])
            is_open = bool(found["flags"] & protocol.FLAGS["open"])
            return {
                "t_ns": begin,
                "dur_ns": end - begin,
                "open": is_open,
                "mode": "shared" if protocol.STATES[found["state"]] == "shared" else "exclusive",
                "max_waiters": int(found["depth"]),
                "thread": thread,
                "object": object_,
                "site": self._site_at(known, row, object_["row"], begin),
                "stack": self._events.stack_at(
                    begin, _AT_ONCE, _only(known, row, object_["row"]), known
                ),
                "release_site": "" if is_open else self._site_at(known, row, object_["row"], end),
            }

    def _site_at(self, known: Rows, thread: int, object_: int, t_ns: int) -> str:
        """Return from where a thread did something with an object at a time."""
        filters = _only(known, thread, object_)
        # Its call may have been recorded at the same time, and an event may lack the site.
        for event in self._events.forward("", t_ns, _AT_ONCE, filters, known).to_pylist():
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
                known: Rows | None = self._known()
            except Later:
                if thread or object:
                    raise
                known = None
            filters = Filters(
                threads=known.thread_numbers(thread) if known and thread else None,
                objects=object or None,
                event=event, site=site, pid=pid, tid=tid, on=on, text=text,
                readings=readings == "shown",
            )  # fmt: skip
            ask = self._events.forward if direction == "forward" else self._events.backward
            return ask(position, t_ns, min(max(count, 1), MAX_COUNT), filters, known)

    # ---- analysis ----

    def contention(self, by: str, from_ns: int, to_ns: int, limit: int) -> protocol.Contention:
        """Answer `contention`."""
        limit = min(max(limit, 0), NAMED)
        is_whole = from_ns == -1 and to_ns == -1
        totals: dict[str, int] = {}
        if is_whole and by != "thread,object" and not self._is_partial(self._whole.report):
            document: Any = self._whole.report
            uncontended = self._whole.uncontended
            totals = {
                "objects": self._whole.all_objects, "sites": sites_in_use(self._known().tables)
            }  # fmt: skip
        else:
            window = Window(None if from_ns == -1 else from_ns, None if to_ns == -1 else to_ns)
            found = self._ranges.contention(window, pairs=by == "thread,object")
            document = report_document(found, by=by)
            uncontended, totals = found.uncontended, {"objects": found.all_objects}
        return with_rows(document, uncontended, by, limit, self._known(), totals)

    def flame(self, show: StackMeasure, from_ns: int, to_ns: int, limit: int) -> protocol.Flame:
        """Answer `flame`."""
        self._is_partial(self._levels.ready or None)
        window = Window(None if from_ns == -1 else from_ns, None if to_ns == -1 else to_ns)
        found = self._ranges.flame(window, show)
        return with_threads(found, self._known().thread_row, min(max(limit, 0), MAX_STACKS))

    def diff(self, by: By, from_ns: int, to_ns: int) -> document_types.Diff:
        """Answer `diff`."""
        if self._earlier is None:
            raise UsageError("there is no run to compare with: ptt ui --before names one")
        window = Window(None if from_ns == -1 else from_ns, None if to_ns == -1 else to_ns)
        return diff_document(self._ranges.diff(self._earlier, window, by), by=by, per="run")

    def over_time(
        self, *, object: list[int], from_ns: int, to_ns: int, bins: int, limit: int,  # noqa: A002
    ) -> protocol.OverTime:  # fmt: skip
        """Answer `over-time`."""
        limit = min(max(limit, 0), protocol.MAX_LOCKS)
        rows = object or rows_waited_for(self.contention("object", from_ns, to_ns, NAMED), limit)
        window = Window(None if from_ns == -1 else from_ns, None if to_ns == -1 else to_ns)
        edges = edges_of(*self._range(from_ns, to_ns), bins)
        known = self._known()
        rows = [row for row in rows[:limit] if 0 < row < len(known.tables.first)]
        found = self._ranges.over_time(window, known.object_places(rows), edges)
        return locks_over_time(edges, found, rows, known)

    def statistics(self, from_ns: int, to_ns: int) -> protocol.Statistics:
        """Answer `statistics`."""
        begin, end = self._range(from_ns, to_ns)
        found, counts, objects = self._ranges.statistics(Window(begin, end))
        document: Any = report_document(found, by="object")
        wanted = document_types.Figures.__required_keys__
        figures: Any = {name: value for name, value in document.items() if name in wanted}
        return {
            "from_ns": begin,
            "to_ns": end,
            "events": int(counts.sum()),
            "event_types": event_types(counts),
            "threads": len(found.threads),
            "objects": objects,
            "figures": figures,
            "blocked_ns": found.figures.blocked_ns,
            "running_ns": sum(thread.running_ns for thread in found.threads),
        }

    def findings(self) -> protocol.Findings:
        """Answer `findings`."""
        found, _ = self._checked()
        rows = self._known()
        return {
            **found,
            "rows": [
                {
                    "threads": [
                        rows.thread_row(one["pid"], tid, one["ts_ns"]) for tid in one["threads"]
                    ],
                    "objects": [
                        rows.object_row(one["pid"], at, one["ts_ns"]) for at in one["objects"]
                    ],
                }
                for one in found["findings"]
            ],
        }

    def _checked(self) -> tuple[protocol.Findings, list[CyclicOrder]]:
        """Return what was found, and the orders of locks that are in cycles.

        Raises:
            Later: It is worked on.
        """
        found = self._whole.findings
        if self._is_partial(found):
            return self._ranges.checked()
        assert found is not None  # noqa: S101
        return found, self._whole.cycles

    def critical(self) -> protocol.Critical:
        """Answer `critical`."""
        report = self._whole.report
        if self._is_partial(report):
            report = report_document(self._ranges.contention(Window(), pairs=False), by="object")
        assert report is not None  # noqa: S101
        path, rows = report["critical_path"], self._known()
        return {
            "path": path,
            "thread_rows": [rows.thread_row(t["pid"], t["tid"]) for t in path["threads"]],
        }

    def path(self, from_ns: int, to_ns: int, width: int) -> pa.Table:
        """Answer `path`."""
        begin, end = self._range(from_ns, to_ns)
        rows = self._known()
        tables = rows.tables
        if self._is_partial(self._levels.ready or None):
            pieces = rows.of_pieces(self._ranges.path())
        else:
            pieces = tables.segments, tables.rows(tables.segments["object"])
        return drawing.path_table(*pieces, begin, end, drawing.bin_width(begin, end, width))

    def order(self, limit: int) -> protocol.Order:
        """Answer `order`."""
        _, cycles = self._checked()
        with self._lock:
            return lock_order(self._known(), cycles, min(max(limit, 0), NAMED))

    # ---- search ----

    def search(self, q: str, limit: int) -> protocol.Hits:
        """Answer `search`."""
        limit = min(max(limit, 0), _HITS)
        found: list[protocol.Hit] = []
        with self._lock:
            known = self._known()
            for by in ("thread", "object"):
                table = known.table(by, text=q, limit=limit + 1)
                columns = ("row", "label", "kind", "object", "pid")
                found += [
                    _hit(by, label, f"{kind} {address}".strip() + f" of process {pid}", row=row)
                    for row, label, kind, address, pid in zip(
                        *(table[name].to_pylist() for name in columns), strict=True
                    )
                ]
            word = q.lower()
            names = {known.site(n): None for n in range(1, min(len(known.tables.sites), 20_000))}
            found += [_hit("site", name) for name in names if word in name.lower()]
        found += [_hit("event", name) for name in event_names() if word in name.lower()]
        if self._whole.findings is not None:
            found += [
                _hit("finding", one["message"], one["kind"], one["ts_ns"])
                for one in self._whole.findings["findings"]
                if word in f"{one['kind']} {one['message']}".lower()
            ]
        return {"hits": found[:limit], "more": len(found) > limit}

    # ---- what leaves the viewer ----

    def cut(self, from_ns: int, to_ns: int) -> protocol.Written:
        """Answer `cut`."""
        begin, end = self._range(from_ns, to_ns)
        source = Traceset(*self._paths)
        reader = source.reader
        cursor = libpttread.Cursor(reader)
        cursor.seek_key(reader.key_of_time(begin))
        last = libpttread.Position(reader.key_of_time(end), 0, 0, 0, 0)
        path = default_output(self._paths[0], "cut")
        plain, number = path, 1
        while path.exists():
            number += 1
            path = plain.with_name(f"{plain.stem}-{number}{plain.suffix}")
        part = Part(cursor.place(), last, begin_ns=begin, end_ns=end)
        written = write_cut(source, path, part)
        return {"path": str(written.path), "events": written.events}


def _narrowed(width: int, rows: list[int]) -> int:
    """Return how many pixels so many rows are drawn in at most."""
    return min(width, protocol.MAX_DRAWN // max(len(rows), 1))


def _fragment(window: Window, filters: dict[str, str], first_ns: int, end_ns: int) -> str:
    """Return the fragment of an address that stands for a part of a trace and for filters."""
    begin, end = window.begin_ns, window.end_ns
    part = {}
    if (begin, end) != (None, None):
        whole = (first_ns if begin is None else begin, end_ns if end is None else end)
        part = dict.fromkeys(("t", "mark"), "{}-{}".format(*whole))
    chosen = {f"f.{name}": text for name, text in filters.items() if text}
    return urlencode(part | chosen)


def _only(known: Rows, thread: int, object_: int) -> Filters:
    """Return what chooses the events of a thread that are about an object, by their rows."""
    return Filters(threads=known.thread_numbers([thread]), objects=[object_])


def _lacks_room(error: Exception) -> bool:
    return getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}


def _described_anew(trace: TraceFiles) -> bool:
    """Return whether the description of a trace is another than when it was opened."""
    return read_metadata(trace.path).text != trace.metadata.text


def _hit(
    kind: Any, label: str, about: str = "", t_ns: int | None = None, row: int = 0
) -> protocol.Hit:
    by: Any = kind if row else ""
    return {"kind": kind, "by": by, "row": row, "label": label, "about": about, "t_ns": t_ns}
