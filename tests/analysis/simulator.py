"""Simulates a thread library that keeps its promises: random programs and their traces.

Time stands still for many steps, so that events share time stamps. The stamp of a release is some
steps early, the stamp of an acquisition some steps late. No fence holds back the stamps of calls
and returns: they lie a little before the stamps of earlier events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

T0 = 10**12
EPERM, EAGAIN, EBUSY, EDEADLK, ETIMEDOUT = 1, 11, 16, 35, 110
NORMAL, RECURSIVE, ERRORCHECK = 0, 1, 2
# Result of a step of a thread: the thread went on, or it cannot.
WENT, STUCK = True, False
Steps = Iterator[bool]


@dataclass(eq=False)
class Thread:
    """A thread and the events that it has written."""

    tid: int
    events: list[Event] = field(default_factory=list)
    started: bool = False
    ended: bool = False

    @property
    def pthread(self) -> int:
        return 0x7F0000 + 16 * self.tid


@dataclass(eq=False)
class Mutex:
    """The true state of a mutex."""

    address: int
    type: int
    owner: Thread | None = None
    depth: int = 0


@dataclass(eq=False)
class Rwlock:
    """A lock for many readers or one writer; a writer goes before new readers."""

    address: int
    readers: list[Thread] = field(default_factory=list)
    writer: Thread | None = None
    queued: int = 0

    def lets_in(self, *, write: bool) -> bool:
        if write:
            return self.writer is None and not self.readers
        return self.writer is None and not (self.queued and self.readers)


@dataclass(eq=False)
class Cond:
    """A condition and the threads that are blocked on it."""

    address: int
    blocked: list[Thread] = field(default_factory=list)


@dataclass(eq=False)
class Barrier:
    """A barrier, its round, and the serial thread of each round."""

    address: int
    count: int
    arrived: list[Thread] = field(default_factory=list)
    rounds: int = 0
    serial: list[Thread] = field(default_factory=list)


@dataclass(eq=False)
class Sem:
    """A semaphore."""

    address: int
    value: int
    used: bool = False  # a semaphore that comes and goes


@dataclass(eq=False)
class Once:
    """A once control."""

    address: int
    running: bool = False
    done: bool = False
    inside: int = 0


class World:
    """Threads, objects, and the time.

    Args:
        chance: Decides everything.
        calls: Whether calls and returns are reported, as on level 3.
    """

    def __init__(self, chance: random.Random, *, calls: bool) -> None:
        self.chance, self.calls = chance, calls
        self.bookish = chance.random() < 0.3  # mostly reads and writes
        self.now = T0 + 10_000
        self.threads = [Thread(101 + n) for n in range(chance.randint(2, 5))]
        types = (NORMAL, RECURSIVE, ERRORCHECK)
        self.mutexes = [Mutex(0x4000 + 64 * n, types[n % 3]) for n in range(3)]
        self.guards = [Mutex(0x5000 + 64 * n, NORMAL) for n in range(2)]
        self.conds = [Cond(0x6000 + 64 * n) for n in range(2)]
        self.rwlock = Rwlock(0x7000)
        self.barrier = Barrier(0x7100, chance.randint(1, 3))
        self.sems = [Sem(0x7200, chance.randint(0, 2)), Sem(0x7240, 0)]
        self.brief = Sem(0x7280, 0)
        self.once = Once(0x7300)

    # ---- telling ----

    def report(self, t: Thread, name: str, thing: int, *, variant: str = "", **fields: int) -> None:
        t.events.append(Event(self.now, name, thing, 5, variant=variant, fields=fields))

    def call(self, t: Thread, name: str, thing: int, **fields: int) -> None:
        """Report a call or a return; its stamp may be a little too early."""
        if self.calls:
            last = t.events[-1].ticks if t.events else T0
            early = max(last, self.now - self.chance.randint(0, 400))
            t.events.append(Event(early, name, thing, 5, fields=fields))

    # ---- mutexes ----

    def lock(self, t: Thread, m: Mutex) -> Steps:
        self.call(t, "MUTEX_LOCK_IN", m.address)
        yield WENT
        if m.owner is t and m.type == ERRORCHECK:
            self.report(t, "MUTEX_ERROR", m.address, routine=20, result=EDEADLK)
            self.call(t, "MUTEX_LOCK_OUT", m.address, result=EDEADLK)
            return
        variant = ""
        if m.owner not in {None, t}:
            self.report(t, "MUTEX_WAIT", m.address, owner=1, kind=m.type)
            variant = "WAITED"
            yield WENT
        yield from self.until(lambda: m.owner in {None, t})
        m.owner, m.depth = t, m.depth + 1
        yield WENT
        self.report(t, "MUTEX_TAKEN", m.address, variant=variant)
        self.call(t, "MUTEX_LOCK_OUT", m.address)

    def unlock(self, t: Thread, m: Mutex) -> Steps:
        self.call(t, "MUTEX_UNLOCK_IN", m.address)
        if m.owner is not t:
            yield WENT
            self.report(t, "MUTEX_ERROR", m.address, routine=28, result=EPERM)
            self.call(t, "MUTEX_UNLOCK_OUT", m.address, result=EPERM)
            return
        self.report(t, "MUTEX_FREE", m.address)
        yield WENT
        m.depth -= 1
        m.owner = t if m.depth else None
        yield WENT
        self.call(t, "MUTEX_UNLOCK_OUT", m.address)

    def trylock(self, t: Thread, m: Mutex) -> Steps:
        self.call(t, "MUTEX_TRYLOCK_IN", m.address)
        yield WENT
        got = m.owner is None or (m.owner is t and m.type == RECURSIVE)
        if got:
            m.owner, m.depth = t, m.depth + 1
        yield WENT
        if got:
            self.report(t, "MUTEX_TAKEN", m.address)
        self.call(t, "MUTEX_TRYLOCK_OUT", m.address, result=0 if got else EBUSY)
        if got:
            yield from self.unlock(t, m)

    def use_mutex(self, t: Thread) -> Steps:
        m = self.chance.choice(self.mutexes)
        times = self.chance.randint(1, 3) if m.type != NORMAL else 1
        for _ in range(times):
            yield from self.lock(t, m)
        for _ in range(times if m.type == RECURSIVE else 1):
            yield from self.unlock(t, m)
        if m.type != NORMAL and m.owner is not t and self.chance.random() < 0.2:
            yield from self.unlock(t, m)

    def try_mutex(self, t: Thread) -> Steps:
        yield from self.trylock(t, self.chance.choice(self.mutexes))

    # ---- conditions ----

    def wait(self, t: Thread) -> Steps:
        c, m = self.chance.choice(self.conds), self.guards[0]
        yield from self.lock(t, m)
        name = self.chance.choice(["COND_WAIT", "COND_TIMEDWAIT"])
        self.report(t, f"{name}_IN", c.address, mutex=m.address)
        self.report(t, "MUTEX_FREE", m.address)
        yield WENT
        m.owner, m.depth = None, 0
        c.blocked.append(t)
        result = 0
        while t in c.blocked:
            if self.chance.random() < 0.01:
                c.blocked.remove(t)
                result = ETIMEDOUT if name == "COND_TIMEDWAIT" else 0
            yield STUCK
        yield from self.until(lambda: m.owner is None)
        m.owner, m.depth = t, 1
        yield WENT
        self.report(t, "MUTEX_TAKEN", m.address)
        self.report(t, f"{name}_OUT", c.address, result=result)
        yield from self.unlock(t, m)

    def signal(self, t: Thread) -> Steps:
        c, m = self.chance.choice(self.conds), self.guards[0]
        held = self.chance.choice(["not", "before", "meanwhile"])
        if held != "not":
            yield from self.lock(t, m)
        if held == "before":
            yield from self.unlock(t, m)
        for _ in range(self.chance.randint(1, 3)):
            everybody = self.chance.random() < 0.3
            kind = "BROADCAST" if everybody else "SIGNAL"
            self.call(t, f"COND_{kind}_IN", c.address)
            self.report(t, f"COND_{kind}", c.address)
            yield WENT
            number = len(c.blocked) if everybody else self.chance.choice([1, 1, 1, 2])
            for woken in self.chance.sample(c.blocked, min(number, len(c.blocked))):
                c.blocked.remove(woken)
            yield WENT
            self.call(t, f"COND_{kind}_OUT", c.address)
        if held == "meanwhile":
            yield from self.unlock(t, m)

    # ---- reader-writer locks ----

    def use_rwlock(self, t: Thread) -> Steps:
        r, write = self.rwlock, self.chance.random() < 0.3
        kind, name = ("WRITE", "WRLOCK") if write else ("READ", "RDLOCK")
        self.call(t, f"RWLOCK_{name}_IN", r.address)
        yield WENT
        variant = ""
        if not r.lets_in(write=write):
            self.report(t, "RWLOCK_WAIT", r.address, write=int(write))
            variant = "WAITED"
            yield WENT
            r.queued += write
            yield from self.until(lambda: r.lets_in(write=write))
            r.queued -= write
        if write:
            r.writer = t
        else:
            r.readers.append(t)
        yield WENT
        self.report(t, f"RWLOCK_TAKEN_{kind}", r.address, variant=variant)
        self.call(t, f"RWLOCK_{name}_OUT", r.address)
        for _ in range(self.chance.choice([0, 2, 40])):
            yield WENT
        self.call(t, "RWLOCK_UNLOCK_IN", r.address)
        self.report(t, "RWLOCK_FREE", r.address)
        yield WENT
        if write:
            r.writer = None
        else:
            r.readers.remove(t)
        yield WENT
        self.call(t, "RWLOCK_UNLOCK_OUT", r.address)

    # ---- semaphores ----

    def take(self, t: Thread, s: Sem) -> Steps:
        self.call(t, "SEM_WAIT_IN", s.address)
        yield WENT
        variant = ""
        if not s.value:
            self.report(t, "SEM_WAIT", s.address)
            variant = "WAITED"
            yield from self.until(lambda: s.value > 0)
        s.value -= 1
        yield WENT
        self.report(t, "SEM_TAKEN", s.address, variant=variant)
        self.call(t, "SEM_WAIT_OUT", s.address)

    def post(self, t: Thread, s: Sem) -> Steps:
        self.call(t, "SEM_POST_IN", s.address)
        self.report(t, "SEM_POST", s.address)
        yield WENT
        s.value += 1
        yield WENT
        self.call(t, "SEM_POST_OUT", s.address)

    def use_sem(self, t: Thread) -> Steps:
        s = self.chance.choice(self.sems)
        yield from self.chance.choice([self.take, self.post, self.post])(t, s)

    def try_sem(self, t: Thread) -> Steps:
        s = self.chance.choice(self.sems)
        self.call(t, "SEM_TRYWAIT_IN", s.address)
        yield WENT
        got = s.value > 0
        s.value -= got
        yield WENT
        if got:
            self.report(t, "SEM_TAKEN", s.address)
        self.call(t, "SEM_TRYWAIT_OUT", s.address, result=0 if got else EAGAIN)

    def brief_sem(self, t: Thread) -> Steps:
        """Use a semaphore on a stack, at an address where other semaphores have lived."""
        s = self.brief
        yield from self.until(lambda: not s.used)
        s.used = True
        s.value = self.chance.randint(0, 1)
        self.report(t, "SEM_INIT", s.address, value=s.value)
        if not s.value:
            yield from self.post(t, s)
        yield from self.take(t, s)
        self.report(t, "SEM_DESTROY", s.address)
        yield WENT
        s.used = False

    # ---- barriers and once ----

    def use_barrier(self, t: Thread) -> Steps:
        b = self.barrier
        self.report(t, "BARRIER_WAIT_IN", b.address)
        yield WENT
        mine = b.rounds
        b.arrived.append(t)
        if len(b.arrived) == b.count:
            b.serial.append(self.chance.choice(b.arrived))
            b.arrived = []
            b.rounds += 1
        yield from self.until(lambda: b.rounds > mine)
        yield WENT
        result = -1 if b.serial[mine] is t else 0
        self.report(t, "BARRIER_WAIT_OUT", b.address, result=result)

    def use_once(self, t: Thread) -> Steps:
        o = self.once
        if o.done and not o.inside and self.chance.random() < 0.3:
            o.done = False  # reset
        o.inside += 1
        self.call(t, "ONCE_IN", o.address)
        yield WENT
        while not o.done:
            if o.running:
                self.report(t, "ONCE_WAIT", o.address)
                yield from self.until(lambda: not o.running)
                mine = not o.done
                o.running = mine
                self.report(t, "ONCE_WAIT_END", o.address)
                if not mine:
                    break
            o.running = True
            yield WENT
            self.report(t, "ONCE_BEGIN", o.address)
            yield WENT
            cancelled = self.chance.random() < 0.3
            self.report(t, "ONCE_END", o.address, cancelled=int(cancelled))
            yield WENT
            o.running, o.done = False, not cancelled
        self.call(t, "ONCE_OUT", o.address)
        o.inside -= 1

    # ---- threads ----

    def until(self, ready: Callable[[], bool]) -> Steps:
        while not ready():
            yield STUCK

    def work(self, t: Thread) -> Steps:
        yield from self.until(lambda: t.started)
        self.report(t, "THREAD_BEGIN", t.pthread, serial=t.tid, creator=100)
        jobs = [
            self.use_mutex, self.try_mutex, self.wait, self.wait, self.signal, self.signal,
            self.use_rwlock, self.use_rwlock, self.use_sem, self.try_sem, self.brief_sem,
            self.use_barrier, self.use_once,
        ]  # fmt: skip
        if self.bookish:
            jobs = [self.use_rwlock] * 9 + [self.use_mutex]
        for _ in range(self.chance.randint(1, 25)):
            yield from self.chance.choice(jobs)(t)
        self.report(t, "THREAD_END", t.pthread)
        yield WENT
        t.ended = True

    def main(self, t: Thread) -> Steps:
        for m in self.mutexes:
            self.report(t, "MUTEX_INIT", m.address, kind=m.type)
        self.report(t, "COND_INIT", self.conds[0].address)
        self.report(t, "RWLOCK_INIT", self.rwlock.address, preference=2)
        self.report(t, "BARRIER_INIT", self.barrier.address, count=self.barrier.count)
        for s in self.sems:
            self.report(t, "SEM_INIT", s.address, value=s.value)
        for other in self.threads:
            self.call(t, "THREAD_CREATE_IN", 0)
            yield WENT
            other.started = True
            yield WENT
            self.report(t, "NEW_THREAD_CREATED", other.pthread, serial=other.tid)
            self.call(t, "THREAD_CREATE_OUT", other.pthread)
        for other in self.threads:
            self.report(t, "THREAD_JOIN_IN", other.pthread)
            while not other.ended:
                yield STUCK
            self.report(t, "THREAD_JOIN_OUT", other.pthread)

    def run(self) -> list[Thread]:
        """Run until no thread can go on; return the threads."""
        first = Thread(100)
        running = {100: self.main(first)}
        running |= {t.tid: self.work(t) for t in self.threads}
        quiet = 0
        while running and quiet < 40 * len(running):
            tid = self.chance.choice(list(running))
            try:
                quiet = 0 if next(running[tid]) else quiet + 1
            except StopIteration:
                del running[tid]
                quiet = 0
            self.now += self.chance.choice([0, 0, 0, 1, 2, 300, 20_000])
        return [first, *self.threads]


def simulate(path: Path, chance: random.Random, *, calls: bool) -> Path:
    """Run a random program and write its trace."""
    made = Builder(path)
    made.session |= {"level": "3" if calls else "2", "clock": {"name": "monotonic"}}
    for thread in World(chance, calls=calls).run():
        if thread.events:
            made.thread(thread.tid, thread.events)
    return made.write()
