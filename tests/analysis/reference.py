"""A slow, plain state machine over babeltrace2's text, to compare with the native model.

It follows the rules of docs/explanation/waits.md and shares no code with the model. The events come
from another reader. The blame of each wait comes from the whole history of its lock.
"""

from __future__ import annotations

import errno
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.analysis.reference_locks import REMEMBERED, Locks, classed
from tests.analysis.state import KINDS, LOCKS, NOBODY, End, Thread, Token, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.analysis.state import Object, Owner
    from tests.analysis.text_events import Event

FULL = re.compile(
    "MUTEX_(INIT|DESTROY|TAKEN|FREE|CONSISTENT|ERROR)|RWLOCK_(INIT|DESTROY|TAKEN.*|FREE|ERROR)"
    "|SPIN_(INIT|DESTROY|TAKEN|FREE)|ONCE_(BEGIN|END)"
    "|SEM_(INIT|DESTROY|TAKEN|POST|OPEN|CLOSE|UNLINK|ERROR)|.*_(IN|OUT)"
)
ALWAYS = re.compile("(COND_.*WAIT|BARRIER_WAIT|FUTEX_WAIT|THREAD_.*JOIN)_(IN|OUT)")
AGAIN = 11
HERE_AND_NOW = 20_000
SKEW = 1_000_000


class Reference(Locks):
    """Follows the events of one trace."""

    # ---- wake-ups ----

    def wake(self, e: Event, o: Object, count: int, *, lock_like: bool = False) -> None:
        free = len(o.waits) - sum(token.left for token in o.tokens)
        token = Token(e.ts, (e.tid, e.site), max(min(count, free), 0), lock_like)
        o.last_post = token
        o.used = True
        if token.left:
            o.tokens.append(token)

    def use(self, o: Object, since: int) -> Token | None:
        for token in o.tokens:
            if token.ts >= since:
                token.left -= 1
                o.tokens = [t for t in o.tokens if t.left]
                return replace(token)
        return None

    def clamp(self, o: Object) -> None:
        """Forget wake-ups, the oldest first, if no thread is left that waited when they came."""
        while any(
            sum(t.left for t in o.tokens if t.ts <= token.ts)
            > sum(1 for w in o.waits if w.since <= token.ts)
            for token in o.tokens
        ):
            o.tokens[0].left -= 1
            o.tokens = [t for t in o.tokens if t.left]

    def cond_out(self, e: Event, o: Object) -> None:
        w = self.finish(e, o)
        result, dur = e.fields["result"], e.fields["wait_ns"]
        wait_class = classed(result, "idle")
        token = self.use(o, w.since) if wait_class == "idle" else None
        self.clamp(o)
        waker = (token.thread, token.ts) if token else None
        if token and self.again(w, token.ts):
            self.row(w, token.ts, "idle", result=result, waker=waker)
        else:
            self.row(w, e.ts, wait_class, dur=dur, result=result, waker=waker)

    def again(self, w: Wait, signalled: int) -> bool:
        """Report the time after the signal as a wait for the mutex if other threads had it."""
        mutex = w.mutex
        if mutex is None or w.retaken is None or w.retaken <= signalled:
            return False
        others = [
            h for h in mutex.past
            if h.until is not None and signalled < h.until <= w.retaken and h.tid != w.tid
        ]  # fmt: skip
        if sum((h.until or 0) - max(h.since, signalled) for h in others) < HERE_AND_NOW:
            if len(others) > REMEMBERED:
                self.vague.add((mutex.process, mutex.address))
            return False
        wait = Wait(w.process, w.tid, "mutex", mutex.address, signalled, w.site,
                    len(mutex.waits) + 1, (others[0].tid, others[0].site),
                    vague=len(others) > REMEMBERED)  # fmt: skip
        held = self.charge_history(mutex, signalled, w.retaken)
        waker = ((others[-1].tid, others[-1].release_site), others[-1].until or 0)
        self.row(wait, w.retaken, "contended", waker=waker, held=held)
        return True

    def barrier_out(self, e: Event, o: Object) -> None:
        mine = [w for w in o.waits if w.tid == e.tid]
        result = e.fields["result"]
        if mine and mine[0].released is None and result in {0, -1}:
            self.open_barrier(o)
        w = self.finish(e, o)
        if w.released and w.released[0][0] == e.tid:
            return
        dur, held = e.fields["wait_ns"], 0
        if w.released and result in {0, -1}:
            held = self.until(o, w, dur, *w.released)
        wait_class = classed(0 if result == -1 else result, "contended")
        self.row(w, e.ts, wait_class, dur=dur, result=result, waker=w.released, held=held)

    def until(self, o: Object, w: Wait, dur: int, thread: Owner, woken: int | None) -> int:
        """Blame the waker of a wait for the time up to the wake-up."""
        until = w.since + dur if woken is None else min(woken, w.since + dur)
        self.charge(o, thread, w.since, until)
        return self.inside(w.since, until)

    def open_barrier(self, o: Object) -> None:
        last = o.waits[-1]
        for w in o.waits:
            w.released = w.released or ((last.tid, last.site), last.since)
        o.arrived = 0

    def granted(self, e: Event, o: Object, w: Wait, token: Token, result: int) -> None:
        dur, pool = e.fields["wait_ns"], o.pool and token.lock_like
        held = self.until(o, w, dur, token.thread, token.ts) if pool else 0
        wait_class = self.unit_class(o, taken=token.lock_like)
        waker = (token.thread, token.ts)
        self.row(w, e.ts, wait_class, dur=dur, result=result, waker=waker, held=held)

    def unit_class(self, o: Object, *, taken: bool) -> str:
        if not taken:
            return "idle"
        return "contended" if o.pool else "unknown"

    def sem_over(self, e: Event, o: Object) -> None:
        if o.as_lock:
            since = next((w.since for w in o.waits if w.tid == e.tid), e.ts)
            self.over(e, o)
            if classed(e.fields["result"], "idle") == "idle":
                self.use(o, since)
            self.clamp(o)
            return
        w = self.finish(e, o)
        result = e.fields["result"]
        wait_class = classed(result, "idle")
        token = self.use(o, w.since) if wait_class == "idle" else None
        if not token and o.last_post and o.last_post.ts >= w.since - SKEW:
            token = o.last_post
        self.clamp(o)
        if wait_class == "idle" and token:
            self.granted(e, o, w, token, result)
            return
        if wait_class == "idle":
            wait_class = self.sem_class(o, e.process, e.tid)
        dur, held = e.fields["wait_ns"], 0
        if wait_class == "contended":
            held = self.until(o, w, dur, NOBODY, None)
        self.row(w, e.ts, wait_class, dur=dur, result=result, held=held)

    def sem_class(self, o: Object, process: int, tid: int) -> str:
        if (process, "semaphore") not in self.full:
            return "unknown"
        others = any(units for thread, units in o.units.items() if thread != tid)
        return self.unit_class(o, taken=others)

    # ---- threads ----

    def name_thread(self, e: Event, tid: int) -> None:
        key = (e.process, e.fields["serial"])
        if key not in self.serials:
            self.serials[key] = self.pthreads[e.process, e.object] = Thread(tid)
        if e.name == "THREAD_BEGIN":
            self.serials[key].tid = tid
            self.pthreads[e.process, e.object] = self.serials[key]
            self.threads[e.process, e.tid] = self.serials[key]

    def join_target(self, e: Event) -> Thread | None:
        thread = self.pthreads.get((e.process, e.object))
        return None if thread is None or thread.joined else thread

    def join_out(self, e: Event, o: Object) -> None:
        w = self.finish(e, o)
        result, dur = e.fields["result"], e.fields.get("wait_ns", 0)
        target = w.target if w.target and not w.target.joined else self.join_target(e)
        waker = None
        w.target = target
        if result == 0 and target:
            target.joined = True
            target.joined_ns = e.ts
            if target.end is not None:
                waker = ((target.tid, 0), target.end)
        if result == 0:
            self.forget(o)
        refused = result not in {0, errno.ETIMEDOUT}
        if (w.known or dur > 0) and not refused:
            self.row(w, e.ts, classed(result, "join"), dur=dur, result=result, waker=waker)

    # ---- events ----

    def feed(self, e: Event) -> None:
        domain = e.name.partition("_")[0]
        self.last[e.process] = self.last_of[e.process, e.tid] = e.ts
        if domain == "PROCESS":
            self.process_event(e)
        kind = KINDS.get(domain, "")
        waited = "wait_ns" in e.fields
        if kind and FULL.fullmatch(e.name) and not ALWAYS.fullmatch(e.name) and not waited:
            self.full.add((e.process, kind))
        if kind == "thread" or e.name == "NEW_THREAD_CREATED":
            self.thread_event(e)
        elif e.name.endswith(("_INIT", "SEM_OPEN")):
            self.init(e, self.get(e, kind))
        elif e.name.endswith(("_DESTROY", "SEM_CLOSE")):
            self.destroy(e, self.get(e, kind))
        elif kind in LOCKS.values():
            self.lock_event(e, kind)
        elif kind == "semaphore":
            self.sem_event(e)
        elif kind in {"cond", "barrier", "futex"}:
            self.other_event(e, kind)

    def process_event(self, e: Event) -> None:
        if e.name == "PROCESS_START" and e.fields["pthread"]:
            thread = self.threads.setdefault((e.process, e.tid), Thread(e.tid))
            self.pthreads[e.process, e.fields["pthread"]] = thread
        elif e.name == "PROCESS_EXIT":
            self.exited.add(e.process)
        elif e.name == "PROCESS_EXEC":
            self.executed[e.process] = (e.tid, e.ts)

    def thread_event(self, e: Event) -> None:
        if e.name in {"NEW_THREAD_CREATED", "THREAD_BEGIN"}:
            self.name_thread(e, e.tid if e.name == "THREAD_BEGIN" else 0)
        elif e.name == "THREAD_END":
            thread = self.threads.setdefault((e.process, e.tid), Thread(e.tid))
            thread.end = e.ts
            self.pthreads.setdefault((e.process, e.object), thread)
        elif ALWAYS.fullmatch(e.name) and not e.name.startswith("THREAD_TRYJOIN"):
            o = self.get(e, "thread")
            if e.name.endswith("_IN"):
                self.begin(e, o).target = self.join_target(e)
            else:
                self.join_out(e, o)

    def lock_event(self, e: Event, kind: str) -> None:
        what = e.name.partition("_")[2]
        if what in {"TAKEN", "TAKEN_WRITE", "TAKEN_READ", "BEGIN"}:
            o = self.get(e, kind)
            self.place_owner(e, o)
            if "wait_ns" in e.fields:
                self.over(e, o)
            self.take(e, o, "shared" if what == "TAKEN_READ" else "exclusive")
        elif what in {"FREE", "FREE_AWAITED", "END"}:
            self.free(e, self.get(e, kind))
        elif what == "WAIT":
            self.begin(e, self.get(e, kind))
        elif what == "WAIT_END":
            self.over(e, self.get(e, kind))

    def sem_event(self, e: Event) -> None:
        if e.name == "SEM_WAIT":
            self.begin(e, self.get(e, "semaphore"))
        elif e.name == "SEM_WAIT_END":
            self.sem_over(e, self.get(e, "semaphore"))
        elif e.name == "SEM_TAKEN":
            o = self.get(e, "semaphore")
            if o.holders:
                self.no_lock(o)
            if "wait_ns" in e.fields:
                self.sem_over(e, o)
            if o.as_lock:
                self.take(e, o, "exclusive")
            o.units[e.tid] = o.units.get(e.tid, 0) + 1
            o.used = True
        elif e.name == "SEM_POST":
            o = self.get(e, "semaphore")
            mine = o.units.get(e.tid, 0)
            o.units[e.tid] = max(mine - 1, 0)
            if not any(h.tid == e.tid for h in o.holders):
                self.no_lock(o)
            if o.as_lock:
                self.free(e, o)
            self.wake(e, o, 1, lock_like=mine > 0)

    def other_event(self, e: Event, kind: str) -> None:
        if kind == "cond" and ALWAYS.fullmatch(e.name):
            if e.name.endswith("_IN"):
                wait = self.begin(e, self.get(e, kind))
                wait.mutex = self.get(e, "mutex", e.fields["mutex"])
            else:
                self.cond_out(e, self.waited(e, kind))
        elif e.name in {"COND_SIGNAL", "COND_BROADCAST"}:
            self.wake(e, self.get(e, kind), 1 if e.name == "COND_SIGNAL" else 10**9)
        elif e.name == "BARRIER_WAIT_IN":
            o = self.get(e, kind)
            self.begin(e, o)
            o.arrived += 1
            if o.arrived == o.needed:
                self.open_barrier(o)
        elif e.name == "BARRIER_WAIT_OUT":
            self.barrier_out(e, self.waited(e, kind))
        elif e.name == "FUTEX_WAIT_IN":
            self.begin(e, self.get(e, kind)).of_lock = bool(e.fields.get("lock"))
        elif e.name == "FUTEX_WAIT_OUT":
            self.futex_out(e, self.get(e, kind))
        elif e.name == "FUTEX_WAKE":
            o = self.get(e, kind)
            self.wake(e, o, max(e.fields["count"], 0))

    def futex_out(self, e: Event, o: Object) -> None:
        w = self.finish(e, o)
        result = e.fields["result"]
        token = self.use(o, w.since) if result == 0 else None
        self.clamp(o)
        if result == AGAIN:
            return
        wait_class, dur, held = classed(result, futex_class(w)), e.fields["wait_ns"], 0
        waker = (token.thread, token.ts) if token else None
        if wait_class == "contended":
            woken = token.ts if token else None
            held = self.until(o, w, dur, token.thread if token else NOBODY, woken)
        self.row(w, e.ts, wait_class, dur=dur, result=result, waker=waker, held=held)

    # ---- the end ----

    def end(self, ends: dict[int, End]) -> None:
        for o in self.all:
            if not self.has_holder(o):
                self.no_lock(o)
        for (process, tid), waits in self.open.items():
            until = self.end_of(process, ends.get(process, End()))
            for w in waits:
                self.end_wait(w, process, tid, until)
        for o in self.all:
            for hold in o.holders:
                self.holds.append((o, hold))

    def end_of(self, process: int, end: End) -> int:
        """Return when a process ended: by its last event, unless the process was killed."""
        tid, since = self.executed.get(process, (0, 0))
        over = process in self.exited or (tid and self.last_of[process, tid] == since)
        seen = None if over else end.seen
        return max([self.last[process], *(t for t in (end.killed or seen,) if t is not None)])

    def end_wait(self, w: Wait, process: int, tid: int, until: int) -> None:
        o = next(o for o in self.all if w in o.waits)
        thread = self.threads.get((process, tid), Thread(tid))
        over = thread.joined_ns if thread.end is None else thread.end
        # The trace lacks the end of the wait of a thread that has ended.
        until = until if over is None else max(min(until, over), w.since)
        mutex = w.mutex
        if mutex and w.retaken is None and mutex.holders and mutex.holders[0].tid != tid:
            token = self.use(o, w.since)
            if token:
                self.row(w, token.ts, "idle")
                w = replace(w, since=token.ts, kind="mutex", address=mutex.address)
                o = mutex
        a_lock = o.kind in LOCKS.values() or o.as_lock
        unseen = not o.blamed_now() and not o.released
        if a_lock and o.holders:
            w.owner = (o.holders[0].tid, o.holders[0].site)
        elif a_lock and (process, o.kind) in self.full and not unseen:
            w.owner = NOBODY
        elif a_lock and o.released and o.released[1] >= w.since:
            # Only waits are recorded: the last thread that took the lock after a wait has it.
            w.owner = (*o.blamed_now(), NOBODY)[0]
        classes = {"thread": "join", "cond": "idle", "futex": futex_class(w)}
        wait_class = classes.get(o.kind, "contended")
        if o.kind == "semaphore":
            wait_class = "contended" if a_lock else self.sem_class(o, process, tid)
        held = 0
        if a_lock:
            held = self.charge_history(o, w.since, until)
            if unseen:
                held += self.inside(w.since, until)
                self.charge(o, w.owner, w.since, until)
        elif wait_class == "contended":
            held = self.until(o, w, until - w.since, NOBODY, None)
        self.row(w, until, wait_class, still=True, held=held)


def futex_class(w: Wait) -> str:
    """Return the class of a futex wait that succeeded, or that goes on."""
    return "contended" if w.of_lock else "unknown"


def follow(
    events: Iterable[Event], ends: dict[int, End], begin: int = -(2**62), end: int = 2**62
) -> Reference:
    """Return the reference after all events of a trace; it blames for waits in a window."""
    reference = Reference(begin, end)
    for event in events:
        reference.feed(event)
    reference.end(ends)
    return reference
