"""Other processes that a process waits for, and sets of processes that wait only for each other.

The server of a `multiprocessing` manager always has threads that wait for new clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.idle import is_of_manager
from nptltrace.hang.owners.free_locks import stays_asleep
from nptltrace.hang.picture import look
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.waits import Wait

__all__ = ["Looked", "closed_set", "enders", "with_owners"]

# Kinds of waits that another process or the kernel may end.
_OPEN = frozenset({"call", "go"})
# The largest numbers of processes with owners of locks, and of processes that can end waits.
_OWNERS_MAX, _CLOSED_MAX = 16, 32


class Looked(NamedTuple):
    """A process with the picture of its threads.

    Attributes:
        process: The process.
        picture: The picture of its threads.
        names: The names in the process.
    """

    process: Target
    picture: Picture
    names: Names


def _look_into(process: Target) -> Looked:
    names = Names(Symbols(OneProcess(process)))
    return Looked(process, look(process, names), names)


def with_owners(process: Target, picture: Picture, names: Names) -> list[Looked]:
    """Return a process, the owners of the locks that it waits for, their owners, and so on.

    Processes that we may not look into are left out.

    Args:
        process: The process.
        picture: The picture of its threads.
        names: The names in the process.
    """
    looked = [Looked(process, picture, names)]
    known = {seen.thread.inner_tid for seen in picture.threads}
    for waiting in looked:
        for seen in waiting.picture.threads:
            wait = seen.wait
            if wait is None or wait.private or not wait.owner or wait.owner in known:
                continue
            known.add(wait.owner)
            is_room = len(looked) < _OWNERS_MAX
            other = waiting.process.process_of(wait.owner) if is_room else None
            if other is not None:
                looked.append(_look_into(other))
                known.update(owner.thread.inner_tid for owner in looked[-1].picture.threads)
    return looked


def closed_set(process: Target, picture: Picture, names: Names) -> list[Looked]:
    """Return a process and all processes that could end its waits, if all their threads wait.

    Args:
        process: The process.
        picture: The picture of its threads.
        names: The names in the process.

    Returns:
        An empty list if a thread of these processes may go on.
    """
    looked = [Looked(process, picture, names)]
    known = {process.pid}
    for waiting in looked:
        awaited = enders(waiting.process, waiting.picture)
        if awaited is None:
            return []
        for pid in sorted(awaited - known):
            known.add(pid)
            other = process.process_of(pid) if len(looked) < _CLOSED_MAX else None
            if other is None:
                return []
            looked.append(_look_into(other))
    return looked


def enders(process: Target, picture: Picture) -> set[int] | None:
    """Return the processes that can end the waits of a process, if all its threads wait.

    A thread that was created after the list of threads was read may end the waits, too.

    Returns:
        None if a thread may go on by itself, or by an unknown process.
    """
    alive = [seen for seen in picture.threads if not seen.thread.has_ended]
    tids = {seen.thread.inner_tid for seen in alive}
    if not alive or process.has_others([seen.thread for seen in picture.threads]):
        return None
    all_enders: set[int] = set()
    for seen in alive:
        pids = _enders_of(process, seen, tids)
        if pids is None:
            return None
        all_enders |= pids
    return all_enders


def _enders_of(process: Target, seen: ThreadPicture, tids: set[int]) -> frozenset[int] | None:
    """Return the other processes that can end the wait of a thread, None as for `enders`."""
    wait = seen.wait
    if is_of_manager(seen):
        return frozenset()
    if wait is None or wait.timed:
        return None
    if seen.peers is not None and seen.peers.is_all:
        return seen.peers.pids | seen.peers.same
    if wait.kind in _OPEN or (_is_joined(process, wait, tids) and not stays_asleep(process, seen)):
        return None
    return frozenset() if wait.private else process.sharers(wait.word)


def _is_joined(process: Target, wait: Wait, tids: set[int]) -> bool:
    """Return whether a thread joins a thread that has ended.

    At the end of a thread the kernel wakes one joining thread, and no other. In a forked child, the
    word may name a thread that only the parent has.
    """
    if wait.kind != "join" or wait.owner in tids:
        return False
    return process.read(wait.object, 4) != wait.owner.to_bytes(4, "little")
