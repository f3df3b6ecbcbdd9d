"""The objects of waits in system calls (pipes, file locks, children), and who can end the waits."""

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

# Calls with a descriptor as the first argument.
_READS = frozenset({"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg", "recvmmsg"})
_WRITES = frozenset({"write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg", "sendfile"})
# A call with a time limit as an argument.
_HAS_LIMIT = "recvmmsg"
# The wait of asyncio's event loop: the system calls, and the method with its file.
_EPOLLS, _LOOP = frozenset({"epoll_wait", "epoll_pwait"}), ("_run_once", "/asyncio/base_events.py")
_LOCKED_BY = "locked by"
_LOCKS = {"flock": ("FLOCK",), "fcntl": ("POSIX", "OFDLCK")}
_OTHERS = frozenset({"accept", "accept4", "connect", "fsync", "fdatasync"})
# Commands of fcntl() that wait for a lock: F_SETLKW and F_OFD_SETLKW.
_FCNTL_LOCKS = frozenset({7, 38})
# Calls that wait for the end of a child, and calls that wait until a child executes a program.
_CHILDREN = frozenset({"wait4", "waitid"})
_STARTS = frozenset({"vfork", "clone", "clone3"})
# Arguments of waitid(): P_ALL and P_PID.
_ALL, _ONE = 0, 1
_OPENS = {"open": 0, "openat": 1}
# AT_FDCWD, the largest size of a path, O_ACCMODE and O_RDONLY.
_CURRENT, _PATH, _ACCESS, _TO_READ = -100, 4096, 3, 0
# Files without a name: only processes that inherited or received a descriptor have them.
_CLOSED = frozenset({"pipe", "eventfd"})


def with_peers(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the objects of their system calls, and the processes behind these.

    Args:
        process: The process.
        threads: All threads of the process.
    """
    files = process.files
    if files is None or not any(s.wait is not None and s.wait.kind == "call" for s in threads):
        return list(threads)
    opened = {
        seen.thread.tid: file
        for seen in threads
        if (number := _descriptor(seen)) >= 0 and (file := files.opened(number)) is not None
    }
    loops = {
        seen.thread.tid: watched
        for seen in threads
        if (number := _loop_descriptor(seen)) >= 0
        and (watched := files.watched(number)) is not None
    }
    wanted = {
        key
        for file in (*opened.values(), *chain.from_iterable(loops.values()))
        for key in _sides(file)
        if key[1]
    }
    held = holders_of(wanted) if wanted else Held({}, is_all=True, is_sent=False)
    alive = {seen.thread.tid: str(seen.thread) for seen in threads if not seen.thread.has_ended}
    pictures = []
    for seen in threads:
        tid = seen.thread.tid
        file, loop = opened.get(tid), loops.get(tid)
        picture = seen if file is None else seen._replace(object_name=_name(file))
        peers: Peers | None
        if file is not None:
            peers = _of_file(seen, file, held, files)
        elif loop is not None:
            peers = _of_loop(process.pid, seen, loop, held)
        else:
            peers = _of_call(process, seen, files)
        if peers is not None:
            # The holder of a file lock may be the waiting thread itself.
            others = [
                name for other, name in alive.items() if other != tid and peers.by != _LOCKED_BY
            ]
            names = tuple(_named(pid, process.pid, others) for pid in sorted(peers.pids))
            unless = peers.unless if held.is_all else "a process that may not be looked into"
            picture = picture._replace(peers=peers._replace(names=names, unless=unless))
        pictures.append(picture)
    return pictures


def _descriptor(seen: ThreadPicture) -> int:
    """Return the descriptor that a thread waits for, -1 if it waits for none or for several."""
    wait, call = seen.wait, seen.thread.call
    if wait is None or call is None or wait.kind != "call":
        return -1
    if wait.call == "fcntl" and call.arguments[1] not in _FCNTL_LOCKS:
        return -1
    known = wait.call in _READS | _WRITES | _OTHERS or wait.call in _LOCKS
    return call.arguments[0] & 0x7FFF_FFFF if known else -1


def _loop_descriptor(seen: ThreadPicture) -> int:
    """Return the epoll of an event loop of asyncio that sleeps without a time limit, or -1.

    Other event loops may have files that the epoll does not watch, or wait for signals.
    """
    call = seen.thread.call
    if call is None or seen.wait is None or seen.wait.call not in _EPOLLS:
        return -1
    python = (frame for frame in seen.frames if isinstance(frame, PythonFrame))
    is_loop = any(_LOOP[0] in frame.function and frame.path.endswith(_LOOP[1]) for frame in python)
    return call.arguments[0] if is_loop and _signed(call.arguments[3]) == -1 else -1


def _other_side(file: OpenFile) -> tuple[str, int]:
    """Return kind and key of the file that can end a wait; key 0 if it is not known."""
    if file.kind == "socket":
        return file.kind, file.peer
    return file.kind, file.key if file.kind in _CLOSED else 0


def _sides(file: OpenFile) -> list[tuple[str, int]]:
    """Return kinds and keys of all files that can end a wait for a file."""
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
    """Return the processes that can end the wait of an event loop for its own threads.

    None if it also waits for other processes, as an idle server does.
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
    """Return the processes that can end a wait for a file."""
    holders = held.by.get(_other_side(file))
    name = seen.wait.call if seen.wait is not None else ""
    if name in _LOCKS:
        pids = files.lockers(file, _LOCKS[name])
        return Peers(f"{name} of {_name(file)}", _LOCKED_BY, pids, is_all=bool(pids))
    reads = name in _READS
    text = f"{name} {'of' if reads or name in _OTHERS else 'to'} {_name(file)}"
    if holders is None:
        return Peers(text)
    if file.kind == "socket":
        same = held.by[file.kind, file.key].readers
        # In these calls, a thread waits until the peer of the socket does something.
        waits = name in _READS | _WRITES and name != _HAS_LIMIT and not held.is_sent
        is_all = waits and bool(holders.readers) and files.has_limit(file, reads=reads) is False
        by = "connected to" if reads or name in _OTHERS else "read by"
        return Peers(text, by, holders.readers, is_all, same=same, ends=(file.key, file.peer))
    pids = holders.writers if reads else holders.readers
    if file.kind == "pipe":
        text += ", which is empty" if reads else ", which is full"
    # The kernel writes to an eventfd for devices, and when memory is short.
    kernel = "the kernel" if file.kind == "eventfd" else ""
    by = "written by" if reads else "read by"
    return Peers(text, by, pids, is_all=bool(pids), unless=kernel)


def _of_call(process: Target, seen: ThreadPicture, files: Files) -> Peers | None:
    """Return the processes that can end a wait for a child, or for the other side of a FIFO."""
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
        data = process.read(call.arguments[at], _PATH)
        path = data.partition(b"\0")[0].decode("utf-8", "replace")
        fifo = files.fifo(_signed(call.arguments[0]) if at else _CURRENT, path)
        side = "writes" if call.arguments[at + 1] & _ACCESS == _TO_READ else "reads"
        if fifo:
            return Peers(f"{name} of FIFO {fifo}, until a process opens it that {side}")
    return None


def _children(pid: int, name: str, call: Call, *, is_inside: bool) -> frozenset[int]:
    """Return the children that a thread waits for; empty if they are not known.

    Args:
        pid: The process.
        name: The name of the call.
        call: The call.
        is_inside: The process is in another PID namespace, so ids in arguments mean nothing here.
    """
    children = frozenset(children_of(pid))
    awaited = _signed(call.arguments[0])
    if name == "waitid":
        kind = call.arguments[0] & 0xFFFF_FFFF
        awaited = {_ALL: -1, _ONE: _signed(call.arguments[1])}.get(kind, 0)
    if awaited == -1:
        return children
    return children & {awaited} if awaited > 0 and not is_inside else frozenset()


def _started(pid: int) -> frozenset[int]:
    """Return the children that have not executed a program yet."""
    return frozenset(child for child in children_of(pid) if _program(child) == _program(pid))


def _program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _named(pid: int, own: int, others: Collection[str]) -> str:
    """Return a process in words; for the own process, the only other thread if there is one."""
    if pid == own:
        return next(iter(others)) if len(others) == 1 else "this process"
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    return f"process {pid} ({name})" if name else f"process {pid}"


def _signed(value: int) -> int:
    """Return a 32-bit argument as a signed number."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
