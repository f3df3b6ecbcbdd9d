"""A process that runs, as its own user may see it: threads, memory, modules; none is stopped."""

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
# Whom the kernel lets look into processes, and the value that cannot be changed any more.
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_NOBODY_MAY = 3
_SHORT = 1 << 14
# The states of threads that a signal or a debugger has stopped.
_STANDS = {"T", "t"}
# Where the flags of a process stand behind its name, and that it runs no program since its fork.
_FLAGS, _FORKED = 6, 0x40
# Signals that wake nobody: the thread library takes some for itself, for cancellation and changes
# of the user, and a thread that sleeps makes no fault.
_NOT_WAKING = frozenset({4, 5, 7, 8, 11, 31, 32, 33})


class Process(Target):
    """A running process.

    Args:
        pid: As this PID namespace counts it.

    Attributes:
        entry: A thread that has not ended, by which the kernel shows the memory of the process.
        stopped: The registers of threads that are stopped.

    Raises:
        PttError: There is no such process, or it may not be looked into.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.machine = os.uname().machine
        self.remarks = []
        self._place = Path("/proc") / str(pid)
        # A first thread that has ended has neither memory nor modules.
        self.entry = pid
        self._ahead: dict[int, bytes] = {}
        self.stopped: Mapping[int, Registers] = {}
        status = self._text("status")
        if not status:
            raise PttError(f"there is no process {pid}")
        # Its first thread may have a name of its own.
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
        """Return the threads there are now, each at a moment of its own, by id."""
        threads = self.threads_ahead(lambda: None)
        self.forget()
        return threads

    def threads_ahead(self, meanwhile: Callable[[], None]) -> list[Thread]:
        """Return its threads, with what `read` is asked of each at hand until `forget`.

        Args:
            meanwhile: Work for the time while they are read.
        """
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
        """Have nothing at hand any more: from now on `read` returns the memory as it is then."""
        self._ahead = {}

    def thread(self, tid: int) -> Thread | None:
        """Return one of its threads as it is now, None when it is gone."""
        threads = self._threads([tid], lambda: None)
        self.forget()
        return next(iter(threads), None)

    def _threads(self, tids: Sequence[int], meanwhile: Callable[[], None]) -> list[Thread]:
        """Return the threads of some ids that still live, and have their memory at hand."""
        threads = []
        tasks, memory = libptttasks.read(
            self.pid, tids, is_inside=self._is_inside, meanwhile=meanwhile
        )
        ahead: dict[int, bytes] = {}
        status = self._text(f"task/{self.entry}/status")
        may_stand = _value(status, "State")[:1] in _STANDS or _value(status, "TracerPid") != "0"
        # Thousands of times.
        for begin, task in zip(count(step=libptttasks.MEMORY), tasks, strict=False):
            tid, inner_tid, turns, number = task[:4]
            sp, pc, name, state, has_stack, has_futex = task[10:]
            if number == libptttasks.GONE:
                continue
            call = Call(number, task[4:10]) if number >= 0 else None
            text = name.rstrip(b"\0").decode("utf-8", "replace")
            thread = Thread(tid, inner_tid, text, state.decode("ascii"), call, sp, pc, turns)
            registers = self.stopped.get(tid)
            if may_stand and registers is None:
                thread = self._standing(thread)
            threads.append(thread if registers is None else _stopped(thread, registers))
            middle, end = begin + libptttasks.STACK, begin + libptttasks.MEMORY
            if has_stack:
                ahead[sp & ~7] = memory[begin:middle]
            if has_futex:
                ahead[task[4] - libptttasks.BEFORE_FUTEX] = memory[middle:end]
        self._ahead = ahead
        return threads

    def _standing(self, thread: Thread) -> Thread:
        """Return a thread as a stopped thread if a signal or a debugger has stopped it."""
        status = self._text(f"task/{thread.tid}/status")
        state = _value(status, "State")[:1]
        tracer = int(_value(status, "TracerPid") or "0")
        return thread._replace(state=state, tracer=tracer) if state in _STANDS else thread

    def has_run(self, threads: Sequence[Thread]) -> bool:
        """Return whether any of some threads has run, or has ended, since it was seen."""
        turns = {thread.tid: thread.turns for thread in threads if thread.tid not in self.stopped}
        return bool(turns) and libptttasks.turns(self.pid, [*turns]) != [*turns.values()]

    def has_others(self, threads: Sequence[Thread]) -> bool:
        """Return whether it has threads besides some: others that have come since."""
        return bool(set(self._tids()) - {thread.tid for thread in threads})

    def takes_signals(self, tid: int) -> bool:
        """Return whether a thread sleeps, and neither is stopped nor in a call that goes on."""
        return _value(_read(f"/proc/{self.pid}/task/{tid}/status"), "State")[:1] == "S"

    def blocked_signals(self, tid: int) -> int:
        """Return the signals that a thread blocks, a bit each; 0 where that is not known."""
        return int(_value(_read(f"/proc/{self.pid}/task/{tid}/status"), "SigBlk") or "0", 16)

    def running(self) -> list[int]:
        """Return the ids of the threads that run or could, and are not stopped by a tracer."""
        return [t.tid for t in self.threads() if t.state == "R" and t.tid not in self.stopped]

    def tracer(self) -> int:
        """Return the process that traces it, 0 if none does."""
        return int(_value(self._text("status"), "TracerPid") or "0")

    def read(self, address: int, size: int) -> bytes:
        """Return memory of the process, less of it where not all can be read."""
        if not 0 < address < 1 << 63 or size <= 0:
            return b""
        ahead = self._ahead.get(address, b"")
        if size <= len(ahead):
            return ahead[:size]
        whole = read_memory(self.entry, [(address, size)])
        if len(whole) == size:
            return whole
        # A page that cannot be read ends the whole call, unless pages are named one by one.
        pages = range((address // _PAGE + 1) * _PAGE, address + size, _PAGE)
        ends = pairwise([address, *pages, address + size])
        return read_memory(self.entry, [(begin, end - begin) for begin, end in ends])

    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not among its threads lives.

        Args:
            inner_tid: The thread, by the id that the process has for it.
            private: It must be one of the process itself.
        """
        if private:
            return any(thread.inner_tid == inner_tid for thread in self.threads())
        seen = self._place / f"task/{self.entry}/root/proc"
        own = _value(self._text("status"), "NSpid").split()[-1:]
        # Where it has no /proc of its own PID namespace, nothing can be known.
        return not own or not _exists(seen / own[0]) or _exists(seen / str(inner_tid))

    def process_of(self, tid: int) -> Process | None:
        """Return the other process that a thread belongs to, None if it cannot be looked into.

        Args:
            tid: The thread, by the id that the process has for it.
        """
        leader = _value(_read(f"/proc/{tid}/status"), "Tgid")
        # Ids of another PID namespace mean something else here.
        if self._is_inside or not leader or int(leader) == self.pid:
            return None
        try:
            return Process(int(leader))
        except PttError:
            return None

    def forked_from(self) -> tuple[int, int]:
        """Return the parent process, and its threads, if it has run no other program since.

        Zeros where that is not so, or not known.
        """
        parent = int(_value(self._text("status"), "PPid") or "0")
        fields = self._text("stat").rpartition(")")[2].split()
        if not parent or len(fields) <= _FLAGS or not int(fields[_FLAGS]) & _FORKED:
            return 0, 0
        return parent, int(_value(_read(f"/proc/{parent}/status"), "Threads") or "0")

    def sharers(self, address: int) -> frozenset[int] | None:
        """Return the other processes that have a piece of its memory, None if more may have it."""
        return sharers(self.pid, self.entry, address)

    def parent_with(self, inner_tid: int) -> int:
        """Return the parent process if a thread belongs to it, 0 if not.

        Args:
            inner_tid: The thread, by the id that the process has for it.
        """
        parent = _value(self._text("status"), "PPid")
        if self._is_inside or not _exists(Path(f"/proc/{parent}/task/{inner_tid}")):
            return 0
        return int(parent)

    @cached_property
    def has_own_time(self) -> bool:
        """Whether it goes by the clocks of here: it may have a time namespace of its own."""
        try:
            return (self._place / "ns/time").samefile("/proc/self/ns/time")
        except OSError:
            return True  # a kernel without such namespaces

    @property
    def files(self) -> Files | None:
        """Its open files, as they are now."""
        return Files(self.pid, self.entry)

    @cached_property
    def modules(self) -> list[Module]:
        """The files that its code comes from, by paths of the root directory of here."""
        place = self._place / "task" / str(self.entry)
        root = place / "root"
        try:
            same = root.samefile("/") and (place / "ns/mnt").samefile("/proc/self/ns/mnt")
        except OSError:
            same = True
        try:
            text = (place / "maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        matches = (_MAPPING.fullmatch(line) for line in text.splitlines() if "/" in line)
        mappings = (
            MappedFile(int(m[1], 16), int(m[2], 16), int(m[3], 16), m[4]) for m in matches if m
        )
        exe = _link(place / "exe")

        def image(m: MappedFile) -> str:
            # Who may look into a process may open its program this way, and the administrator all.
            return str(
                place / "exe" if m.path == exe else self._place / f"map_files/{m.start:x}-{m.end:x}"
            )

        modules = modules_of(mappings, self.read, "" if same else str(root), image)
        return modules if same else [_by_path_of_here(module, str(root)) for module in modules]

    def _text(self, name: str) -> str:
        return _read(f"{self._place}/{name}")

    def _why(self) -> str:
        """Say what keeps this user from looking, and what would allow it."""
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
        # The owner of its directory is user 0 where it does not let itself be looked into.
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
    """Return what a short file of the kernel says, nothing if it is gone: many are read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _SHORT).decode("utf-8", "replace")
        finally:
            os.close(file)
    except OSError:
        return ""


def _exists(path: Path) -> bool:
    """Return whether something is there: below a process that ends even asking for it fails."""
    try:
        return path.exists()
    except OSError:
        return False


def _stopped(thread: Thread, registers: Registers) -> Thread:
    """Return a thread as its registers say."""
    call = registers.call
    return thread._replace(
        state="R" if call is None else "S", call=call, sp=registers.sp, pc=registers.pc,
        saved=registers.saved, argument=registers.argument,
    )  # fmt: skip


def _link(path: Path) -> str:
    """Return what a link of the kernel's says; nothing if it is not to be had."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _by_path_of_here(module: Module, root: str) -> Module:
    """Return a module of a process that has another root directory, with the path of its file.

    The kernel names a file from the root of here where it can be reached from there, and otherwise
    from the root of the file system. It does not say the name that the process uses.
    """
    path = module.path.removeprefix(root)
    # A file is taken by its build-id, so that another file of the same name does no harm.
    is_here = module.build_id and not _exists(Path(module.path)) and _exists(Path(path))
    return replace(module, path=path) if is_here else module


def _value(status: str, name: str) -> str:
    """Return what stands behind a name in `status`."""
    begin = status.find(f"\n{name}:") + 1 if not status.startswith(f"{name}:") else 0
    if not status.startswith(f"{name}:", begin):
        return ""
    begin += len(name) + 1
    return status[begin : status.find("\n", begin)].strip()
