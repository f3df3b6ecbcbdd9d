"""Suspicions of a trace that a run may confirm: lock orders, waits with locks, lost wake-ups.

A suspicion consists of roles. A role is a thread that asks for a lock at a call site, while it
holds a lock, or after another thread has passed a call site. Call sites are offsets in files with a
build-id. So a suspicion of a trace from another host is good for every program with the same files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.checking.checker import checked
from nptltrace.analysis.checking.lock_cycles import lock_cycles
from nptltrace.confirm.lock_events import LockEvents
from nptltrace.confirm.nested_waits import NESTED_EVENTS, nested_waits
from nptltrace.confirm.python_places import python_place
from nptltrace.confirm.semaphore_orders import SEMAPHORE_EVENTS, semaphore_cycles
from nptltrace.confirm.signal_orders import SIGNAL_EVENTS, signal_orders
from nptltrace.confirm.steps import Steps
from nptltrace.trace.code.call_site import address_of_site
from nptltrace.trace.code.python_code import is_python

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from nptltrace.analysis.checking.lock_cycles import LockCycle
    from nptltrace.confirm.nested_waits import NestedWait
    from nptltrace.confirm.semaphore_orders import Order
    from nptltrace.confirm.signal_orders import SignalOrder
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["KINDS", "Candidate", "CandidateKind", "Place", "Role", "candidates", "place_of"]

CandidateKind = Literal["lock-order-inversion", "wait-holding-lock", "lost-wakeup"]
KINDS: tuple[CandidateKind, ...] = ("lock-order-inversion", "wait-holding-lock", "lost-wakeup")
_EVENTS = dict(zip(KINDS, (SEMAPHORE_EVENTS, NESTED_EVENTS, SIGNAL_EVENTS), strict=True))
# A file of a suspicion may come from anywhere.
_ROLES_MOST, _TEXT_MOST, _ID_MOST, _OFFSET_END = 16, 4096, 64, 1 << 63


@dataclass(frozen=True, slots=True)
class Place:
    """A call site in a file.

    Attributes:
        build_id: Build-id of the file in hexadecimal; empty if the file has none.
        offset: Return address of the call, as an address of the file's symbol table. In Python, a
            number that follows from the functions and their instructions.
        file: Name of the file without its directory. It counts only without a build-id.
        text: The call site as text, for messages.
        python: Whether the place is in a program of Python.
    """

    build_id: str
    offset: int
    file: str
    text: str
    python: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """What is the same for the same call site in all runs."""
        return self.build_id or self.file, self.offset

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a file."""
        names = ("build_id", "offset", "file", "text", "python")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def of_json(cls, value: Any) -> Self:
        """Return the place that a file describes.

        Raises:
            ValueError: The value describes no place.
        """
        build_id, offset = value["build_id"], value["offset"]
        texts = [value["file"], value["text"]]
        if not isinstance(build_id, str) or len(bytes.fromhex(build_id)) > _ID_MOST:
            raise ValueError("a build-id has up to 64 bytes")
        if isinstance(offset, bool) or not isinstance(offset, int) or not 0 < offset < _OFFSET_END:
            raise ValueError("an offset is a positive number")
        if not all(isinstance(text, str) and len(text) <= _TEXT_MOST for text in texts):
            raise ValueError("a place needs a file and a text")
        if value["python"] is not True and value["python"] is not False:
            raise ValueError("python is true or false")
        file, text = texts
        try:
            os.fsencode(file + text)
        except UnicodeEncodeError:
            raise ValueError("a file and a text are text") from None
        return cls(build_id.lower(), offset, file, text, python=value["python"])


@dataclass(frozen=True, slots=True)
class Role:
    """A thread of a suspicion.

    Attributes:
        asked: Where the thread asks for a lock.
        held: Where it took a lock that it holds meanwhile; None for no lock.
        after: Where another thread passes first; None: the threads of all roles meet.
        stuck: Where the thread waits for ever, if the suspicion is true.
        first: Whether only the first thread that comes waits for the other thread, which comes
            along the same way.
    """

    asked: Place
    held: Place | None
    after: Place | None
    stuck: Place
    first: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a file."""
        places = ((name, getattr(self, name)) for name in _PLACES)
        fields = {name: None if place is None else place.to_json() for name, place in places}
        return {**fields, "first": self.first}

    @classmethod
    def of_json(cls, value: Any) -> Self:
        """Return the role that a file describes.

        Raises:
            ValueError: The value describes no role.
        """
        places = [None if value[n] is None else Place.of_json(value[n]) for n in _PLACES]
        asked, held, after, stuck = places
        if asked is None or stuck is None or (held is None and after is None):
            raise ValueError("a role asks for a lock with another lock, or after another thread")
        first = value["first"]
        if first is not True and first is not False:
            raise ValueError("first is true or false")
        return cls(asked, held, after, stuck, first)


_PLACES = ("asked", "held", "after", "stuck")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A suspicion.

    Attributes:
        kind: The kind of finding that it comes from.
        roles: The threads, in the order of the cycle.
        across: Whether the threads are of different processes.
        early: Whether PTT sees its locks only when they are taken, not when they are asked for.
        count: How many sets of locks, or how many waits, show it.
        happened: Whether the trace has the deadlock itself.
        impossible: Why it cannot happen, in the words of the table `lock_cycles`; empty if it can.
    """

    kind: CandidateKind
    roles: tuple[Role, ...]
    across: bool = False
    early: bool = False
    count: int = 1
    happened: bool = False
    impossible: tuple[str, ...] = ()

    @property
    def places(self) -> list[Place]:
        """The places that threads must pass, each once."""
        places = [place for role in self.roles for place in (role.held, role.asked, role.after)]
        return list({place.key: place for place in places if place is not None}.values())

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a file."""
        roles = [role.to_json() for role in self.roles]
        flags = {"across": self.across, "early": self.early}
        return {"kind": self.kind, **flags, "roles": roles}

    @classmethod
    def of_json(cls, value: Any) -> Self:
        """Return the suspicion that a file describes.

        Raises:
            ValueError: The value describes no suspicion that this version of PTT knows.
        """
        try:
            kind, items = value["kind"], value["roles"]
            across, early = value["across"], value["early"]
            if kind not in KINDS or not isinstance(across, bool) or not isinstance(early, bool):
                raise ValueError(f"unknown kind {kind!r}")
            if not isinstance(items, list) or not 0 < len(items) <= _ROLES_MOST:
                raise ValueError(f"there are 1 to {_ROLES_MOST} roles")
            roles = [Role.of_json(item) for item in items]
        except (KeyError, TypeError) as error:
            raise ValueError(f"a field is missing or wrong: {error}") from None
        return cls(kind, tuple(roles), across, early)


def candidates(
    source: Traceset, symbols: Symbols, kinds: Collection[CandidateKind],
    say: Callable[[str], None],
) -> list[Candidate]:  # fmt: skip
    """Return the suspicions of a traceset, the likeliest first, and then those that cannot happen.

    Suspicions with the same call sites are one suspicion. A suspicion that has happened comes
    first, then lock orders, then short cycles, then those that the trace shows most often.

    Args:
        source: The opened traces.
        symbols: Names of addresses.
        kinds: The kinds of suspicions.
        say: Called with remarks for the user.

    Raises:
        NativeError: Memory is out.
    """
    found: dict[object, list[Candidate]] = {}
    for candidate in _all(source, symbols, kinds, say):
        if candidate is not None:
            found.setdefault(_key(candidate), []).append(candidate)
    return sorted(map(_joined, found.values()), key=_rank)


def _all(
    source: Traceset, symbols: Symbols, kinds: Collection[CandidateKind],
    say: Callable[[str], None],
) -> Iterator[Candidate | None]:  # fmt: skip
    events = LockEvents(source, frozenset().union(*(_EVENTS[kind] for kind in kinds)))
    if "lock-order-inversion" in kinds:
        for cycle in lock_cycles(source, checked(source).check):
            yield _of_cycle(cycle, source, symbols)
        for orders, gate in semaphore_cycles(events, Steps("orders of locks with semaphores", say)):
            yield _of_orders(orders, source, symbols, gate=gate)
    if "wait-holding-lock" in kinds:
        for wait, count in nested_waits(events, Steps("waits with locks", say)).items():
            yield _of_wait(wait, count, source, symbols)
    if "lost-wakeup" in kinds:
        for order in signal_orders(events, Steps("waits for signals", say)):
            yield _of_signal(order, source, symbols)


def place_of(source: Traceset, symbols: Symbols, process: int, site: int) -> Place | None:
    """Return a call site as a place in a file; None if the trace does not know its module.

    Args:
        source: The opened traces.
        symbols: Names of addresses.
        process: Number of the process in the traceset.
        site: Number of the call site.
    """
    if is_python(site):
        number = python_place(source, process, site)
        text = symbols.site_name(process, site) or f"python+{number:#x}"
        return Place("", number, "", text, python=True) if number else None
    module = source.processes[process].map.at(site) if site else None
    if module is None:
        return None
    bias = module.start - module.offset if module.bias is None else module.bias
    text = symbols.site_name(process, site)
    offset = address_of_site(site) - bias
    file = module.path.rpartition("/")[2]
    return Place(module.build_id, offset, file, text or f"{file}+{offset:#x}")


def _of_cycle(cycle: LockCycle, source: Traceset, symbols: Symbols) -> Candidate | None:
    roles = []
    for lock in cycle.locks:
        asked = place_of(source, symbols, lock.asker, lock.site)
        held = place_of(source, symbols, lock.asker, lock.held_site)
        if asked is None or held is None:
            return None
        roles.append(Role(asked, held, None, asked))
    reasons = set(cycle.suppressed)
    return Candidate(
        "lock-order-inversion",
        tuple(roles),
        across=len({lock.asker for lock in cycle.locks}) > 1,
        happened="deadlock" in reasons,
        # A lock at a former lock's address may be the same lock: a run shows it.
        impossible=tuple(sorted(reasons - {"deadlock", "memory", "incomplete"})),
    )


def _of_orders(
    orders: tuple[Order, ...], source: Traceset, symbols: Symbols, *, gate: bool
) -> Candidate | None:
    roles = []
    for order in orders:
        asked = place_of(source, symbols, order.process, order.asked_site)
        held = place_of(source, symbols, order.process, order.held_site)
        if asked is None or held is None:
            return None
        roles.append(Role(asked, held, None, asked))
    impossible = ("gate",) if gate else ()
    return Candidate("lock-order-inversion", tuple(roles), early=True, impossible=impossible)


def _of_wait(wait: NestedWait, count: int, source: Traceset, symbols: Symbols) -> Candidate | None:
    asked = place_of(source, symbols, wait.process, wait.lock_site)
    after = place_of(source, symbols, wait.process, wait.wait_site)
    held = place_of(source, symbols, wait.process, wait.held_site)
    if asked is None or after is None or (held is None) != (not wait.held_site):
        return None
    role = Role(asked, held, after, asked, first=wait.same_place)
    return Candidate("wait-holding-lock", (role,), count=count)


def _of_signal(order: SignalOrder, source: Traceset, symbols: Symbols) -> Candidate | None:
    sites = (order.lock_site, order.wait_site, order.signal_site)
    asked, stuck, after = (place_of(source, symbols, order.process, site) for site in sites)
    if asked is None or stuck is None or after is None:
        return None
    return Candidate("lost-wakeup", (Role(asked, None, after, stuck),), count=order.waits)


def _key(candidate: Candidate) -> object:
    """Return what is equal for suspicions of the same call sites, whichever role comes first."""
    keys = [
        tuple(
            place.key if place is not None else ("", 0)
            for place in (r.held, r.asked, r.after, r.stuck)
        )
        for r in candidate.roles
    ]
    turned: Iterator[tuple[object, ...]] = ((*keys[at:], *keys[:at]) for at in range(len(keys)))
    return candidate.kind, candidate.across, min(turned)


def _joined(same: list[Candidate]) -> Candidate:
    """Return one suspicion for several of the same call sites. It can happen if one of them can."""
    possible = [candidate for candidate in same if not candidate.impossible]
    first = (possible or same)[0]
    return Candidate(
        first.kind, first.roles, first.across, first.early,
        sum(each.count for each in possible or same),
        any(candidate.happened for candidate in same), first.impossible,
    )  # fmt: skip


def _rank(candidate: Candidate) -> tuple[Any, ...]:
    impossible = bool(candidate.impossible)
    kind = KINDS.index(candidate.kind)
    return impossible, not candidate.happened, kind, len(candidate.roles), -candidate.count
