"""Whether all threads of a Python program only wait for work or for a signal."""

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
# Functions that wait for work. Only the function of a condition may be further inside.
_LOOP: Call = ("_run_once", "/asyncio/base_events.py")
_WORK: tuple[Call, ...] = (_GET, ("_feed", "/multiprocessing/queues.py"), _LOOP)
# The worker of a pool waits for work in a function in C. A job has more functions inside.
_WORKER: Call = ("_worker", "/concurrent/futures/thread.py")
# The module of SimpleQueue. Its threads wait for work only.
_SIMPLE_QUEUE = "_queue."
# Functions that read from a queue of processes: the innermost and the outermost.
_CONNECTION = "/multiprocessing/connection.py"
_READ: Call = ("_recv", _CONNECTION)
_GET_OF_PROCESSES: Call = ("get", "/multiprocessing/queues.py")
_MESSAGES: tuple[Call, ...] = (("recv", _CONNECTION), ("recv_bytes", _CONNECTION))
# The function that waits for the end of a process.
_JOIN_PROCESS: Call = ("join", "/multiprocessing/process.py")
# The outermost function of a process that multiprocessing has started.
_STARTED: Call = ("_bootstrap", "/multiprocessing/process.py")
# In the server of a manager: threads that wait for clients or for the end, and threads of clients.
_MANAGERS = "/multiprocessing/managers.py"
_WAITS_FOR_CLIENTS: tuple[Call, ...] = (("accepter", _MANAGERS), ("serve_forever", _MANAGERS))
_SERVES: Call = ("serve_client", _MANAGERS)
# The kinds of a wait for a lock of Python: a semaphore, if the object of the lock is not known.
_LOCKS = frozenset({"lock", "semaphore"})
# The process of multiprocessing that waits for the end of all other processes, to clean up.
_TRACKS: Call = ("main", "/multiprocessing/resource_tracker.py")
# The functions that wait for the end of a thread, and of all threads when the program ends.
_JOINS: tuple[Call, ...] = (("join", "/threading.py"), ("_shutdown", "/threading.py"))
# The functions of a condition. An event waits in a function with the same name.
_WAIT: Call = ("wait", "/threading.py")
_WAIT_FOR: Call = ("wait_for", "/threading.py")
_FUTURES = "/concurrent/futures/_base.py"
# Functions that wait on a condition for an action or a result of another thread.
_RESULTS: tuple[Call, ...] = (
    ("result", _FUTURES), ("exception", _FUTURES), ("wait", _FUTURES), ("as_completed", _FUTURES),
    ("put", "/queue.py"), ("join", "/queue.py"), ("wait", "/multiprocessing/pool.py"),
    ("_wait", "/threading.py"), ("_enter", "/threading.py"),
)  # fmt: skip
# The largest number of functions of the library, or of multiprocessing, inside the program's.
_INNERMOST, _READING = 2, 4


def wait_for_work(processes: Sequence[Sequence[ThreadPicture]]) -> bool:
    """Return whether threads of Python wait for work in queues, or for the end of each other.

    A process that reads from a queue of processes waits for work if multiprocessing has started it.
    Otherwise it waits for results.

    Args:
        processes: All threads of each process. The main process of the report comes first.
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

    The result is False for two processes that read from both ends of a connection, and for
    processes that only get messages from each other.

    Args:
        processes: All threads of each process.
    """
    awaited = {seen.peers.ends[0] for threads in processes for seen in threads if seen.peers} - {0}
    senders: dict[int, frozenset[int]] = {}
    reached: set[int] = set()
    for threads in processes:
        pids, stacks = _senders(threads, awaited), _stacks(threads).values()
        if pids is not None:
            senders[threads[0].pid] = pids
        elif all(_is_idle(stack) or _has(stack[:_READING], _JOIN_PROCESS) for stack in stacks):
            reached.add(threads[0].pid)
        else:
            return False
    while new := {pid for pid, pids in senders.items() if pids & reached} - reached:
        reached |= new
    return bool(senders) and reached >= senders.keys()


def _senders(threads: Sequence[ThreadPicture], awaited: set[int]) -> frozenset[int] | None:
    """Return the senders of the messages that a process of multiprocessing waits for.

    Args:
        threads: All threads of the process.
        awaited: The sockets that threads wait for.

    Returns:
        None if the process waits for something else, or if a sender waits for its messages.
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
    """Return whether the main thread of Python may wait for a signal, and all others for work.

    Then the main thread waits for an event, and the others wait on conditions of the program. If
    threads wait for queues of each other, the reason may be that no work is left.

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
    """Return whether an event loop waits, except for jobs that a thread pool cannot begin.

    Args:
        threads: All threads of a process.
    """
    loops = any(_has(stack[:_INNERMOST], _LOOP) for stack in _stacks(threads).values())
    return loops and not any(seen.leaves_jobs for seen in threads)


def is_of_manager(seen: ThreadPicture) -> bool:
    """Return whether a thread of a manager's server waits for clients, or for the server's end."""
    return any(_has(_calls(seen.frames), call) for call in _WAITS_FOR_CLIENTS)


def has_lock_of_manager(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether a manager's server waits for a lock for a client.

    Args:
        threads: Threads of any processes.
    """
    serving = [(seen, stack) for seen in threads if _has(stack := _calls(seen.frames), _SERVES)]
    # A client that waits for work may hold the lock.
    if any(_waits_for_work(stack) for _, stack in serving):
        return False
    # A lock waits in C. Queues and conditions have more functions of Python inside.
    return any(
        seen.wait is not None and seen.wait.kind in _LOCKS and _is(stack[0], _SERVES)
        for seen, stack in serving
    )


def _stacks(threads: Sequence[ThreadPicture]) -> dict[int, list[Call]]:
    """Return the functions of the threads of Python, by thread id."""
    return {seen.thread.tid: stack for seen in threads if (stack := _calls(seen.frames))}


def _serves_loop(stacks: Sequence[Sequence[Call]]) -> bool:
    """Return whether a thread is in an event loop, and the other threads wait for work from it."""
    return any(_has(stack[:_INNERMOST], _LOOP) for stack in stacks) and all(
        _is_idle(stack) or _waits_on_condition(stack) for stack in stacks
    )


def _is_idle(stack: Sequence[Call]) -> bool:
    joins = any(_has(stack[:_INNERMOST], call) for call in _JOINS)
    return joins or _waits_for_work(stack) or _waits_for_event(stack)


def _calls(frames: Sequence[ShownFrame]) -> list[Call]:
    """Return the functions of Python in a thread, the innermost first.

    SimpleQueue is in C, so its `get` is added.
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
