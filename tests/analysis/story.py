"""Traces made by hand for the checker: the actions of each thread, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.analysis.findings import find
from nptltrace.api import Traceset
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

T0 = 10**12
MAIN = 100
BASE = 0x401000
# From the beginning of one module to the beginning of the next.
APART = 0x100000
# Addresses in the data of the program, used by nothing else; and on some heap.
A, B, C, D, E = (0x404000 + 64 * n for n in range(5))
HEAP, HEAP2 = 0x7F0000000040, 0x7F0000000080


def pthread(tid: int) -> int:
    """Return the pthread_t of a thread."""
    return 0x7FFF00000000 + tid * 0x1000


class Story:
    """A program under construction; time goes on by one microsecond with each event.

    Args:
        main: Whether the trace has the beginning of the process.
    """

    def __init__(self, *, main: bool = True) -> None:
        self.now = 0
        self.events: dict[tuple[int, int], list[Event]] = {}
        self.session: dict[str, Any] = {"state": "complete", "level": "2"}
        self.discarded = 0
        self.processes: dict[int, dict[str, Any]] = {MAIN: {"index": 0, "ppid": 1}}
        self.modules = 1
        self.shared: dict[int, list[dict[str, str]]] = {}
        self._site = 0
        self._last_site = 0
        self._serial = 0
        if main:
            self.do(MAIN, "PROCESS_START", MAIN, ppid=1)

    def do(
        self, tid: int, name: str, obj: int = 0, *, variant: str = "", site: int = 0,
        pid: int = MAIN, **fields: Any,
    ) -> Story:  # fmt: skip
        """Add an event; it has a new call site unless you give a site."""
        self.now += 1000
        if not site:
            self._site += 1
            site = self._site
        self._last_site = max(self._last_site, site)
        event = Event(T0 + self.now, name, obj, site, variant=variant, fields=fields)
        self.events.setdefault((pid, tid), []).append(event)
        return self

    def sleep(self, ns: int) -> Story:
        """Let time go by."""
        self.now += ns
        return self

    # ---- threads ----

    def create(
        self, *tids: int, by: int = MAIN, detached: int = 0, late: bool = False, site: int = 0
    ) -> Story:
        """Create threads, which begin at once; late: before the event of their creator."""
        for tid in tids:
            self._serial += 1
            if not late:
                self._created(tid, by, detached, site)
            self.do(tid, "THREAD_BEGIN", pthread(tid), creator=by, serial=self._serial)
            if late:
                self._created(tid, by, detached, site)
        return self

    def _created(self, tid: int, by: int, detached: int, site: int) -> None:
        serial = self._serial
        self.do(by, "NEW_THREAD_CREATED", pthread(tid), site=site, detached=detached, serial=serial)

    def end(self, tid: int) -> Story:
        return self.do(tid, "THREAD_END", pthread(tid))

    def join_in(self, tid: int, other: int) -> Story:
        return self.do(tid, "THREAD_JOIN_IN", pthread(other))

    def join(self, tid: int, other: int) -> Story:
        self.join_in(tid, other)
        return self.do(tid, "THREAD_JOIN_OUT", pthread(other))

    def ended_and_joined(self, *tids: int, by: int = MAIN) -> Story:
        for tid in tids:
            self.end(tid)
        for tid in tids:
            self.join(by, tid)
        return self

    def exit(self) -> Story:
        return self.do(MAIN, "PROCESS_EXIT", MAIN)

    # ---- locks ----

    def lock(self, tid: int, *locks: int, site: int = 0) -> Story:
        for lock in locks:
            self.do(tid, "MUTEX_TAKEN", lock, site=site)
        return self

    def tried(self, tid: int, lock: int) -> Story:
        return self.do(tid, "MUTEX_TAKEN", lock, variant="TRIED")

    def unlock(self, tid: int, *locks: int) -> Story:
        for lock in locks:
            self.do(tid, "MUTEX_FREE", lock)
        return self

    def both(self, tid: int, first: int, second: int) -> Story:
        """Lock two locks and unlock them."""
        return self.lock(tid, first, second).unlock(tid, second, first)

    def wait(self, tid: int, lock: int, owner: int = 0, *, timed: int = 0) -> Story:
        return self.do(tid, "MUTEX_WAIT", lock, owner=owner, timed=timed)

    def waited(self, tid: int, lock: int, result: int = 0, wait_ns: int = 1000) -> Story:
        return self.do(tid, "MUTEX_TAKEN", lock, variant="WAITED", result=result, wait_ns=wait_ns)

    def gave_up(self, tid: int, lock: int, result: int = 110) -> Story:
        return self.do(tid, "MUTEX_WAIT_END", lock, result=result, wait_ns=1000)

    def refused(self, tid: int, lock: int, routine: int, result: int) -> Story:
        return self.do(tid, "MUTEX_ERROR", lock, routine=routine, result=result)

    def read(self, tid: int, lock: int) -> Story:
        return self.do(tid, "RWLOCK_TAKEN_READ", lock)

    def write(self, tid: int, lock: int) -> Story:
        return self.do(tid, "RWLOCK_TAKEN_WRITE", lock)

    def leave(self, tid: int, lock: int) -> Story:
        return self.do(tid, "RWLOCK_FREE", lock)

    def rw_wait(self, tid: int, lock: int, *, write: int) -> Story:
        return self.do(tid, "RWLOCK_WAIT", lock, write=write)

    # ---- conditions ----

    def cond_in(self, tid: int, cond: int, mutex: int, *, timed: bool = False) -> Story:
        """Begin a wait, which gives up the mutex."""
        name = "COND_TIMEDWAIT_IN" if timed else "COND_WAIT_IN"
        return self.do(tid, name, cond, mutex=mutex).unlock(tid, mutex)

    def cond_out(
        self, tid: int, cond: int, mutex: int, *, result: int = 0, timed: bool = False
    ) -> Story:
        name = "COND_TIMEDWAIT_OUT" if timed else "COND_WAIT_OUT"
        return self.lock(tid, mutex).do(tid, name, cond, result=result, wait_ns=1000)

    def signal(self, tid: int, cond: int) -> Story:
        return self.do(tid, "COND_SIGNAL", cond)

    def broadcast(self, tid: int, cond: int) -> Story:
        return self.do(tid, "COND_BROADCAST", cond)

    # ---- the trace ----

    def write_to(self, path: Path, *, records: bool = False) -> Path:
        """Write it as a trace."""
        made = Builder(path, session=self.session)
        for (pid, tid), events in self.events.items():
            made.thread(tid, events, pid=pid, process=self.processes[pid]["index"])
            made.threads[-1].discarded = self.discarded
        modules = [
            {
                "path": "/bin/x" if not n else f"/lib/{n}.so", "start": hex(start),
                "end": hex(start + 0x10000), "offset": 0, "bias": hex(start), "build_id": "",
            }
            for n, start in enumerate(range(0x400000, 0x400000 + self.modules * APART, APART))
        ]  # fmt: skip
        # All modules have the same number of sites, one site after the other.
        sites = {
            str(n): hex(BASE + n + n % self.modules * APART)
            for n in range(1, self._last_site + 100)
        }
        for pid, process in self.processes.items():
            index = process["index"]
            fixed = {"pid": pid, "exe": "/bin/x", "cmdline": ["x"]}
            made.processes += [
                {"process": {**fixed, **process}},
                {"modules": {"process": index, "modules": modules}},
                {"sites": {"process": index, "sites": sites}},
                {"shared": {"process": index, "shared": self.shared.get(pid, [])}},
            ]
        return made.write_records() if records else made.write()

    def findings(self, path: Path, **options: Any) -> list[Finding]:
        """Return the findings of a check."""
        return find(Traceset(self.write_to(path / "made.ptt")), **options).findings


def kinds(findings: list[Finding]) -> list[str]:
    """Return the kinds of the findings that a check shows, sorted."""
    return sorted(found.kind for found in findings if not found.suspect)


def two() -> Story:
    """Return a program with two threads besides the main thread."""
    return Story().create(1, 2)


def found(story: Story, tmp_path: Path) -> list[str]:
    """Return the kinds of the findings of a check."""
    return kinds(story.findings(tmp_path))


def crossed(story: Story | None = None) -> Story:
    """Return two threads that wait for each other's lock."""
    return (story or two()).lock(1, A).lock(2, B).wait(1, B, 2).wait(2, A, 1)
