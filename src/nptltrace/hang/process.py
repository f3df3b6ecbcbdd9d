"""A process that runs, as its own user may see it: threads, memory, modules; none is stopped."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nptltrace.errors import NativeError, PttError
from nptltrace.recording.mappings import Modules
from nptltrace.trace.symbols.module_table import Module, ModuleMap

__all__ = ["Call", "Process", "Thread"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+\s*(.*)")
_PAGE = 4096
# Signals that the thread library takes for itself: cancellation and changes of the user.
_OWN_SIGNALS = 1 << 31 | 1 << 32


class _Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that a thread is in.

    Attributes:
        number: As the architecture counts them.
        arguments: The six registers of its arguments.
    """

    number: int
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread at one moment.

    Attributes:
        tid: As this process's PID namespace counts it.
        inner_tid: As the process itself knows it, and writes it into its locks.
        name: Its name.
        state: The letter of the kernel: R runs or is ready, S sleeps, D sleeps and takes no signal.
        call: What it sleeps in; None when it runs, or sleeps in no system call.
        sp: Its stack pointer; 0 when it runs.
        pc: Where it is; 0 when it runs.
        switches: How often it has left a processor: the same number again, and it never ran.
    """

    tid: int
    inner_tid: int
    name: str
    state: str
    call: Call | None = None
    sp: int = 0
    pc: int = 0
    switches: int = 0


class Process:
    """A running process.

    Args:
        pid: As this PID namespace counts it.

    Raises:
        PttError: There is no such process, or it may not be looked into.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._place = Path("/proc") / str(pid)
        status = self._text("status")
        if not status:
            raise PttError(f"there is no process {pid}")
        self.name = _field(status, "Name")
        caught = int(_field(status, "SigCgt") or "0", 16)
        self.handles_signals = bool(caught & ~_OWN_SIGNALS)
        try:
            (self._place / "syscall").read_bytes()
        except PermissionError:
            raise PttError(f"cannot look into process {pid}: {self._why()}") from None
        except OSError as error:
            raise NativeError(f"cannot look into process {pid}", error.errno or errno.EIO) from None

    def threads(self) -> list[Thread]:
        """Return the threads there are now, each at a moment of its own, by id."""
        try:
            ids = sorted(map(int, os.listdir(self._place / "task")))  # noqa: PTH208 -- names only
        except OSError:
            return []
        return [thread for tid in ids if (thread := self.thread(tid)) is not None]

    def thread(self, tid: int) -> Thread | None:
        """Return one of its threads as it is now, None when it is gone."""
        place = f"task/{tid}"
        status = self._text(f"{place}/status")
        words = self._text(f"{place}/syscall").split()
        if not status or not words:
            return None
        inner = _field(status, "NSpid").split()
        number, call, sp, pc = -1, None, 0, 0
        if words[0] != "running":
            number, *numbers = [int(word, 0) for word in words]
            *arguments, sp, pc = numbers
            call = Call(number, tuple(arguments)) if number >= 0 else None
        switches = [
            _field(status, f"{kind}_ctxt_switches") for kind in ("voluntary", "nonvoluntary")
        ]
        return Thread(
            tid, int(inner[-1]) if inner else tid, _field(status, "Name"),
            _field(status, "State")[:1], call, sp, pc, sum(int(text or 0) for text in switches),
        )  # fmt: skip

    def read(self, address: int, size: int) -> bytes:
        """Return memory of the process, less of it where not all can be read."""
        if not 0 < address < 1 << 63 or size <= 0:
            return b""
        memory = ctypes.create_string_buffer(size)
        here = _Piece(ctypes.cast(memory, ctypes.c_void_p), size)
        # A page that cannot be read ends the whole call, unless pages are named one by one.
        ends = [*range((address // _PAGE + 1) * _PAGE, address + size, _PAGE), address + size]
        pieces = (_Piece * len(ends))()
        begin = address
        for piece, end in zip(pieces, ends, strict=True):
            piece.base, piece.size = begin, end - begin
            begin = end
        done = _libc.process_vm_readv(self.pid, ctypes.byref(here), 1, pieces, len(ends), 0)
        return memory.raw[:done] if done > 0 else b""

    def lives(self, inner_tid: int) -> bool:
        """Return whether a thread that this process could mean by an id lives."""
        return (self._place / "root/proc" / str(inner_tid)).exists()

    @cached_property
    def maps(self) -> list[tuple[int, int, str, str]]:
        """Start, end, rights and path of what is mapped."""
        found = (_MAPPING.fullmatch(line) for line in self._text("maps").splitlines())
        return [(int(m[1], 16), int(m[2], 16), m[3], m[4]) for m in found if m is not None]

    @cached_property
    def modules(self) -> list[Module]:
        """The files that its code comes from; in another mount namespace, by a path of this one."""
        text = self._text("maps")
        root = self._place / "root"
        try:
            elsewhere = not root.samefile("/")
        except OSError:
            elsewhere = False
        if elsewhere:
            text = re.sub(r" (/[^\n]*)", rf" {root}\1", text)
        return [
            Module(
                item["path"], item["build_id"], int(item["start"], 16), int(item["end"], 16),
                item["offset"], int(item["bias"], 16),
            )
            for item in Modules().of_maps(text)
        ]  # fmt: skip

    @cached_property
    def map(self) -> ModuleMap:
        """Which module lies at an address."""
        return ModuleMap(self.modules)

    # ---- as `trace.symbols` sees a process that was recorded ----

    @property
    def start_unix_ns(self) -> int | None:
        """None: files are taken by build-id, and are as they are now."""
        return None

    def _text(self, name: str) -> str:
        try:
            return (self._place / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _why(self) -> str:
        """Say what keeps this user from looking, and what would allow it."""
        try:
            owner = self._place.stat().st_uid
        except OSError:
            return "it has ended"
        if owner != os.geteuid():
            return f"it belongs to user {owner}; run ptt as that user or as root"
        try:
            scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii"))
        except (OSError, ValueError):
            scope = 0
        if scope:
            return (
                f"kernel.yama.ptrace_scope is {scope}; run ptt as root, "
                "or allow it by `sysctl kernel.yama.ptrace_scope=0`"
            )
        return "it does not let itself be looked into (prctl PR_SET_DUMPABLE); run ptt as root"


def _field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:[ \t]*(.*)$", status, re.MULTILINE)
    return match[1] if match else ""
