"""Evidence of a hang: findings of two looks at a process, and locks whose holders wait inside it.

A single look may find threads that are about to go on. So a finding counts if a second look finds
it again, and the threads have not run in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from nptltrace.errors import PttError
from nptltrace.hang.picture import look
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.hang.verdicts import verdicts
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from nptltrace.guard.progress import Place
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.verdicts import Verdict

__all__ = ["Cause", "Judge", "Look", "look_at"]

# A wait for one of these objects is a wait for the owner.
_LOCKS = frozenset(
    {
        "mutex", "rwlock", "once", "static", "stream", "malloc lock", "C library lock", "monitor",
        "lock", "gil",
    }
)  # fmt: skip
# Waits that another thread of the program ends.
_INSIDE = _LOCKS | {
    "condition", "semaphore", "barrier", "join", "future", "park", "receive", "send", "scope",
}  # fmt: skip

# Waits that another process may end, too, if the object is in memory that processes share.
_SHARED = frozenset({"condition", "semaphore", "barrier"})

# Waits for what nobody owns. A later wait at the same place and depth of the stack is such a wait,
# too. A lock of Python counts, unless its owner was known.
_OWNERLESS = frozenset({"condition", "semaphore", "barrier", "futex", "park", "lock"})

What = Literal["finding", "idle", "after"]


class Look(NamedTuple):
    """A process as a look has shown it.

    Attributes:
        process: The process.
        names: The names in the process.
        picture: Its threads.
        verdicts: The findings.
    """

    process: Process
    names: Names
    picture: Picture
    verdicts: list[Verdict]


class Cause(NamedTuple):
    """The reason for a report.

    Attributes:
        what: `finding`, `idle` (no progress although threads wait for locks), or `after` (a time
            is over).
        kind: The kind of finding; `no-progress` or `time-limit` without a finding.
        text: The reason as a sentence, without a capital and full stop.
        pid: The process with the hang; 0 for the whole tree.
        verdicts: The findings.
        looks: What was seen so far.
    """

    what: What
    kind: str
    text: str
    pid: int
    verdicts: tuple[Verdict, ...] = ()
    looks: tuple[Look, ...] = ()


def look_at(pid: int, known: Look | None = None) -> Look:
    """Look at a process, and search for reasons why its threads never go on.

    Args:
        pid: The process.
        known: An earlier look, for the names.

    Raises:
        PttError: The process is gone, or we may not look into it.
    """
    process = Process(pid)
    names = Names(Symbols(OneProcess(process))) if known is None else known.names
    picture = look(process, names)
    return Look(process, names, picture, verdicts(process, picture, names))


class Judge:
    """Looks twice at processes whose threads have come to rest.

    Attributes:
        refused: The processes that we may not look into, each with the reason.
    """

    def __init__(self) -> None:
        self.refused: dict[int, str] = {}
        # The first look, its signs, and the time without progress; 0 for a look without this time.
        self._suspected: dict[int, tuple[Look, frozenset[Hashable], float]] = {}
        self._reported: set[tuple[int, int]] = set()

    @property
    def suspects(self) -> list[int]:
        """The processes that need a second look."""
        return [*self._suspected]

    def first(self, pid: int) -> Mapping[Place, int]:
        """Look at a process for the first time.

        Returns:
            The futexes of waits for objects without owner, by place.
        """
        if (seen := self._look(pid, None)) is None:
            return {}
        if found := self._signs(seen):
            self._suspected[pid] = seen, found, 0.0
            return {}
        return {
            (each.thread.tid, each.thread.sp, each.thread.pc): wait.word
            for each in seen.picture.threads
            if (wait := each.wait) is not None and wait.kind in _OWNERLESS and not wait.owner
        }

    def second(self, pid: int) -> Cause | None:
        """Look again at a suspect, and return a finding that is still true, or None."""
        before, signs, idle_s = self._suspected.pop(pid)
        if (seen := self._look(pid, before)) is None:
            return None
        # The names of the verdict come from this look, so the report uses the same look.
        true = [v for v in seen.verdicts if _sign(v.kind, v.threads) in signs and self._is_new(v)]
        if true and not idle_s:
            return Cause("finding", true[0].kind, true[0].message, pid, (*true,), (seen,))
        if true:
            kind, text = true[0].kind, true[0].message
        elif chain := next((c for c in self._chains(seen) if _sign("", c) in signs), []):
            kind, text = "no-progress", _chain_text(seen, chain)
        else:
            return None
        return Cause("idle", kind, f"no progress for {idle_s:g} s: {text}", pid, (*true,), (seen,))

    def without_progress(self, pids: Iterable[int], idle_s: float) -> None:
        """Suspect the processes with a wait for a lock whose holders wait in the program.

        Args:
            pids: Processes without progress.
            idle_s: How long there was no progress, in s.
        """
        for pid in pids:
            if pid in self._suspected or (seen := self._look(pid, None)) is None:
                continue
            if any(each.thread.is_stopped for each in seen.picture.threads):
                continue
            cycles = [v for v in seen.verdicts if v.kind == "deadlock" and self._is_new(v)]
            signs = {_sign(verdict.kind, verdict.threads) for verdict in cycles}
            signs |= {_sign("", chain) for chain in self._chains(seen)}
            if signs:
                self._suspected[pid] = seen, frozenset(signs), idle_s

    def report(self, cause: Cause) -> None:
        """Remember that a cause was reported."""
        threads = [seen for verdict in cause.verdicts for seen in verdict.threads]
        if cause.what == "idle":
            threads += cause.looks[0].picture.threads
        self._reported.update((seen.pid, seen.thread.tid) for seen in threads)

    def leave(self, pid: int) -> None:
        """Forget a process that is gone."""
        self.refused.pop(pid, None)
        self._suspected.pop(pid, None)
        self._reported = {each for each in self._reported if each[0] != pid}

    def _look(self, pid: int, known: Look | None) -> Look | None:
        try:
            return look_at(pid, known)
        except PttError as error:
            self.refused[pid] = str(error)
            return None

    def _signs(self, seen: Look) -> frozenset[Hashable]:
        return frozenset(
            _sign(verdict.kind, verdict.threads)
            for verdict in seen.verdicts
            if verdict.severity == "error"
            and self._is_new(verdict)
            and not any(each.thread.is_stopped for each in verdict.threads)
        )

    def _chains(self, seen: Look) -> Iterator[list[ThreadPicture]]:
        """Yield the chains of threads that were not reported before."""
        for chain in _chains(seen.picture.threads):
            if not self._reported.intersection((each.pid, each.thread.tid) for each in chain):
                yield chain

    def _is_new(self, verdict: Verdict) -> bool:
        threads = {(seen.pid, seen.thread.tid) for seen in verdict.threads}
        return not threads & self._reported


def _sign(kind: str, threads: Iterable[ThreadPicture]) -> Hashable:
    """Return a value that stays the same from one look to the next if no thread has run."""
    return kind, frozenset(
        (
            seen.pid, seen.thread.tid, wait.kind if wait is not None else "",
            wait.object if wait is not None else 0,
            # Some threads run now and then, but only to ask for the same lock again.
            0 if wait is not None and wait.repeated else seen.thread.turns,
        )
        for seen in threads
        for wait in (seen.wait,)
    )  # fmt: skip


def _chains(threads: Iterable[ThreadPicture]) -> Iterator[list[ThreadPicture]]:
    """Yield chains of threads, from a thread that waits for a lock to a holder that waits inside.

    A holder that waits for time or for work from outside goes on by itself. Another process may
    wake a holder that waits in shared memory.
    """
    by_tid = {seen.thread.inner_tid: seen for seen in threads}
    for first in by_tid.values():
        chain: dict[int, ThreadPicture] = {}
        seen: ThreadPicture | None = first
        while seen is not None and seen.thread.inner_tid not in chain:
            wait = seen.wait
            if wait is None or wait.timed or wait.kind not in _INSIDE:
                break
            if wait.kind in _SHARED and not wait.private:
                break
            chain[seen.thread.inner_tid] = seen
            if wait.kind not in _LOCKS and len(chain) > 1:
                yield [*chain.values()]
                break
            if wait.kind not in _LOCKS:
                break
            seen = by_tid.get(wait.owner)


def _chain_text(look: Look, chain: list[ThreadPicture]) -> str:
    from nptltrace.hang.verdicts import waits_sentence

    by_tid = {seen.thread.inner_tid: seen for seen in look.picture.threads}
    return "; ".join(
        f"{seen.thread} {waits_sentence(seen, by_tid)}" + (f" in {seen.site}" if seen.site else "")
        for seen in chain
    )
