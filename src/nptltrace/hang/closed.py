"""Processes all of whose threads wait for one another, so that no other process can end a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.free import stays_asleep
from nptltrace.hang.picture import look
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.waits import Wait

__all__ = ["Looked", "all_blocked", "closed_set"]

# What another process, or the kernel, may end.
_OPEN = frozenset({"call", "go"})
# So many processes are looked at.
_MOST = 16


class Looked(NamedTuple):
    """A process that was looked at.

    Attributes:
        process: The process.
        picture: What was seen of it.
        names: Names for what lies in it.
    """

    process: Target
    picture: Picture
    names: Names


def closed_set(process: Target, picture: Picture, names: Names) -> list[Looked]:
    """Return a process, and those that could end its waits, if none of them ever will.

    Args:
        process: The process.
        picture: What was seen of it.
        names: Names for what lies in it.

    Returns:
        Nothing if a thread of one of them may go on.
    """
    found = [Looked(process, picture, names)]
    known = {process.pid}
    for one in found:
        if not all_blocked(one.process, one.picture):
            return []
        for pid in sorted(_awaited(one.picture) - known):
            known.add(pid)
            other = process.process_of(pid) if len(found) < _MOST else None
            if other is None:
                return []
            theirs = Names(Symbols(OneProcess(other)))
            found.append(Looked(other, look(other, theirs), theirs))
    return found


def _awaited(picture: Picture) -> set[int]:
    """Return the processes that can end the system calls of a process."""
    return {pid for seen in picture.threads if seen.peers is not None for pid in seen.peers.pids}


def all_blocked(process: Target, picture: Picture) -> bool:
    """Return whether every thread waits, without a limit, for what only known processes can do.

    One that has come since the threads were listed may do it: whoever started it was seen behind
    that.
    """
    left = [seen for seen in picture.threads if not seen.thread.has_ended]
    tids = {seen.thread.inner_tid for seen in left}
    if not left or process.has_others([seen.thread for seen in picture.threads]):
        return False
    return all(
        seen.wait is not None
        and not seen.wait.timed
        and (_is_known(seen) or _is_own(process, seen.wait))
        and not (_is_joined(process, seen.wait, tids) and not stays_asleep(process, seen))
        for seen in left
    )


def _is_joined(process: Target, wait: Wait, tids: set[int]) -> bool:
    """Return whether a thread waits for the end of one that has ended.

    The kernel wakes one thread then, and no other that joins the same thread as well. In the child
    of a fork the word may name a thread that only the parent has.
    """
    if wait.kind != "join" or wait.owner in tids:
        return False
    return process.read(wait.object, 4) != wait.owner.to_bytes(4, "little")


def _is_known(seen: ThreadPicture) -> bool:
    """Return whether a thread is in a system call that only known processes can end."""
    return seen.peers is not None and seen.peers.is_all


def _is_own(process: Target, wait: Wait) -> bool:
    """Return whether only threads of a process can end a wait of one of them."""
    return wait.kind not in _OPEN and (wait.private or process.is_alone_with(wait.word))
