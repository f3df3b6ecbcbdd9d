"""A running process: threads, memory and modules, read with the rights of the process's user.

Nothing here stops a thread.
"""

from __future__ import annotations

import errno
import os
import re
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._binding import libptttasks
from nptltrace._binding.libc import read_memory
from nptltrace._dataclasses import replace
from nptltrace.errors import NativeError, PttError
from nptltrace.hang.targets.files import Files
from nptltrace.hang.targets.mapped_modules import Mapping as MappedFile
from nptltrace.hang.targets.mapped_modules import modules_of
from nptltrace.hang.targets.shared_memory import sharers
from nptltrace.hang.targets.target import Call, Target, Thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nptltrace.hang.targets.registers import Registers
    from nptltrace.trace.code.modules import Module

__all__ = ["Process"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ +(/.*)")
_PAGE = 4096
# Who may look into processes; the largest value cannot be changed until the next boot.
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_NOBODY_MAY = 3
_SHORT = 1 << 14
# The states of threads that a signal or a debugger has stopped.
_STOPPED = {"T", "t"}
# The field of flags after the name in `stat`, and PF_FORKNOEXEC.
_FLAGS, _FORKED = 6, 0x40
# Signals that wake no thread: the thread library uses some for cancellation and changes of user
# ids, and a sleeping thread makes no fault.
_NOT_WAKING = frozenset({4, 5, 7, 8, 11, 31, 32, 33})


class Process(Target):
    """A running process.

    Args:
        pid: The process id in our PID namespace.

    Attributes:
        entry: A thread that has not ended. The kernel shows the memory of the process through it.
        stopped: The registers of the threads that we stopped, by thread id.

    Raises:
        PttError: There is no such process, or we may not look into it.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.machine = os.uname().machine
        self.remarks = []
        self._place = Path("/proc") / str(pid)
        # A main thread that has ended has neither memory nor modules.
        self.entry = pid
        self._ahead: dict[int, bytes] = {}
        self.stopped: Mapping[int, Registers] = {}
        status = self._text("status")
        if not status:
            raise PttError(f"there is no process {pid}")
        # The main thread may have a different name.
        program = _link(self._place / "exe").removesuffix(" (deleted)")
        self.name = program.rpartition("/")[2] or _value(status, "Name")
        self._is_inside = len(_value(status, "NSpid").split()) > 1
        if _value(status, "State")[:1] == "Z":
            self.threads()
        mask = int(_value(status, "SigCgt") or "0", 16)
        numbers = (number for number in range(1, 65) if mask >> number - 1 & 1)
        self.caught = frozenset(numbers) - _NOT_WAKING
        try:
            (self._place / f"task/{self.entry}/syscall").read_bytes()
        except PermissionError:
            raise PttError(f"cannot look into process {pid}: {self._why()}") from None
        except OSError as error:
            raise NativeError(f"cannot look into process {pid}", error.errno or errno.EIO) from None

    @property
    def title(self) -> str:
        """The name of the target in reports."""
        return f"process {self.pid} ({self.name})"

    def threads(self) -> list[Thread]:
        """Return the current threads in the order of their ids, each read at a different moment."""
        threads = self.threads_ahead(lambda: None)
        self.forget()
        return threads

    def threads_ahead(self, meanwhile: Callable[[], None]) -> list[Thread]:
        """Return the threads, and keep the memory that is usually read next until `forget`."""
        ids = self._tids()
        threads = self._threads(ids, meanwhile) if ids else []
        self.entry = next((thread.tid for thread in threads if not thread.has_ended), self.pid)
        return threads

    def _tids(self) -> list[int]:
        try:
            return sorted(map(int, os.listdir(self._place / "task")))  # noqa: PTH208 -- names only
        except OSError:
            return []

    def forget(self) -> None:
        """Drop the memory that `threads_ahead` has read: `read` returns current memory again."""
        self._ahead = {}

    def thread(self, tid: int) -> Thread | None:
        """Return the current state of a thread, None if the thread is gone."""
        threads = self._threads([tid], lambda: None)
        self.forget()
        return next(iter(threads), None)

    def _threads(self, tids: Sequence[int], meanwhile: Callable[[], None]) -> list[Thread]:
        """Return the threads that are still alive, and keep their memory in `_ahead`."""
        threads = []
        tasks, memory = libptttasks.read(
            self.pid, tids, is_inside=self._is_inside, meanwhile=meanwhile
        )
        ahead: dict[int, bytes] = {}
        status = self._text(f"task/{self.entry}/status")
        may_be_stopped = (
            _value(status, "State")[:1] in _STOPPED or _value(status, "TracerPid") != "0"
        )
        # This loop may run thousands of times.
        for begin, task in zip(count(step=libptttasks.MEMORY), tasks, strict=False):
            tid, inner_tid, turns, number = task[:4]
            sp, pc, name, state, has_stack, has_futex = task[10:]
            if number == libptttasks.GONE:
                continue
            call = Call(number, task[4:10]) if number >= 0 else None
            text = name.rstrip(b"\0").decode("utf-8", "replace")
            thread = Thread(tid, inner_tid, text, state.decode("ascii"), call, sp, pc, turns)
            if (registers := self.stopped.get(tid)) is not None:
                thread = registers.apply(thread)
            elif may_be_stopped:
                thread = self._maybe_stopped(thread)
            threads.append(thread)
            middle, end = begin + libptttasks.STACK, begin + libptttasks.MEMORY
            if has_stack:
                ahead[sp & ~7] = memory[begin:middle]
            if has_futex:
                ahead[task[4] - libptttasks.BEFORE_FUTEX] = memory[middle:end]
        self._ahead = ahead
        return threads

    def _maybe_stopped(self, thread: Thread) -> Thread:
        """Return a thread with its state and tracer if a signal or a debugger has stopped it."""
        status = self._text(f"task/{thread.tid}/status")
        state = _value(status, "State")[:1]
        tracer = int(_value(status, "TracerPid") or "0")
        return thread._replace(state=state, tracer=tracer) if state in _STOPPED else thread

    def has_run(self, threads: Sequence[Thread]) -> bool:
        """Return whether any of the threads has run or has ended since it was read."""
        turns = {thread.tid: thread.turns for thread in threads if thread.tid not in self.stopped}
        return bool(turns) and libptttasks.turns(self.pid, [*turns]) != [*turns.values()]

    def has_others(self, threads: Sequence[Thread]) -> bool:
        """Return whether the process now has threads that are not among the given threads."""
        return bool(set(self._tids()) - {thread.tid for thread in threads})

    def takes_signals(self, tid: int) -> bool:
        """Return whether a thread sleeps in an interruptible call and is not stopped."""
        return _value(self._text(f"task/{tid}/status"), "State")[:1] == "S"

    def blocked_signals(self, tid: int) -> int:
        """Return the blocked signals of a thread as a bit mask; 0 if they are not known."""
        return int(_value(self._text(f"task/{tid}/status"), "SigBlk") or "0", 16)

    def running(self) -> list[int]:
        """Return the ids of the threads that run or are ready, except threads that we stopped."""
        return [t.tid for t in self.threads() if t.state == "R" and t.tid not in self.stopped]

    def tracer(self) -> int:
        """Return the process that traces this process, or 0."""
        return int(_value(self._text("status"), "TracerPid") or "0")

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of memory: the bytes before the first unreadable byte."""
        if not 0 < address < 1 << 63 or size <= 0:
            return b""
        ahead = self._ahead.get(address, b"")
        if size <= len(ahead):
            return ahead[:size]
        whole = read_memory(self.entry, [(address, size)])
        if len(whole) == size:
            return whole
        # process_vm_readv() fails as a whole at an unreadable page, unless each page is a vector.
        pages = range((address // _PAGE + 1) * _PAGE, address + size, _PAGE)
        ends = pairwise([address, *pages, address + size])
        return read_memory(self.entry, [(begin, end - begin) for begin, end in ends])

    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not among the threads of the process may be alive."""
        if private:
            return any(thread.inner_tid == inner_tid for thread in self.threads())
        proc = self._place / f"task/{self.entry}/root/proc"
        inner_pid = _value(self._text("status"), "NSpid").split()[-1:]
        # Without a /proc of the process's PID namespace, nothing is known.
        return not inner_pid or not _exists(proc / inner_pid[0]) or _exists(proc / str(inner_tid))

    def process_of(self, tid: int) -> Process | None:
        """Return the other process of a thread; None if there is none or it cannot be read."""
        leader = _value(_read(f"/proc/{tid}/status"), "Tgid")
        # Ids of another PID namespace have another meaning here.
        if self._is_inside or not leader or int(leader) == self.pid:
            return None
        try:
            return Process(int(leader))
        except PttError:
            return None

    def forked_from(self) -> tuple[int, int]:
        """Return the parent process and its number of threads if the process was only forked."""
        parent = int(_value(self._text("status"), "PPid") or "0")
        fields = self._text("stat").rpartition(")")[2].split()
        if not parent or len(fields) <= _FLAGS or not int(fields[_FLAGS]) & _FORKED:
            return 0, 0
        return parent, int(_value(_read(f"/proc/{parent}/status"), "Threads") or "0")

    def sharers(self, address: int) -> frozenset[int] | None:
        """Return the other processes that have mapped this memory; None if not all are known."""
        return sharers(self.pid, self.entry, address)

    def parent_with(self, inner_tid: int) -> int:
        """Return the parent process if it has a certain thread; 0 if not, or if it is not known."""
        parent = _value(self._text("status"), "PPid")
        if self._is_inside or not _exists(Path(f"/proc/{parent}/task/{inner_tid}")):
            return 0
        return int(parent)

    @cached_property
    def has_own_time(self) -> bool:
        """Whether the process is in our time namespace and so has the same clocks."""
        try:
            return (self._place / "ns/time").samefile("/proc/self/ns/time")
        except OSError:
            return True  # a kernel without time namespaces

    @property
    def files(self) -> Files | None:
        """The current open files of the process."""
        return Files(self.pid, self.entry)

    @cached_property
    def modules(self) -> list[Module]:
        """The mapped files with code, by paths in our root directory."""
        task = self._place / "task" / str(self.entry)
        root = task / "root"
        try:
            same = root.samefile("/") and (task / "ns/mnt").samefile("/proc/self/ns/mnt")
        except OSError:
            same = True
        try:
            text = (task / "maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        matches = (_MAPPING.fullmatch(line) for line in text.splitlines() if "/" in line)
        mappings = (
            MappedFile(int(m[1], 16), int(m[2], 16), int(m[3], 16), m[4]) for m in matches if m
        )
        exe = _link(task / "exe")

        def image(m: MappedFile) -> str:
            # The user of the process may open `exe`, but only root may open files in `map_files`.
            return str(
                task / "exe" if m.path == exe else self._place / f"map_files/{m.start:x}-{m.end:x}"
            )

        modules = modules_of(mappings, self.read, "" if same else str(root), image)
        return modules if same else [_with_our_path(module, str(root)) for module in modules]

    def _text(self, name: str) -> str:
        return _read(f"{self._place}/{name}")

    def _why(self) -> str:
        """Return why this user may not look into the process, and a remedy."""
        users = _value(self._text("status"), "Uid").split()
        if not users:
            return "it has ended"
        try:
            scope = int(_YAMA.read_text(encoding="ascii"))
        except (OSError, ValueError):
            scope = 0
        if scope == _NOBODY_MAY:
            return f"kernel.yama.ptrace_scope is {scope}: nobody may, until the system starts anew"
        if os.geteuid() == 0:
            return (
                "the kernel refuses it to root as well: here root has fewer rights than the "
                "process, as in a container, or a security module forbids it"
            )
        # /proc/PID belongs to root if the process is not dumpable, so ask `status`.
        owner = int(users[0])
        if owner != os.geteuid():
            return f"it belongs to user {owner}; run ptt as that user or as root"
        if scope:
            return (
                f"kernel.yama.ptrace_scope is {scope}; run ptt as root, "
                "or allow it by `sysctl kernel.yama.ptrace_scope=0`"
            )
        return "it does not let itself be looked into (prctl PR_SET_DUMPABLE); run ptt as root"


def _read(path: str) -> str:
    """Return the text of a short file of the kernel, empty if it is gone. Fast: many are read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _SHORT).decode("utf-8", "replace")
        finally:
            os.close(file)
    except OSError:
        return ""


def _exists(path: Path) -> bool:
    """Return whether a path exists. Below a process that ends, the question itself may fail."""
    try:
        return path.exists()
    except OSError:
        return False


def _link(path: Path) -> str:
    """Return the target of a link of the kernel, empty if it cannot be read."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _with_our_path(module: Module, root: str) -> Module:
    """Return a module of a process with another root directory, with the path that we can open.

    The kernel shows the path from our root directory if it can. Otherwise it shows the path from
    the root of the file system. It never shows the path that the process uses.
    """
    path = module.path.removeprefix(root)
    # The build-id decides whether a file is used, so another file of the same name does no harm.
    is_here = module.build_id and not _exists(Path(module.path)) and _exists(Path(path))
    return replace(module, path=path) if is_here else module


def _value(status: str, name: str) -> str:
    """Return the value of a name in `/proc/PID/status`, empty if it is missing."""
    begin = status.find(f"\n{name}:") + 1 if not status.startswith(f"{name}:") else 0
    if not status.startswith(f"{name}:", begin):
        return ""
    begin += len(name) + 1
    return status[begin : status.find("\n", begin)].strip()
