"""What threads wait for in system calls, a pipe, a lock file, a child, and who can end that."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython import PythonFrame
from nptltrace.hang.targets.files import Held, children_of, holders_of
from nptltrace.hang.thread_picture import Peers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nptltrace.hang.targets.files import Files, OpenFile
    from nptltrace.hang.targets.target import Call, Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_peers"]

# Calls whose first argument is a descriptor.
_READS = frozenset({"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg", "recvmmsg"})
_WRITES = frozenset({"write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg", "sendfile"})
# This one has a time limit as an argument.
_HAS_LIMIT = "recvmmsg"
# How the event loop of asyncio waits: calls, the method, and the file that has it.
_EPOLLS, _LOOP = frozenset({"epoll_wait", "epoll_pwait"}), ("_run_once", "/asyncio/base_events.py")
_LOCKED_BY = "locked by"
_LOCKS = {"flock": ("FLOCK",), "fcntl": ("POSIX", "OFDLCK")}
_OTHERS = frozenset({"accept", "accept4", "connect", "fsync", "fdatasync"})
# Commands of fcntl() that wait for a lock.
_FCNTL_LOCKS = frozenset({7, 38})
# Calls that wait for a child: for its end, or until it runs a program of its own.
_CHILDREN = frozenset({"wait4", "waitid"})
_STARTS = frozenset({"vfork", "clone", "clone3"})
# What waitid() is to wait for: all children, or one.
_ALL, _ONE = 0, 1
_OPENS = {"open": 0, "openat": 1}
_CURRENT, _PATH, _ACCESS, _TO_READ = -100, 4096, 3, 0
# What only processes have that were given it, and nobody can come to by a name.
_CLOSED = frozenset({"pipe", "eventfd"})
_FEW = 4


def with_peers(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with what they wait for in system calls, and the processes behind it.

    Args:
        process: Whose they are.
        threads: As they were seen.
    """
    files = process.files
    if files is None or not any(s.wait is not None and s.wait.kind == "call" for s in threads):
        return list(threads)
    opened = {
        seen.thread.tid: file
        for seen in threads
        if (number := _descriptor(seen)) >= 0 and (file := files.opened(number)) is not None
    }
    watched = {
        seen.thread.tid: some
        for seen in threads
        if (number := _loop_descriptor(seen)) >= 0 and (some := files.watched(number)) is not None
    }
    wanted = {
        key
        for file in (*opened.values(), *chain.from_iterable(watched.values()))
        for key in _sides(file)
        if key[1]
    }
    held = holders_of(wanted) if wanted else Held({}, is_all=True, is_sent=False)
    others = {seen.thread.tid: str(seen.thread) for seen in threads if not seen.thread.has_ended}
    with_names = []
    for one in threads:
        tid = one.thread.tid
        file, loop = opened.get(tid), watched.get(tid)
        seen = one if file is None else one._replace(object_name=_name(file))
        peers: Peers | None
        if file is not None:
            peers = _of_file(one, file, held, files)
        elif loop is not None:
            peers = _of_loop(process.pid, one, loop, held)
        else:
            peers = _of_call(process, one, files)
        if peers is not None:
            # A thread may wait for a lock of its own.
            near = [
                name for other, name in others.items() if other != tid and peers.by != _LOCKED_BY
            ]
            names = tuple(_named(pid, process.pid, near) for pid in sorted(peers.pids))
            unless = peers.unless if held.is_all else "a process that may not be looked into"
            seen = seen._replace(peers=peers._replace(names=names, unless=unless))
        with_names.append(seen)
    return with_names


def _descriptor(seen: ThreadPicture) -> int:
    """Return the descriptor that a thread waits for, -1 if it waits for none, or for many."""
    wait, call = seen.wait, seen.thread.call
    if wait is None or call is None or wait.kind != "call":
        return -1
    if wait.call == "fcntl" and call.arguments[1] not in _FCNTL_LOCKS:
        return -1
    known = wait.call in _READS | _WRITES | _OTHERS or wait.call in _LOCKS
    return call.arguments[0] & 0x7FFF_FFFF if known else -1


def _loop_descriptor(seen: ThreadPicture) -> int:
    """Return the epoll in which an event loop of asyncio sleeps without a time limit, or -1.

    Other loops watch files without them, or wait for signals.
    """
    call = seen.thread.call
    if call is None or seen.wait is None or seen.wait.call not in _EPOLLS:
        return -1
    python = (frame for frame in seen.frames if isinstance(frame, PythonFrame))
    is_loop = any(_LOOP[0] in frame.function and frame.path.endswith(_LOOP[1]) for frame in python)
    return call.arguments[0] if is_loop and _signed(call.arguments[3]) == -1 else -1


def _other_side(file: OpenFile) -> tuple[str, int]:
    """Return kind and key of the file by which a wait for a file can end; 0 for an unknown key."""
    if file.kind == "socket":
        return file.kind, file.peer
    return file.kind, file.key if file.kind in _CLOSED else 0


def _sides(file: OpenFile) -> list[tuple[str, int]]:
    """Return all that processes have open that can end a wait for a file."""
    other = _other_side(file)
    return [other, ("socket", file.key)] if file.kind == "socket" and other[1] else [other]


def _name(file: OpenFile) -> str:
    what = f"{file.kind} {file.key}" if file.key else file.kind
    if file.path:
        what = f"FIFO {file.path}" if file.kind == "FIFO" else file.path
    return f"{what} (fd {file.number})"


def _of_loop(
    pid: int, seen: ThreadPicture, watched: Sequence[OpenFile], held: Held
) -> Peers | None:
    """Return who can end the wait of an event loop by its own threads.

    None where it waits for other processes as well: that is what a server does at rest.
    """
    pids: set[int] = set()
    for file in watched:
        sides = [held.by[key] for key in _sides(file) if key in held.by]
        if file.kind != "socket" or not sides or pid not in sides[0].readers:
            return None
        pids.update(*(holders.readers for holders in sides))
    name = seen.wait.call if seen.wait is not None else ""
    return Peers(f"{name} of an event loop", "woken by", frozenset(pids), is_all=True)


def _of_file(seen: ThreadPicture, file: OpenFile, held: Held, files: Files) -> Peers:
    """Return who can end a wait for a file."""
    holders = held.by.get(_other_side(file))
    name = seen.wait.call if seen.wait is not None else ""
    if name in _LOCKS:
        pids = files.lockers(file, _LOCKS[name])
        return Peers(f"{name} of {_name(file)}", _LOCKED_BY, pids, is_all=bool(pids))
    reads = name in _READS
    does = f"{name} of" if reads or name in _OTHERS else f"{name} to"
    said = f"{does} {_name(file)}"
    if holders is None:
        return Peers(said)
    if file.kind == "socket":
        same = held.by[file.kind, file.key].readers
        # A thread waits in one of these calls until the socket at the other end does something.
        waits = name in _READS | _WRITES and name != _HAS_LIMIT and not held.is_sent
        is_all = waits and bool(holders.readers) and files.has_limit(file, reads=reads) is False
        by = "connected to" if reads or name in _OTHERS else "read by"
        return Peers(said, by, holders.readers, is_all, same=same, ends=(file.key, file.peer))
    pids = holders.writers if reads else holders.readers
    if file.kind == "pipe":
        said += ", which is empty" if reads else ", which is full"
    # The kernel writes to an eventfd for devices, and when memory is short.
    kernel = "the kernel" if file.kind == "eventfd" else ""
    by = "written by" if reads else "read by"
    return Peers(said, by, pids, is_all=bool(pids), unless=kernel)


def _of_call(process: Target, seen: ThreadPicture, files: Files) -> Peers | None:
    """Return who can end a wait for a child, or for the other side of a FIFO that is opened."""
    call = seen.thread.call
    name = seen.wait.call if seen.wait is not None and seen.wait.kind == "call" else ""
    if call is None:
        return None
    if name in _CHILDREN:
        pids = _children(
            process.pid, name, call, is_inside=seen.thread.tid != seen.thread.inner_tid
        )
        return Peers(f"{name} for a child", "", pids, is_all=bool(pids))
    if name in _STARTS:
        return Peers(f"{name} until its child runs a program or ends", "", _started(process.pid))
    if name in _OPENS:
        at = _OPENS[name]
        path = (
            process.read(call.arguments[at], _PATH).partition(b"\0")[0].decode("utf-8", "replace")
        )
        directory = _signed(call.arguments[0]) if at else _CURRENT
        fifo = files.fifo(directory, path)
        side = "writes" if call.arguments[at + 1] & _ACCESS == _TO_READ else "reads"
        return (
            Peers(f"{name} of FIFO {fifo}, until a process opens it that {side}") if fifo else None
        )
    return None


def _children(pid: int, name: str, call: Call, *, is_inside: bool) -> frozenset[int]:
    """Return the children that a thread waits for; none where that is not known."""
    children = frozenset(children_of(pid))
    awaited = _signed(call.arguments[0])
    if name == "waitid":
        kind = call.arguments[0] & 0xFFFF_FFFF
        awaited = {_ALL: -1, _ONE: _signed(call.arguments[1])}.get(kind, 0)
    if awaited == -1:
        return children
    return children & {awaited} if awaited > 0 and not is_inside else frozenset()


def _started(pid: int) -> frozenset[int]:
    """Return the children that still have the memory of their parent."""
    return frozenset(child for child in children_of(pid) if _program(child) == _program(pid))


def _program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _named(pid: int, own: int, others: Collection[str]) -> str:
    """Return a process as it is called in a sentence; of the own one, the only other thread."""
    if pid == own:
        return next(iter(others)) if len(others) == 1 else "this process"
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    return f"process {pid} ({name})" if name else f"process {pid}"


def _signed(value: int) -> int:
    """Return an argument of 32 bits as a number with a sign."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
