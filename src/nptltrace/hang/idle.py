"""Whether all threads of a Python program only wait for work, until a signal ends the program."""

from __future__ import annotations

from itertools import chain, takewhile
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython import PythonFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.thread_picture import ShownFrame, ThreadPicture

__all__ = [
    "has_lock_of_manager", "is_of_manager", "rests_in_loop", "wait_for_signal", "wait_for_work",
]  # fmt: skip

# A function of Python, and the end of its file's path.
Call = tuple[str, str]

_GET: Call = ("get", "/queue.py")
# Functions by which threads wait for work; at most the function of a condition stands before them.
_LOOP: Call = ("_run_once", "/asyncio/base_events.py")
_WORK: tuple[Call, ...] = (_GET, ("_feed", "/multiprocessing/queues.py"), _LOOP)
# A pool's worker waits for work by a function in C. Jobs have it behind their own functions.
_WORKER: Call = ("_worker", "/concurrent/futures/thread.py")
# The module of SimpleQueue, in which its threads only wait for work.
_SIMPLE_QUEUE = "_queue."
# Functions by which a process reads from a queue of processes, the innermost first and last.
_READ: Call = ("_recv", "/multiprocessing/connection.py")
_GET_OF_PROCESSES: Call = ("get", "/multiprocessing/queues.py")
_CONNECTION = "/multiprocessing/connection.py"
_MESSAGES: tuple[Call, ...] = (("recv", _CONNECTION), ("recv_bytes", _CONNECTION))
# A function by which a thread waits for the end of a process.
_JOIN_PROCESS: Call = ("join", "/multiprocessing/process.py")
# What a process that multiprocessing has started does from begin to end.
_STARTED: Call = ("_bootstrap", "/multiprocessing/process.py")
# In the server of a manager: what waits for clients, and for its end; what acts for one client.
_MANAGERS = "/multiprocessing/managers.py"
_WAITS_FOR_CLIENTS: tuple[Call, ...] = (("accepter", _MANAGERS), ("serve_forever", _MANAGERS))
_SERVES: Call = ("serve_client", _MANAGERS)
# How a lock of Python looks, the latter where its object was not found.
_LOCKS = frozenset({"lock", "semaphore"})
# What a process of multiprocessing does that waits for the end of all others, to clean up.
_TRACKS: Call = ("main", "/multiprocessing/resource_tracker.py")
# Functions by which a thread waits for the end of another thread.
_JOIN: Call = ("join", "/threading.py")
# The function of a condition by which an event waits; the function of an event has the same name.
_WAIT: Call = ("wait", "/threading.py")
_WAIT_FOR: Call = ("wait_for", "/threading.py")
_FUTURES = "/concurrent/futures/_base.py"
# Functions that wait on a condition for what another thread does, or has.
_RESULTS: tuple[Call, ...] = (
    ("result", _FUTURES), ("exception", _FUTURES), ("wait", _FUTURES), ("as_completed", _FUTURES),
    ("put", "/queue.py"), ("join", "/queue.py"), ("wait", "/multiprocessing/pool.py"),
    ("_wait", "/threading.py"), ("_enter", "/threading.py"),
)  # fmt: skip
# So many functions of the library, or of multiprocessing, stand before the program's function.
_INNERMOST, _READING = 2, 4


def wait_for_work(processes: Sequence[Sequence[ThreadPicture]]) -> bool:
    """Return whether threads of Python wait for work in queues, or for each other's end.

    A process that multiprocessing did not start waits for results in a queue of processes.

    Args:
        processes: All threads of each process that waits for the others. The process that is
            looked at comes first.
    """
    processes_stacks = [[*_stacks(threads).values()] for threads in processes]
    if any(_has(stack, _TRACKS) for stack in processes_stacks[0]):
        return True
    if any(seen.leaves_jobs or seen.crossed for threads in processes for seen in threads):
        return False
    if _wait_for_messages(processes):
        return True
    if any(_reads(stack) and not _is_started(stack) for stack in chain(*processes_stacks)):
        return False
    return any(
        (any(map(_waits_for_work, stacks)) and all(map(_is_idle, stacks))) or _serves_loop(stacks)
        for stacks in processes_stacks
    )


def _wait_for_messages(processes: Sequence[Sequence[ThreadPicture]]) -> bool:
    """Return whether processes wait for messages of a process that waits for their end or an event.

    Two processes that read from both ends of a connection do not. Neither do several processes that
    only get messages from one another.

    Args:
        processes: All threads of each process that waits for the others.
    """
    awaited = {seen.peers.ends[0] for threads in processes for seen in threads if seen.peers} - {0}
    senders: dict[int, frozenset[int]] = {}
    others: set[int] = set()
    for threads in processes:
        pids, stacks = _senders(threads, awaited), _stacks(threads).values()
        if pids is not None:
            senders[threads[0].pid] = pids
        elif all(_is_idle(stack) or _has(stack[:_READING], _JOIN_PROCESS) for stack in stacks):
            others.add(threads[0].pid)
        else:
            return False
    reached = others
    while new := {pid for pid, some in senders.items() if some & reached} - reached:
        reached |= new
    return bool(senders) and reached >= senders.keys()


def _senders(threads: Sequence[ThreadPicture], awaited: set[int]) -> frozenset[int] | None:
    """Return the processes whose messages a process waits for that multiprocessing has started.

    Args:
        threads: All threads of the process.
        awaited: The sockets that threads wait for.

    Returns:
        None if it waits for something else, or if the other end waits for its messages.
    """
    senders: frozenset[int] = frozenset()
    for seen in threads:
        stack = _calls(seen.frames)
        reads = bool(stack) and _is(stack[0], _READ) and _is_started(stack)
        if not reads or not any(_has(stack[:_READING], message) for message in _MESSAGES):
            return None
        if seen.peers is None or seen.peers.ends[1] in awaited:
            return None
        senders |= seen.peers.pids
    return senders or None


def wait_for_signal(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether the first thread of Python may wait for a signal, and all others for work.

    The first thread waits for an event then, and others wait on conditions of the program. Threads
    may have come to wait for queues crosswise because nothing is left to do.

    Args:
        threads: All threads of a process.
    """
    if any(seen.crossed for seen in threads):
        return True
    stacks = _stacks(threads)
    first = stacks.get(threads[0].pid, []) if threads else []
    return (
        _waits_for_event(first)
        and not any(_has(first[2:3], call) for call in _RESULTS)
        and all(_is_idle(stack) or _waits_on_condition(stack) for stack in stacks.values())
    )


def rests_in_loop(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether an event loop waits, and not for jobs that a thread pool cannot begin.

    Args:
        threads: All threads of a process.
    """
    loops = any(_has(stack[:_INNERMOST], _LOOP) for stack in _stacks(threads).values())
    return loops and not any(seen.leaves_jobs for seen in threads)


def is_of_manager(seen: ThreadPicture) -> bool:
    """Return whether a thread of a manager's server waits for clients, or for its end."""
    return any(_has(_calls(seen.frames), call) for call in _WAITS_FOR_CLIENTS)


def has_lock_of_manager(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether a manager's server waits for a lock in place of a client.

    Args:
        threads: Threads of any processes.
    """
    serving = [(seen, stack) for seen in threads if _has(stack := _calls(seen.frames), _SERVES)]
    # A client that waits for work may have the lock meanwhile.
    if any(_waits_for_work(stack) for _, stack in serving):
        return False
    # A lock is of C. Queues and conditions have functions of Python behind the server's function.
    return any(
        seen.wait is not None and seen.wait.kind in _LOCKS and _is(stack[0], _SERVES)
        for seen, stack in serving
    )


def _stacks(threads: Sequence[ThreadPicture]) -> dict[int, list[Call]]:
    """Return the functions of the threads of Python, by the thread."""
    return {seen.thread.tid: stack for seen in threads if (stack := _calls(seen.frames))}


def _serves_loop(stacks: Sequence[Sequence[Call]]) -> bool:
    """Return whether a thread is in an event loop, and others wait for what it may tell them."""
    return any(_has(stack[:_INNERMOST], _LOOP) for stack in stacks) and all(
        _is_idle(stack) or _waits_on_condition(stack) for stack in stacks
    )


def _is_idle(stack: Sequence[Call]) -> bool:
    return _waits_for_work(stack) or _has(stack[:_INNERMOST], _JOIN) or _waits_for_event(stack)


def _calls(frames: Sequence[ShownFrame]) -> list[Call]:
    """Return the functions of Python that a thread is in, the innermost first.

    SimpleQueue is written in C: it has no function of Python.
    """
    calls = [
        (frame.function.rpartition(".")[2], frame.path)
        for frame in frames
        if isinstance(frame, PythonFrame)
    ]
    inner = takewhile(lambda frame: not isinstance(frame, PythonFrame), frames)
    if calls and any(frame.module.startswith(_SIMPLE_QUEUE) for frame in inner):
        calls.insert(0, _GET)
    return calls


def _waits_for_work(stack: Sequence[Call]) -> bool:
    in_library = any(_has(stack[:_INNERMOST], call) for call in _WORK)
    return in_library or _is(stack[0], _WORKER) or (_reads(stack) and _is_started(stack))


def _reads(stack: Sequence[Call]) -> bool:
    return _is(stack[0], _READ) and _has(stack[:_READING], _GET_OF_PROCESSES)


def _is_started(stack: Sequence[Call]) -> bool:
    return _has(stack, _STARTED)


def _has(stack: Sequence[Call], function: Call) -> bool:
    return any(_is(call, function) for call in stack)


def _waits_for_event(stack: Sequence[Call]) -> bool:
    return [_is(call, _WAIT) for call in stack[:2]] == [True, True]


def _waits_on_condition(stack: Sequence[Call]) -> bool:
    """Return whether a thread waits on a condition of the program, and not for a result."""
    caller = next((call for call in stack[1:3] if not _is(call, _WAIT_FOR)), ("", ""))
    return _is(stack[0], _WAIT) and not any(_is(caller, result) for result in _RESULTS)


def _is(call: Call, function: Call) -> bool:
    return call[0] == function[0] and call[1].endswith(function[1])
