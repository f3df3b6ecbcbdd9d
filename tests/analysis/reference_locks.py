"""The part of the reference that follows objects, holds and waits for locks."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.analysis.state import LOCKS, NOBODY, Hold, Object, Row, Wait

if TYPE_CHECKING:
    from tests.analysis.state import Owner, Thread
    from tests.analysis.text_events import Event

OWNER_DIED, TIMED_OUT = 130, 110
# The model keeps the last 64 changes of a lock; a hold makes up to three changes.
REMEMBERED = 20


def classed(result: int, done: str) -> str:
    """Return the class of a wait with this result."""
    if result in {0, OWNER_DIED}:
        return done
    return "timeout" if result == TIMED_OUT else "cancelled"


class Locks:
    """Follows the events of one trace.

    Args:
        begin: Begin of the time to blame for.
        end: End of that time.
    """

    def __init__(self, begin: int = -(2**62), end: int = 2**62) -> None:
        self.begin_ns, self.end_ns = begin, end
        self.objects: dict[tuple[int, str, int], Object] = {}
        self.all: list[Object] = []
        self.open: dict[tuple[int, int], list[Wait]] = {}
        self.rows: list[Row] = []
        self.holds: list[tuple[Object, Hold]] = []
        self.blamed: dict[tuple[int, int, str, int, int], Fraction] = {}
        # Locks, by process and address, for which the model may blame the wrong thread.
        self.vague: set[tuple[int, int]] = set()
        self.full: set[tuple[int, str]] = set()
        self.serials: dict[tuple[int, int], Thread] = {}
        self.pthreads: dict[tuple[int, int], Thread] = {}
        self.threads: dict[tuple[int, int], Thread] = {}
        self.last: dict[int, int] = {}
        self.last_of: dict[tuple[int, int], int] = {}
        self.exited: set[int] = set()
        self.executed: dict[int, tuple[int, int]] = {}
        self.balance: dict[tuple[Object, int], int] = {}

    # ---- objects ----

    def get(self, e: Event, kind: str, address: int | None = None) -> Object:
        key = (e.process, kind, e.object if address is None else address)
        if key not in self.objects:
            self.objects[key] = Object(kind, key[0], key[2], e.ts)
            self.all.append(self.objects[key])
        return self.objects[key]

    def waited(self, e: Event, kind: str) -> Object:
        """Return the object of a wait that ends; other threads may have destroyed it by now."""
        for w in reversed(self.open.get((e.process, e.tid), [])):
            if w.kind == kind and w.address == e.object:
                return next(o for o in self.all if any(wait is w for wait in o.waits))
        return self.get(e, kind)

    def forget(self, o: Object) -> None:
        del self.objects[o.process, o.kind, o.address]

    def init(self, e: Event, o: Object) -> None:
        if e.name == "SEM_OPEN" and o.opens:
            o.opens += 1
            return
        if o.used or o.made or o.born != e.ts:
            self.no_lock(o)
            o.holders.clear()
            self.forget(o)
            o = self.get(e, o.kind)
        o.made = True
        o.as_lock = e.name == "SEM_INIT" and e.fields["value"] == 1 and not e.fields["shared"]
        o.pool = o.kind == "semaphore" and e.fields.get("value", 0) > 1
        o.opens = int(e.name == "SEM_OPEN")
        o.needed = e.fields.get("count", 0) if o.kind == "barrier" else 0

    def destroy(self, e: Event, o: Object) -> None:
        if o.opens > 1:
            o.opens -= 1
            return
        if self.has_holder(o):
            for hold in o.holders:
                hold.until, hold.release_site = e.ts, e.site
                self.holds.append((o, hold))
                o.past.append(hold)
            o.blame(e.ts, [])
            o.holders.clear()
        self.no_lock(o)
        o.holders.clear()
        self.forget(o)

    def has_holder(self, o: Object) -> bool:
        """Return whether the holder of the lock is known."""
        return bool(o.holders) and (o.kind != "semaphore" or o.released is not None)

    def no_lock(self, o: Object) -> None:
        """Note that the thread that took a unit of a semaphore did not hold it."""
        if o.as_lock:
            o.as_lock = False
            o.holders.clear()
            for w in o.waits:
                w.owner = NOBODY

    # ---- holds ----

    def place_owner(self, e: Event, o: Object) -> None:
        """Note that a thread has the lock, before an event of that thread says so."""
        if (e.process, o.kind) not in self.full:
            o.no_owner_follows()
            return
        # The thread is blamed since an event named it, but its hold begins here.
        if not o.holders and [thread[0] for thread in o.blamed_now()] == [e.tid]:
            o.changes[-1] = (o.changes[-1][0], [])
        for w in o.waits:
            if w.follows and w.tid != e.tid and w.owner[0] in {0, e.tid}:
                w.owner = (e.tid, e.site)
        o.no_owner_follows()

    def take(self, e: Event, o: Object, mode: str) -> None:
        waits = self.open.get((e.process, e.tid), [])
        if waits and waits[-1].mutex is o and waits[-1].retaken is None:
            waits[-1].retaken = e.ts
        o.used = True
        if (e.process, o.kind) not in self.full:
            o.blame(e.ts, [(e.tid, e.site)] if o.waits else [])
            return
        for hold in o.holders:
            if hold.tid == e.tid:
                hold.depth += 1
                o.blame(e.ts, [(h.tid, h.site) for h in o.holders])
                return
        if o.holders and "exclusive" in (mode, o.holders[0].mode):
            o.holders.clear()
        o.holders.insert(0, Hold(e.process, e.tid, e.site, e.ts, mode))
        o.blame(e.ts, [(h.tid, h.site) for h in o.holders])

    def free(self, e: Event, o: Object) -> None:
        o.used = True
        mine = [h for h in o.holders if h.tid == e.tid] or o.holders[:1]
        if not mine:
            took_it_after_a_wait = [thread[0] for thread in o.blamed_now()] == [e.tid]
            if (e.process, o.kind) in self.full or not took_it_after_a_wait:
                # No event shows who took the lock; the hold began at the last release.
                begin = o.changes[-1][0] if o.changes else -(2**62)
                o.changes[-1:] = [(begin, [(e.tid, 0)])]
            o.blame(e.ts, [])
            o.no_owner_follows()
            o.held = NOBODY
        if mine:
            hold = mine[0]
            hold.depth -= 1
            if hold.depth:
                return
            hold.until, hold.release_site = e.ts, e.site
            o.held = (e.tid, hold.site) if hold.tid == e.tid else NOBODY
            o.holders.remove(hold)
            o.past.append(hold)
            self.holds.append((o, hold))
            o.blame(e.ts, [(h.tid, h.site) for h in o.holders])
        o.released = ((e.tid, e.site), e.ts)

    # ---- waits ----

    def begin(self, e: Event, o: Object) -> Wait:
        waits = self.open.setdefault((e.process, e.tid), [])
        for stale in [w for w in o.waits if w.tid == e.tid]:
            o.waits.remove(stale)
            waits.remove(stale)
        o.used = True
        if o.as_lock and any(h.tid == e.tid for h in o.holders):
            self.no_lock(o)
        w = Wait(e.process, e.tid, o.kind, o.address, e.ts, e.site, len(o.waits) + 1)
        if o.as_lock and o.holders:
            w.owner = (o.holders[0].tid, o.holders[0].site)
        if o.kind in LOCKS.values():
            if o.holders:
                w.owner = (o.holders[0].tid, o.holders[0].site)
            else:
                w.named = bool(e.fields.get("owner"))
                last = self.released(e, o, e.ts)
                tid = e.fields.get("owner") or (last[0][0] if last else 0)
                # This thread released the lock last, so another thread has it now.
                tid = 0 if not w.named and tid == e.tid else tid
                w.owner = o.held if o.held[0] == tid else (tid, 0)
                w.follows = w.named or not tid
            now = o.blamed_now() if o.waits else []
            other = not now or w.owner[0] not in {0, now[0][0]}
            # Without recorded holds, the owner is the named thread, or the last thread to take it.
            if other and not o.holders and (e.process, o.kind) not in self.full:
                o.blame(e.ts, [w.owner])
        o.waits.append(w)
        waits.append(w)
        return w

    def finish(self, e: Event, o: Object) -> Wait:
        for w in reversed(self.open.get((e.process, e.tid), [])):
            if w in o.waits:
                o.waits.remove(w)
                self.open[e.process, e.tid].remove(w)
                if not o.waits and not o.holders:
                    o.blame(e.ts, [])
                return w
        since = e.ts - e.fields.get("wait_ns", 0)
        last = self.released(e, o, since)
        owner = last[0] if last and o.kind in LOCKS.values() else NOBODY
        owner = NOBODY if owner[0] == e.tid else owner
        return Wait(
            e.process, e.tid, o.kind, o.address, since, e.site, len(o.waits) + 1, owner, known=False
        )

    def row(
        self, w: Wait, end: int, wait_class: str, *, dur: int | None = None, result: int = 0,
        waker: tuple[Owner, int] | None = None, still: bool = False, held: int = 0,
    ) -> None:  # fmt: skip
        dur = end - w.since if dur is None else dur
        thread, ts = waker or (NOBODY, None)
        self.rows.append(
            Row(w.process, w.tid, w.kind, w.address, w.since, dur, wait_class, result, still,
                w.depth, w.owner, thread, ts, w.site, w.target, w.vague,
                held if wait_class == "contended" else None)
        )  # fmt: skip

    def released(self, e: Event, o: Object, since: int) -> tuple[Owner, int] | None:
        """Return the last release; None: unknown, as releases may be missing since `since`."""
        known = (e.process, o.kind) in self.full or (o.released and o.released[1] >= since)
        return o.released if known else None

    def inside(self, start: int, end: int) -> int:
        return max(min(end, self.end_ns) - max(start, self.begin_ns), 0)

    def charge(self, o: Object, thread: Owner, start: int, end: int, among: int = 1) -> None:
        inside = self.inside(start, end)
        if inside:
            key = (o.process, o.address, o.kind, *thread)
            self.blamed[key] = self.blamed.get(key, Fraction(0)) + Fraction(inside, among)

    def charge_history(self, o: Object, start: int, end: int) -> int:
        """Divide a wait among the threads to blame for each moment; return the blamed time."""
        held = 0
        changes = [*o.changes, (2**62, [])]
        for (since, thread), (until, _) in pairwise(changes):
            first, last = max(since, start), min(until, end)
            held += self.inside(first, last) if thread else 0
            for owner in thread:
                self.charge(o, owner, first, last, len(thread))
        return held

    def over(self, e: Event, o: Object) -> None:
        """End a wait for a lock."""
        result, dur = e.fields.get("result", 0), e.fields.get("wait_ns", 0)
        w = self.finish(e, o)
        if not w.known and dur <= 0:
            return
        wait_class = classed(result, "contended")
        waker, held = None, 0
        if wait_class == "contended":
            last = self.released(e, o, w.since)
            if last and last[0][0] != e.tid:
                waker = last
            held = self.charge_history(o, w.since, min(e.ts, w.since + dur))
        elif sum(since > w.since for since, _ in o.changes) > REMEMBERED:
            self.vague.add((o.process, o.address))
        self.row(w, e.ts, wait_class, dur=dur, result=result, waker=waker, held=held)
