"""Registers of a stopped thread on x86-64 (`struct user_regs_struct`), and its system call."""

from __future__ import annotations

import struct

from nptltrace.hang.targets.thread import Call

__all__ = ["SIZE", "Registers"]

_LAYOUT = struct.Struct("<27Q")
SIZE = _LAYOUT.size
_NAMES = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs",
    "gs",
)  # fmt: skip
# DWARF's numbers of the registers that a function keeps for its caller.
_SAVED = {"rbx": 3, "rbp": 6, "r12": 12, "r13": 13, "r14": 14, "r15": 15}
_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
# What the kernel leaves in rax while it takes a thread out of a call: EINTR, ERESTARTSYS,
# ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
_INTERRUPTED = frozenset((1 << 64) - number for number in (4, 512, 513, 514, 516))


class Registers:
    """The registers of one thread.

    Args:
        data: As the kernel writes them, `SIZE` bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._values: dict[str, int] = dict(zip(_NAMES, _LAYOUT.unpack_from(data), strict=True))

    @property
    def pc(self) -> int:
        """Where it is."""
        return self._values["rip"]

    @property
    def sp(self) -> int:
        """Its stack pointer."""
        return self._values["rsp"]

    @property
    def argument(self) -> int:
        """The first argument of the function, where that has not used the register since."""
        return self._values["rdi"]

    @property
    def thread_pointer(self) -> int:
        """Where what it has for itself lies."""
        return self._values["fs_base"]

    @property
    def saved(self) -> dict[int, int]:
        """The registers that a function keeps for its caller, by their DWARF numbers."""
        return {number: self._values[name] for name, number in _SAVED.items()}

    @property
    def call(self) -> Call | None:
        """The system call that it was taken out of, None if it was in none."""
        number = self._values["orig_rax"]
        if number >= 1 << 31 or self._values["rax"] not in _INTERRUPTED:
            return None
        return Call(number, tuple(self._values[name] for name in _ARGUMENTS))
