"""Puts findings of the checker into words."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nptltrace._binding import libptttrack_facts
from nptltrace.catalog import BY_ID
from nptltrace.trace.symbols.site import hex_of_site

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.trace.source import Source
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["Event", "Teller", "Told"]

_KINDS = {
    1: "thread", 2: "mutex", 3: "rwlock", 4: "spin lock", 5: "condition", 6: "barrier",
    7: "semaphore", 8: "once routine",
}  # fmt: skip
_MUTEX, _THREAD = 2, 1


@dataclass(frozen=True, slots=True)
class Event:
    """One event that proves something.

    Attributes:
        ts_ns: When.
        pid: Process id.
        tid: Kernel thread id, 0 when nobody knows.
        thread: How to call the thread.
        text: What it did.
        site: Where, or empty.
    """

    ts_ns: int
    pid: int
    tid: int
    thread: str
    text: str
    site: str


@dataclass(frozen=True, slots=True)
class Told:
    """A finding in words; see `Finding` for the parts."""

    message: str
    threads: list[int]
    objects: list[int]
    names: list[str]
    sites: list[str]
    events: list[Event]


class _Step:
    """A step of a finding with its names."""

    def __init__(self, teller: Teller, row: Any) -> None:
        self.what = libptttrack_facts.STEPS[int(row["what"])]
        self.ts, self.value = int(row["ts"]), int(row["value"])
        self.row = int(row["thread"])
        self.tid = teller.tid(self.row)
        self.thread = teller.thread(self.row)
        self.other_row = int(row["other"])
        self.other = teller.thread(self.other_row)
        self.process, self.kind = int(row["process"]), int(row["kind"])
        self.address = int(row["object"])
        self.object = teller.object(self.process, self.kind, self.address)
        self.site = teller.site(self.process, int(row["site"]))
        # The mutex of a condition wait.
        self.mutex_address = self.value if self.what == "cond" else 0
        self.mutex = teller.object(self.process, _MUTEX, self.mutex_address)

    @property
    def at(self) -> str:
        """Where, as the end of a sentence."""
        return f" at {self.site}" if self.site else ""

    @property
    def error(self) -> str:
        """The name of the error that a call returned."""
        return errno.errorcode.get(self.value, str(self.value))

    def text(self) -> str:
        """Return what the thread did."""
        shared = " for reading" if self.value == 1 and self.kind == 3 else ""  # noqa: PLR2004
        texts: dict[str, Callable[[], str]] = {
            "took": lambda: f"took {self.object}{shared}",
            "waits": lambda: f"waits for {self.object}{shared}",
            "asked": lambda: f"asked for {self.object}{shared}",
            "cond": lambda: f"waits on {self.object} with {self.mutex}",
            "joins": lambda: f"waits for the end of {self.other}",
            "barrier": lambda: f"waits at {self.object}",
            "released": lambda: (
                f"took {self.object}" if self.kind == 7 else f"released {self.object}"  # noqa: PLR2004
            ),
            "unlocks": lambda: f"released {self.object}",
            "refused": lambda: f"was refused {self.object}: {self.error}" if self.address
            else f"was refused: {self.error}",
            "init": lambda: f"initialized {self.object}",
            "destroyed": lambda: f"destroyed {self.object}",
            "used": lambda: f"used {self.object} ({_event(self.value)})",
            "signalled": lambda: f"signalled {self.object}",
            "broadcast": lambda: f"broadcast {self.object}",
            "ended": lambda: "ended",
            "created": lambda: f"created {self.other}",
            "priority": lambda: f"had {_priority(self.value)}",
            "forked": lambda: f"forked while {self.other} had locks",
        }  # fmt: skip
        return texts[self.what]()


def _event(number: int) -> str:
    return BY_ID[number].name if number in BY_ID else str(number)


def _priority(value: int) -> str:
    return f"real-time priority {value}" if value else "ordinary priority"


class Teller:
    """Names what the checker found.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        check: The checker.
    """

    def __init__(
        self, source: Source, symbols: Symbols | None, check: libptttrack_facts.Check
    ) -> None:
        self._source, self._symbols = source, symbols
        self._threads, self._steps = check.table("threads"), check.table("steps")
        self._processes = source.processes()

    # ---- names ----

    def pid(self, process: int) -> int:
        """Return the process id of a process by its number."""
        return self._processes[process].pid if process < len(self._processes) else 0

    def tid(self, row: int) -> int:
        """Return the kernel thread id of a thread."""
        return int(self._threads["tid"][row]) if row else 0

    def thread(self, row: int) -> str:
        """Return how to call a thread."""
        if not row:
            return "another thread"
        tid, number = int(self._threads["tid"][row]), int(self._threads["number"][row])
        name = "" if number == 2**32 - 1 else self._source.thread_name(number)
        return f"thread {tid}" + (f" ({name})" if name else "")

    def object(self, process: int, kind: int, address: int) -> str:
        """Return how to call an object."""
        if not address:
            return ""
        return f"{_KINDS.get(kind, 'object')} {self.name(process, address)}"

    def name(self, process: int, address: int) -> str:
        """Return the name of an object, or its address."""
        name = self._symbols.object_name(process, address) if self._symbols is not None else ""
        return name or f"{address:#x}"

    def site(self, process: int, site: int) -> str:
        """Return a call site; empty when there is none."""
        if not site:
            return ""
        name = self._symbols.site_name(process, site) if self._symbols is not None else ""
        return name or hex_of_site(site)

    # ---- findings ----

    def tell(self, kind: str, row: Any) -> Told:
        """Return a finding in words."""
        first = int(row["first_step"])
        steps = [_Step(self, step) for step in self._steps[first : first + int(row["steps"])]]
        message = _MESSAGES[kind](steps, row)
        threads = [tid for step in steps for tid in _tids(self, kind, step) if tid]
        objects: dict[int, str] = {}
        for step in steps:
            if step.address and step.kind != _THREAD:
                objects[step.address] = self.name(step.process, step.address)
            if step.mutex_address:
                objects[step.mutex_address] = self.name(step.process, step.mutex_address)
        events = [
            Event(s.ts, self.pid(s.process), s.tid, s.thread, s.text(), s.site) for s in steps
        ]
        return Told(
            message=message,
            threads=list(dict.fromkeys(threads)),
            objects=list(objects),
            names=list(objects.values()),
            sites=list(dict.fromkeys(step.site for step in steps if step.site)),
            events=events,
        )


def _tids(teller: Teller, kind: str, step: _Step) -> list[int]:
    """Return who takes part in a step as one who is concerned."""
    if step.what == "init":
        return []
    if step.what in ("created", "forked"):
        return [teller.tid(step.other_row)]
    if kind == "exit-holding-lock" or step.what != "joins":
        return [step.tid]
    return [step.tid, teller.tid(step.other_row)]


def _seconds(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns // size} {unit}"
    return f"{ns} ns"


def _first(steps: list[_Step], *whats: str) -> _Step | None:
    return next((step for step in steps if step.what in whats), None)


def _deadlock(steps: list[_Step], row: Any) -> str:
    if int(row["flags"]) & libptttrack_facts.REFUSED:
        refused = steps[-1]
        text = f"{refused.thread} would have waited for ever{refused.at}: the call was refused"
        return f"{text} with {refused.error}" + (
            f", as {steps[0].thread} {steps[0].text()}" if len(steps) > 1 else ""
        )
    if steps[0].what == "forked":
        forked, wait = steps
        return (
            f"{wait.thread} waits for {wait.object}{wait.at} for ever: {wait.other} held it when "
            f"{forked.thread} forked this process{forked.at}, and does not exist here"
        )
    return "; ".join(_blocked(steps))


def _blocked(steps: list[_Step]) -> list[str]:
    """Return what each thread waits for, and what it has that others want."""
    parts = []
    held: _Step | None = None
    for step in steps:
        if step.what == "took":
            held = step
            continue
        holds = f"holds {held.object} and " if held is not None and held.row == step.row else ""
        by = f", held by {step.other}" if step.what == "waits" and step.other_row else ""
        parts.append(f"{step.thread} {holds}{step.text()}{step.at}{by}")
        held = None
    return parts


def _stuck(steps: list[_Step], row: Any) -> str:
    parts = _blocked(steps)
    more = int(row["value"]) - len(parts)
    if more > 0:
        parts.append(f"{more} more wait")
    what = "the only thread of this process is" if len(parts) == 1 else "all threads are"
    return f"{what} blocked for ever, and nobody is left to wake one: " + "; ".join(parts)


def _self_deadlock(steps: list[_Step], row: Any) -> str:
    last, taken = steps[-1], _first(steps, "took")
    where = f", taken{taken.at}" if taken is not None and taken.site else ""
    if int(row["flags"]) & libptttrack_facts.REFUSED:
        if not last.address:
            return f"{last.thread} waits for its own end{last.at}: refused with {last.error}"
        return (
            f"{last.thread} locks {last.object} again{last.at}, which it holds already{where}: "
            f"refused with {last.error}"
        )
    if last.kind == _THREAD:
        return f"{last.thread} waits for its own end{last.at}"
    return f"{last.thread} {last.text()}{last.at}, which it holds itself{where}"


def _order(steps: list[_Step], row: Any) -> str:
    del row
    parts = [
        f"{held.thread} asked for {asked.object}{asked.at} while it held {held.object}"
        for held, asked in zip(steps[::2], steps[1::2], strict=True)
    ]
    return "locks are taken in orders that can deadlock: " + "; ".join(parts)


def _lost(steps: list[_Step], row: Any) -> str:
    del row
    signal, wait = steps[0], steps[-1]
    did = "broadcast" if signal.what == "broadcast" else "signalled"
    if len(steps) == 3:  # noqa: PLR2004
        instead = steps[1]
        return (
            f"{wait.thread} waits on {wait.object}{wait.at} for ever: when {signal.thread} "
            f"signalled it{signal.at}, that woke {instead.thread}, which went back to wait"
            f"{instead.at}; a broadcast would have woken both"
        )
    return (
        f"{wait.thread} waits on {wait.object}{wait.at} for ever: {signal.thread} {did} it"
        f"{signal.at} before that wait began, and nobody has since"
    )


def _not_owner(steps: list[_Step], row: Any) -> str:
    held, last = steps[0], steps[-1]
    end = _refusal(last, row)
    return f"{last.thread} unlocked {last.object}{last.at}, which {held.thread} held{end}"


def _unlocked(steps: list[_Step], row: Any) -> str:
    last, released = steps[-1], _first(steps[:-1], "released")
    end = _refusal(last, row)
    if released is not None:
        end = f" since {released.thread} released it{released.at}{end}"
    return f"{last.thread} unlocked {last.object}{last.at}, which nobody held{end}"


def _refusal(step: _Step, row: Any) -> str:
    return f" (refused with {step.error})" if int(row["flags"]) & libptttrack_facts.REFUSED else ""


def _destroy_locked(steps: list[_Step], row: Any) -> str:
    last = steps[-1]
    end = _refusal(last, row)
    held, wait = _first(steps, "took"), _first(steps, "cond", "waits")
    if held is not None:
        mine = "it" if held.row == last.row else held.thread
        why = f"while {mine} held it, taken{held.at}"
    elif wait is not None:
        why = f"while {wait.thread} was waiting on it{wait.at}"
    else:
        why = "while it was in use"
    return f"{last.thread} destroyed {last.object}{last.at} {why}{end}"


def _after_destroy(steps: list[_Step], row: Any) -> str:
    del row
    last, gone = steps[-1], _first(steps, "destroyed")
    by = f", which {gone.thread} had destroyed{gone.at}" if gone is not None else " once destroyed"
    return f"{last.thread} used {last.object}{last.at}{by}"


def _cond_unlocked(steps: list[_Step], row: Any) -> str:
    wait = next(step for step in steps if step.what == "cond")
    held = _first(steps, "took")
    who = f"{held.thread} held it" if held is not None else "nobody held it"
    return (
        f"{wait.thread} waited on {wait.object}{wait.at} with {wait.mutex}, which it had not "
        f"locked: {who}{_refusal(steps[-1], row)}"
    )


def _two_mutexes(steps: list[_Step], row: Any) -> str:
    del row
    one, two = steps
    return (
        f"{two.thread} waits on {two.object} with {two.mutex}{two.at} while {one.thread} waits on "
        f"it with {one.mutex}{one.at}"
    )


def _exit_holding(steps: list[_Step], row: Any) -> str:
    del row
    held = steps[0]
    return f"{held.thread} ended while it held {held.object}, taken{held.at}"


def _leak(steps: list[_Step], row: Any) -> str:
    del row
    made = steps[0]
    return f"{made.other}, created{made.at}, ended and was neither joined nor detached"


def _barrier(steps: list[_Step], row: Any) -> str:
    waits = [step for step in steps if step.what == "barrier"]
    who = ", ".join(step.thread for step in waits)
    return (
        f"{who} wait{'s' if len(waits) == 1 else ''} at {waits[0].object}{waits[0].at} for ever: "
        f"{int(row['value'])} of {waits[0].value} will not come"
    )


def _long(steps: list[_Step], row: Any) -> str:
    held = steps[0]
    return f"{held.thread} held {held.object} for {_seconds(int(row['value']))}, taken{held.at}"


def _inversion(steps: list[_Step], row: Any) -> str:
    wait = next(step for step in steps if step.what == "waits")
    high = [step.value for step in steps if step.what == "priority"]
    return (
        f"{wait.thread} with {_priority(high[-1])} waited {_seconds(int(row['value']))} for "
        f"{wait.object}{wait.at}, which {wait.other} with {_priority(high[0])} held without "
        "inheriting its priority"
    )


_MESSAGES: dict[str, Callable[[list[_Step], Any], str]] = {
    "deadlock": _deadlock,
    "self-deadlock": _self_deadlock,
    "lock-order-inversion": _order,
    "lost-wakeup": _lost,
    "unlock-not-owner": _not_owner,
    "unlock-unlocked": _unlocked,
    "destroy-locked": _destroy_locked,
    "use-after-destroy": _after_destroy,
    "cond-wait-unlocked-mutex": _cond_unlocked,
    "cond-two-mutexes": _two_mutexes,
    "exit-holding-lock": _exit_holding,
    "thread-leak": _leak,
    "barrier-stuck": _barrier,
    "long-hold": _long,
    "priority-inversion": _inversion,
    "stuck": _stuck,
}
