"""The reasons why threads of a process never go on, from a picture and a second look."""

from __future__ import annotations

import time
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._units import plural
from nptltrace.findings.facts import listed
from nptltrace.hang.c_library import c_library
from nptltrace.hang.conditions import COUNTED, read_condition
from nptltrace.hang.idle import (
    has_lock_of_manager,
    is_of_manager,
    rests_in_loop,
    wait_for_signal,
    wait_for_work,
)
from nptltrace.hang.other_processes import closed_set, with_owners
from nptltrace.hang.owners.free_locks import left_asleep
from nptltrace.hang.owners.python_locks import GIL
from nptltrace.hang.owners.rcu import GRACE
from nptltrace.hang.picture import look
from nptltrace.hang.routines import routine_kind
from nptltrace.hang.signals import BY_ITSELF, handlers
from nptltrace.hang.stack.cpython import PythonFrame
from nptltrace.hang.stack.shown_frames import SignalFrame, signal_name
from nptltrace.hang.time_limits import is_of_other_clock, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nptltrace.findings.facts import Severity
    from nptltrace.hang.other_processes import Looked
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import Peers, ThreadPicture
    from nptltrace.hang.waits import Wait

__all__ = ["Verdict", "verdicts", "waits_sentence"]

_LOCKS = frozenset({"mutex", "rwlock"})
# Objects with one owner at a time, though some libraries do not store the owner.
_OWNED = _LOCKS | {
    "once", "static", "stream", "malloc lock", "C library lock", "monitor", "lock", "spin lock",
    GIL,
}  # fmt: skip
# Texts for waits without an object.
_WITHOUT_OBJECT = {
    "park": "waits to be unparked",
    "receive": "waits to receive from a channel",
    "send": "waits to send to a channel",
    "scope": "waits for the threads of a scope",
    "go": "waits for what Go's runtime knows",
}
# Waits that a signal handler may end with async-signal-safe functions (POSIX.1-2017, 2.4.3).
_BY_HANDLERS = frozenset({"semaphore", "futex", "park", "file"})
# Values of `Peers.by` for a thread that reads from the processes.
_FROM = frozenset({"written by", "connected to", "woken by"})
_FEW = 8
# The largest number of frames of the C library after the frame of a handler.
_LIBRARY = 4
# The largest number of further looks at threads that run now and then, the pause between looks,
# and the number of looks in sequence that must agree.
_LOOKS, _PAUSE_S, _AGREE = 32, 0.01, 2
# Imports of modules with condition waits that may end without a signal.
_LEAVE_A_WAIT = frozenset(
    {"pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_timedwait", "pthread_cancel"}
)


class Verdict(NamedTuple):
    """A reason why threads never go on.

    Attributes:
        kind: The kind of finding, as in `ptt check`.
        title: A sentence without a capital and full stop.
        threads: The threads.
        severity: As in `ptt check`; a warning if a signal handler may still wake a thread.
        waits: The waits that prove the sentence, each as a sentence; empty if `title` says all.
        remark: A sentence to stand behind the title, or empty.
    """

    kind: str
    title: str
    threads: tuple[ThreadPicture, ...]
    severity: Severity = "error"
    waits: tuple[str, ...] = ()
    remark: str = ""

    @property
    def message(self) -> str:
        """The verdict with its waits as a sentence without a capital and full stop."""
        waits = f": {'; '.join(self.waits)}" if self.waits else ""
        return f"{self.title}{waits}{self.remark and f'. {self.remark}'}"


def verdicts(process: Target, picture: Picture, names: Names) -> list[Verdict]:
    """Return the reasons why threads surely never go on.

    The threads of a picture are read one after the other. So a second look checks each verdict, and
    drops a verdict if one of its threads has run meanwhile.

    Args:
        process: The process.
        picture: The picture of its threads.
        names: The names in the process.
    """
    by_tid = {seen.thread.inner_tid: seen for seen in picture.threads}
    together = with_owners(process, picture, names)
    threads = chain.from_iterable(looked.picture.threads for looked in together)
    everybody = {seen.thread.inner_tid: seen for seen in threads}
    possible = [
        *_cycles(everybody, by_tid),
        *_ownerless(process, by_tid),
        *_lost_signals(process, picture, names),
        *_other_clocks(picture.threads),
        *_lost_wakeups(picture.threads, lambda: look(process, names).threads),
    ]
    if not possible and (closed := closed_set(process, picture, names)):
        possible = [*_stuck(closed)]
        together += closed
    processes = {looked.process.pid: looked.process for looked in together}
    wait_so = partial(_wait_so, process, names)
    return [verdict for verdict in possible if _is_still_so(processes, verdict.threads, wait_so)]


def waits_sentence(seen: ThreadPicture, by_tid: dict[int, ThreadPicture]) -> str:
    """Return the wait of a thread and the holder of the object, as the end of a sentence.

    Args:
        seen: The thread.
        by_tid: The known threads by their ids in the process's PID namespace.
    """
    wait, thread = seen.wait, seen.thread
    if not thread.is_stopped:
        return _wait_sentence(seen, by_tid)
    stopped = f"by debugger {thread.tracer}" if thread.tracer else "by a signal"
    goes_on = "" if thread.tracer else ": `fg` or SIGCONT lets it go on"
    if wait is None or wait.kind == "call":
        where = "" if wait is None else f" in {seen.peers.text if seen.peers else wait.call}"
        return f"is stopped {stopped}{where}{goes_on}"
    return f"{_wait_sentence(seen, by_tid)}; it is stopped {stopped}{goes_on}"


def _wait_sentence(seen: ThreadPicture, by_tid: dict[int, ThreadPicture]) -> str:
    wait = seen.wait
    if wait is None:
        if seen.thread.has_ended:
            return "has ended"
        return "can run" if seen.state == "runnable" else "sleeps"
    limit = _limit(seen) if wait.timed else ""
    if wait.kind == "call":
        return f"sleeps in {wait.call}" if seen.peers is None else _peers_sentence(seen.peers)
    if wait.kind == "join":
        has_ended = wait.free and wait.owner not in by_tid
        owner = _named(wait.owner, by_tid, seen.pid)
        if not wait.owner:
            owner = "an unknown thread"
        ended = f"thread {wait.owner}" if wait.owner else "a thread"
        thread = f"{ended}, which has ended" if has_ended else owner
        return f"waits for the end of {thread}{limit}"
    if wait.kind in _WITHOUT_OBJECT:
        at = f" at {seen.object_name}" if seen.object_name else ""
        return f"{_WITHOUT_OBJECT[wait.kind]}{at}{limit}"
    verb = "spins" if wait.kind == "spin lock" else "waits"
    access = ""
    if wait.kind == "rwlock":
        access = " to write" if wait.writes else " to read"
    return f"{verb} for {_object(seen, wait)}{access}{_holder(seen, wait, by_tid)}{limit}"


def _peers_sentence(peers: Peers) -> str:
    """Return the system call of a thread, and the processes that can end the call."""
    if not peers.names:
        return f"sleeps in {peers.text}"
    by = f", {peers.by} " if peers.by else ": "
    more = f" and {len(peers.names) - _FEW} more" if len(peers.names) > _FEW else ""
    return f"sleeps in {peers.text}{by}{', '.join(peers.names[:_FEW])}{more}"


def _limit(seen: ThreadPicture) -> str:
    """Return the time limit of a wait, as the end of a sentence."""
    if seen.limit is None:
        return ", with a time limit"
    if seen.limit.is_length:
        return f", with a time limit of {length(seen.limit.ns)}"
    if seen.limit.ns < 0:
        return ", with a time limit that is over"
    return f", with a time limit that ends in {length(seen.limit.ns)}"


def _holder(seen: ThreadPicture, wait: Wait, by_tid: dict[int, ThreadPicture]) -> str:
    """Return the holder of the object of a wait, as the end of a sentence."""
    held = {"once": "run", "static": "initialized", GRACE: "held up"}.get(wait.kind, "held")
    if wait.owner:
        return f", {held} by {_named(wait.owner, by_tid, seen.pid)}"
    if wait.readers:
        return f", held by {wait.readers} {plural(wait.readers, 'reader')}"
    if wait.free:
        return ", which nobody holds"
    return f", {held} by an unknown thread" if wait.kind in _OWNED else ""


def _object(seen: ThreadPicture, wait: Wait) -> str:
    """Return the object of a wait in words."""
    if wait.kind == GIL:
        return "the GIL"
    if not wait.object:
        return f"a {wait.kind}"
    return f"{wait.kind} {seen.object_name or hex(wait.object)}"


def _named(tid: int, by_tid: dict[int, ThreadPicture], pid: int) -> str:
    seen = by_tid.get(tid)
    if seen is None:
        return f"thread {tid}, which is not in this process"
    return _thread(seen, pid)


def _cycles(by_tid: dict[int, ThreadPicture], begins: Iterable[int]) -> Iterator[Verdict]:
    """Yield each cycle of threads that wait for each other without a time limit.

    Args:
        by_tid: All threads by id.
        begins: The ids of the threads where the search begins.
    """
    done: set[int] = set()
    for first in begins:
        path: dict[int, None] = {}  # in the order of the waits
        tid = first
        while tid in by_tid and tid not in done and tid not in path:
            path[tid] = None
            wait = by_tid[tid].wait
            tid = wait.owner if wait is not None and not wait.timed else 0
        if tid in path:
            members = [*path]
            cycle = [by_tid[member] for member in members[members.index(tid) :]]
            waits = tuple(
                f"{seen.thread} {waits_sentence(seen, by_tid)}{_at(seen)}" for seen in cycle
            )
            if len(cycle) > 1:
                title = f"{listed(str(seen.thread) for seen in cycle)} wait for each other"
                yield Verdict("deadlock", title, tuple(cycle), waits=waits)
            else:
                yield Verdict("self-deadlock", waits[0], tuple(cycle))
        done.update(path)


def _ownerless(process: Target, by_tid: dict[int, ThreadPicture]) -> Iterator[Verdict]:
    """Yield the waits for locks with owners that have ended."""
    lives = cache(lambda owner, private: process.may_live(owner, private=private))
    for seen in by_tid.values():
        wait = seen.wait
        if wait is None or wait.kind not in _LOCKS or not wait.owner or wait.timed:
            continue
        if wait.owner in by_tid or lives(wait.owner, wait.private):
            continue
        waits = f"{seen.thread} waits for {_object(seen, wait)}{_at(seen)}, which"
        if wait.private and (parent := process.parent_with(wait.owner)):
            yield Verdict(
                "deadlock",
                f"{waits} thread {wait.owner} of process {parent} held when it forked this "
                "process: no thread here can release it",
                (seen,),
            )
            continue
        # Ids grow: an id below all ids of this process belongs to a thread of another process.
        is_older = wait.private and wait.owner < min(by_tid)
        forked = ", or when this process was forked" if is_older else ""
        yield Verdict(
            "exit-holding-lock",
            f"{waits} thread {wait.owner} held when it ended{forked}",
            (seen,),
        )


def _other_clocks(threads: Sequence[ThreadPicture]) -> Iterator[Verdict]:
    """Yield the waits by CLOCK_MONOTONIC with a time limit from CLOCK_REALTIME."""
    by_tid = {seen.thread.inner_tid: seen for seen in threads}
    for seen in threads:
        limit = seen.limit
        if limit is None or limit.as_realtime_ns is None or not is_of_other_clock(limit):
            continue
        other = limit.as_realtime_ns
        when = f"{length(-other)} ago" if other < 0 else f"in {length(other)}"
        yield Verdict(
            "wrong-clock",
            f"{seen.thread} {waits_sentence(seen, by_tid)}{_at(seen)}: the wait goes by "
            f"CLOCK_MONOTONIC, and its limit is a time of CLOCK_REALTIME, by which it ends {when}",
            (seen,),
        )


def _lost_wakeups(
    threads: Sequence[ThreadPicture], look_again: Callable[[], Sequence[ThreadPicture]]
) -> Iterator[Verdict]:
    """Yield the waits for free mutexes: the wake-up went to another thread."""
    by_tid = {seen.thread.inner_tid: seen for seen in threads}
    took = [f"{seen.thread}, which is in {seen.handler}" for seen in threads if _took_wakeup(seen)]
    to = " or ".join(took[:_FEW]) or "another thread"
    for seen in left_asleep(threads, look_again):
        waits = f"{seen.thread} {waits_sentence(seen, by_tid)}{_at(seen)}"
        yield Verdict("lost-wakeup", f"{waits}: its wake-up went to {to}", (seen,))


def _took_wakeup(seen: ThreadPicture) -> bool:
    """Return whether a signal handler has interrupted a thread that waited for a mutex."""
    kinds = [routine_kind(frame.function) for frame in seen.frames]
    return any(
        "mutex" in kinds[number + 1 : number + 1 + _LIBRARY]
        for number, frame in enumerate(seen.frames)
        if isinstance(frame, SignalFrame)
    )


def _lost_signals(process: Target, picture: Picture, names: Names) -> Iterator[Verdict]:
    """Yield the conditions with signals that go to a group without waiters (glibc bug 25847)."""
    waiting: dict[int, list[ThreadPicture]] = {}
    for seen in picture.threads:
        if seen.wait is not None and seen.wait.kind == "condition":
            waiting.setdefault(seen.wait.object, []).append(seen)
    if c_library(process, names).condition not in {COUNTED, None}:
        return
    for address, threads in waiting.items():
        state = read_condition(process, address)
        asleep = [t for t in threads if t.wait is not None and state and t.wait.word == state.word]
        # A condition of another library has another layout, so no thread sleeps on this word. If
        # not all waiters sleep in the new group, the old group may still have waiters.
        if state is None or not asleep or {state.waiters, state.references} != {len(asleep)}:
            continue
        given, later = state.given, state.expected
        if not later and names.imports(process.modules, _LEAVE_A_WAIT) is not False:
            continue
        what = f"condition {threads[0].object_name or hex(address)}"
        waiters = ", ".join(str(seen.thread) for seen in asleep[:_FEW])
        more = f" and {len(asleep) - _FEW} more" if len(asleep) > _FEW else ""
        parts = [f"{given} {plural(given, 'signal')} of {what} went"] if given else []
        if later:
            signals = plural(later, "signal", f"{later} signals")
            parts.append(f"the next {signals} of {what} will go")
        if parts:
            yield Verdict(
                "cond-wakeup",
                f"{' and '.join(parts)} to a group of waiters that all threads have left, an error "
                f"of the C library (glibc bug 25847), while {waiters}{more} wait in another group",
                tuple(asleep),
            )


def _stuck(closed: Sequence[Looked]) -> Iterator[Verdict]:
    """Yield that no thread is left to wake another thread.

    Yields nothing if the threads only wait for work, or if a signal handler is likely to wake them.
    A semaphore may be for a handler alone, of a signal that the kernel sends by itself.
    """
    handled: dict[int, str] | None = {}
    if wait_for_work([looked.picture.threads for looked in closed]):
        return
    for looked in closed:
        signals = handlers(looked.process, looked.names)
        kinds = {_ended_by(seen) for seen in looked.picture.threads}
        if kinds & _BY_HANDLERS and (signals is None or BY_ITSELF.intersection(signals)):
            return
        handled = None if signals is None or handled is None else handled | signals
    everybody = [seen for looked in closed for seen in looked.picture.threads]
    threads = tuple(seen for seen in everybody if not is_of_manager(seen))
    unless = [_handlers(handled)] if handled != {} else []
    if not unless and any(wait_for_signal(looked.picture.threads) for looked in closed):
        if not any(seen.crossed for seen in threads) and _is_server(closed):
            return
        unless = ["a signal to the first thread"]
    if len(threads) < len(everybody):
        if not has_lock_of_manager(threads):
            return
        unless.append("a new client of the manager")
    # A handler may tell an event loop to end the program.
    if unless and any(rests_in_loop(looked.picture.threads) for looked in closed):
        return
    unless += sorted({seen.peers.unless for seen in threads if seen.peers is not None} - {""})
    exception = f", unless {' or '.join(unless)} wakes one" if unless else ""
    yield Verdict(
        "deadlock" if _is_cycle(closed, threads) else "stuck",
        f"{_stuck_sentence(closed, threads)}{exception}",
        threads,
        "warning" if unless else "error",
        _stuck_waits(closed, threads),
        _forked(closed),
    )


def _is_server(closed: Sequence[Looked]) -> bool:
    """Return whether the first process reads from sockets of other processes.

    The other processes may wait for signals.
    """
    threads = closed[0].picture.threads
    reads = any(
        seen.peers is not None and seen.peers.ends[1] and seen.peers.by in _FROM for seen in threads
    )
    return reads and not wait_for_signal(threads)


def _ended_by(seen: ThreadPicture) -> str:
    """Return the kind of a wait for `_BY_HANDLERS`."""
    if seen.wait is None:
        return ""
    # A handler in Python can release any lock of Python.
    if seen.wait.kind == "lock" and any(isinstance(frame, PythonFrame) for frame in seen.frames):
        return "semaphore"
    return "file" if seen.peers is not None and seen.peers.by else seen.wait.kind


def _is_cycle(closed: Sequence[Looked], threads: Sequence[ThreadPicture]) -> bool:
    """Return whether processes wait for each other, or threads through files and file locks."""
    peers = [seen.peers for seen in threads if seen.peers is not None]
    only_read = len(closed) == 1 and all(other.by in _FROM for other in peers)
    return len(peers) > 1 and not only_read


def _handlers(handled: dict[int, str] | None) -> str:
    """Return the handlers of signals as the subject of a sentence."""
    if handled is None:
        return "a signal handler"
    signals = [
        f"{signal_name(number)} ({name})" if name else signal_name(number)
        for number, name in sorted(handled.items())
    ]
    more = f" or {len(signals) - _FEW} more signals" if len(signals) > _FEW else ""
    return f"the handler of {' or '.join(signals[:_FEW])}{more}"


def _stuck_sentence(closed: Sequence[Looked], threads: Sequence[ThreadPicture]) -> str:
    if len(threads) == 1:
        return "the only thread waits without a time limit, and nobody is left to wake it"
    of = f" of {len(closed)} processes" if len(closed) > 1 else ""
    return f"all threads{of} wait without a time limit, and nobody is left to wake them"


def _stuck_waits(closed: Sequence[Looked], threads: Sequence[ThreadPicture]) -> tuple[str, ...]:
    by_tid = {seen.thread.inner_tid: seen for seen in threads}
    parts = [
        f"{_thread(seen, closed[0].process.pid)} {waits_sentence(seen, by_tid)}{_at(seen)}"
        for seen in threads[:_FEW]
    ]
    if any(seen.leaves_jobs for seen in threads):
        parts.append("jobs of a thread pool wait for one of these threads")
    if len(threads) > _FEW:
        parts.append(f"and {len(threads) - _FEW} more threads likewise")
    return tuple(parts)


def _thread(seen: ThreadPicture, pid: int) -> str:
    """Return a thread in words, as a report about a process needs it."""
    return str(seen.thread) if seen.pid == pid else f"{seen.thread} of process {seen.pid}"


def _forked(closed: Sequence[Looked]) -> str:
    """Return a sentence about a fork from a process with threads, or the empty string."""
    for looked in closed:
        parent, threads = looked.process.forked_from()
        if threads > 1:
            return (
                f"Process {looked.process.pid} was forked from process {parent}, which has "
                f"{threads} threads: only the thread that forked is in the new process, so the "
                "locks and thread pools of the others stay as they were"
            )
    return ""


def _at(seen: ThreadPicture) -> str:
    within = f", in {seen.handler}" if seen.handler else ""
    return f" in {seen.site}{within}" if seen.site else ""


def _is_still_so(
    processes: dict[int, Target],
    threads: Sequence[ThreadPicture],
    wait_so: Callable[[Sequence[ThreadPicture]], bool],
) -> bool:
    """Return whether none of the threads has gone on since it was read.

    Args:
        processes: The processes of the threads, by process id.
        threads: The threads. Some run now and then, but only to ask for the same lock again.
        wait_so: Looks again, and returns whether threads still have the same waits.
    """
    asking = [seen for seen in threads if seen.wait is not None and seen.wait.repeated]
    rest = [seen for seen in threads if seen not in asking]
    # If the holder of the GIL asks for the GIL, it was handed over while the threads were read.
    holders = {
        seen.wait.owner for seen in asking if seen.wait is not None and seen.wait.kind == GIL
    }
    if not holders <= {seen.thread.inner_tid for seen in rest}:
        return False
    if asking and not wait_so(threads):
        return False
    return not any(
        process.has_run([seen.thread for seen in rest if seen.pid == pid])
        for pid, process in processes.items()
    )


def _wait_so(process: Target, names: Names, threads: Sequence[ThreadPicture]) -> bool:
    """Return whether threads wait for the same objects and owners in two more looks in sequence.

    The first look shows that all threads still wait after all of them were read. The second look
    shows that the owners are the same after that.
    """
    expected = _waits(threads)
    agreed = 0
    for _ in range(_LOOKS):
        waits = _waits(look(process, names).threads)
        agreed = agreed + 1 if expected.items() <= waits.items() else 0
        if agreed == _AGREE:
            return True
        if not agreed:
            time.sleep(_PAUSE_S)
    return False


def _waits(threads: Sequence[ThreadPicture]) -> dict[int, tuple[str, int, int]]:
    """Return the kind, object and owner of the waits of threads, by thread id."""
    return {
        seen.thread.tid: (wait.kind, wait.object, wait.owner) if wait is not None else ("", 0, 0)
        for seen in threads
        for wait in (seen.wait,)
    }
