"""The state of threads and objects in the reference."""

from __future__ import annotations

from dataclasses import dataclass, field

LOCKS = {"MUTEX": "mutex", "RWLOCK": "rwlock", "SPIN": "spinlock", "ONCE": "once"}
KINDS = LOCKS | {
    "COND": "cond", "BARRIER": "barrier", "SEM": "semaphore", "FUTEX": "futex", "THREAD": "thread",
}  # fmt: skip

Owner = tuple[int, int]  # tid, site
NOBODY: Owner = (0, 0)


@dataclass
class Hold:
    process: int
    tid: int
    site: int
    since: int
    mode: str
    depth: int = 1
    until: int | None = None
    release_site: int = 0


@dataclass
class Wait:
    process: int
    tid: int
    kind: str
    address: int
    since: int
    site: int
    depth: int
    owner: Owner = NOBODY
    mutex: Object | None = None
    retaken: int | None = None
    released: tuple[Owner, int] | None = None  # by a barrier
    known: bool = True
    target: Thread | None = None
    vague: bool = False
    named: bool = False  # the event named the owner: no hold of the owner was known
    follows: bool = False  # and no thread has taken the lock since
    of_lock: bool = False  # for a futex, in the function of a lock


@dataclass(frozen=True)
class Row:
    """A finished wait."""

    process: int
    tid: int
    kind: str
    address: int
    t_ns: int
    dur_ns: int
    wait_class: str
    result: int
    open: bool
    depth: int
    owner: Owner
    waker: Owner
    wake_ns: int | None
    site: int
    target: Thread | None = None
    vague: bool = False  # more holds came between than the model remembers
    held: int | None = 0

    @property
    def waited_for(self) -> Owner:
        """The thread that had to release; its name may come after other threads waited for it."""
        return (self.target.tid, 0) if self.target else self.owner


@dataclass
class Token:
    ts: int
    thread: Owner
    left: int
    lock_like: bool


@dataclass(eq=False)
class Object:
    kind: str
    process: int
    address: int
    born: int
    holders: list[Hold] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    past: list[Hold] = field(default_factory=list)  # holds in the order of their known releases
    # begin of the blame, and the blamed threads
    changes: list[tuple[int, list[Owner]]] = field(default_factory=list)
    released: tuple[Owner, int] | None = None
    held: Owner = NOBODY  # the last holder, and the site of that hold
    tokens: list[Token] = field(default_factory=list)
    last_post: Token | None = None
    needed: int = 0
    arrived: int = 0
    units: dict[int, int] = field(default_factory=dict)
    made: bool = False
    opens: int = 0
    used: bool = False
    pool: bool = False  # a semaphore that began with several units
    as_lock: bool = False  # a semaphore: each time, the thread that took the unit posted it

    def blame(self, ts: int, owners: list[Owner]) -> None:
        self.changes.append((ts, owners))

    def no_owner_follows(self) -> None:
        for w in self.waits:
            w.follows = False

    def blamed_now(self) -> list[Owner]:
        return self.changes[-1][1] if self.changes else []


@dataclass(eq=False)
class Thread:
    tid: int
    end: int | None = None
    joined: bool = False
    joined_ns: int | None = None


@dataclass(frozen=True)
class End:
    """When a process was killed, or when it or its recording ended otherwise."""

    killed: int | None = None
    seen: int | None = None
