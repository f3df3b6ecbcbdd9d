"""Facts of the checker with names of threads, objects and call sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._binding import libptttrack_facts
from nptltrace.analysis.event_stacks import Evidence
from nptltrace.catalog import DOMAINS, FUTEX_KINDS, SYS_CALLS
from nptltrace.findings.facts import Fact, Step
from nptltrace.trace.code.call_site import hex_of_site
from nptltrace.trace.objects.gates import is_gate, waits_for_turn
from nptltrace.trace.symbols.frames import is_in_wrapper

if TYPE_CHECKING:
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Facts"]

_KINDS = {
    1: "thread", 2: "mutex", 3: "rwlock", 4: "spin lock", 5: "condition", 6: "barrier",
    7: "semaphore", 8: "once routine",
}  # fmt: skip


# Facts about locks that a thread keeps for too long, and the steps that name these locks.
_TIME_FACTS = {
    "long-hold",
    "wait-for-lower",
    "wait-with-hold",
    "hold-preempted",
    "hold-asleep",
    "convoy",
}
_LOCK_STEPS = {"took", "passed"}
# A condition in these steps stands for the interpreter's lock.
_GIL_STEPS = {("took", DOMAINS["cond"]), ("waits", DOMAINS["cond"])}


def _kind(what: str, kind: int, value: int) -> str:
    """Return the word for the object of a step. For a futex, the waits say its purpose."""
    if kind == DOMAINS["futex"] and what in {"waits", "released"} and value < len(FUTEX_KINDS):
        return FUTEX_KINDS[value]
    return _KINDS.get(kind, "object")


class Facts:
    """The facts that a checker has so far, without withdrawn facts.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        check: The checker.
    """

    def __init__(
        self, source: Traceset, symbols: Symbols | None, check: libptttrack_facts.Check
    ) -> None:
        self._source, self._symbols = source, symbols
        self._threads, self._steps = check.table("threads"), check.table("steps")
        self._processes = source.processes
        self._names: dict[tuple[int, int], str] = {}
        self._facts: dict[str, list[Fact]] = {name: [] for name in libptttrack_facts.FACTS}
        for row in check.table("facts")[1:]:
            if not int(row["flags"]) & libptttrack_facts.DROPPED:
                kind, fact = libptttrack_facts.FACTS[int(row["kind"])], self._fact(row)
                if kind not in _TIME_FACTS or not self._is_about_gate(fact):
                    self._facts[kind].append(fact)

    def of(self, kind: str) -> list[Fact]:
        """Return the facts of a kind, one of `FACTS`."""
        return self._facts[kind]

    @property
    def processes(self) -> int:
        """The number of processes."""
        return len(self._processes)

    def pid(self, process: int) -> int:
        """Return the process id of a process by its number."""
        return self._processes[process].pid if process < len(self._processes) else 0

    def object_name(self, process: int, address: int) -> str:
        """Return the name of an object as in the last step with the object, or its address."""
        return self._names.get((process, address)) or self._name(process, address)

    def _is_about_gate(self, fact: Fact) -> bool:
        """Return whether a fact is about a gate: a lock where a program parks threads."""
        exe = self._processes[fact.process].exe if fact.process < len(self._processes) else ""
        if any(is_gate(exe, step.name) for step in fact.steps if step.what in _LOCK_STEPS):
            return True
        waits = [step for step in fact.steps if step.what == "waits" and step.kind == "semaphore"]
        evidence = Evidence(self._source, self._symbols) if waits else None
        return evidence is not None and any(
            waits_for_turn(evidence.stack(step.process, step.event, whole=True)) for step in waits
        )

    def _name(self, process: int, address: int, kind: int = 0, at_ns: int | None = None) -> str:
        name = ""
        if self._symbols is not None:
            name = self._symbols.object_name(process, address, kind, at_ns)
        return name or f"{address:#x}"

    def _fact(self, row: Any) -> Fact:
        first, flags = int(row["first_step"]), int(row["flags"])
        return Fact(
            ts_ns=int(row["ts"]),
            process=int(row["process"]),
            value=int(row["value"]),
            count=int(row["count"]),
            total=int(row["total"]),
            steps=tuple(map(self._step, self._steps[first : first + int(row["steps"])])),
            refused=bool(flags & libptttrack_facts.REFUSED),
            unless_handler=bool(flags & libptttrack_facts.UNLESS_HANDLER),
            suspect=bool(flags & libptttrack_facts.SUSPECT),
        )

    def _step(self, row: Any) -> Step:
        what = libptttrack_facts.STEPS[int(row["what"])]
        process, address = int(row["process"]), int(row["object"])
        name, kind = "", int(row["kind"])
        if address:
            name = self._name(process, address, kind, int(row["ts"]))
            self._names[process, address] = name
        thread, other = int(row["thread"]), int(row["other"])
        mutex = int(row["value"]) if what == "cond" else 0
        # A thread of another process may share the object.
        caller = int(self._threads["process"][thread]) if thread else process
        return Step(
            what=what,
            ts_ns=int(row["ts"]),
            value=int(row["value"]),
            process=caller,
            pid=self.pid(caller),
            thread=self._thread(thread),
            tid=self._tid(thread),
            thread_id=thread,
            other=self._thread(other),
            other_tid=self._tid(other),
            other_id=other,
            kind="" if (what, kind) in _GIL_STEPS else _kind(what, kind, int(row["value"])),
            address=address,
            name=name,
            mutex_address=mutex,
            mutex_name=self.object_name(caller, mutex) if mutex else "",
            site=self._site(what, kind, caller, int(row["site"])),
            call=SYS_CALLS[int(row["call"])] if int(row["call"]) < len(SYS_CALLS) else "",
        )

    def _tid(self, row: int) -> int:
        return int(self._threads["tid"][row]) if row else 0

    def _thread(self, row: int) -> str:
        """Return a thread as text, such as `thread 12 (worker)`."""
        if not row:
            return "another thread"
        tid, number = self._tid(row), int(self._threads["number"][row])
        first_ns = int(self._threads["first_ns"][row])
        name = "" if number == 2**32 - 1 else self._source.names.of(number, first_ns)
        return f"thread {tid}" + (f" ({name})" if name else "")

    def _site(self, what: str, kind: int, process: int, site: int) -> str:
        """Return the call site of a step as text, or the empty text."""
        if not site:
            return ""
        if self._symbols is None:
            return hex_of_site(site)
        # A call site in the interpreter does not show which function of Python took the semaphore.
        is_semaphore = (what, kind) == ("took", DOMAINS["sem"])
        if is_semaphore and is_in_wrapper(self._symbols, process, site):
            return ""
        return self._symbols.site_name(process, site) or hex_of_site(site)
