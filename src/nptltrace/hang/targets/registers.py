"""Registers of a stopped thread on x86-64 (`struct user_regs_struct`), and its system call."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nptltrace.hang.targets.target import Call

if TYPE_CHECKING:
    from nptltrace.hang.targets.target import Thread

__all__ = ["SIZE", "Registers"]

_LAYOUT = struct.Struct("<27Q")
SIZE = _LAYOUT.size
_NAMES = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs",
    "gs",
)  # fmt: skip
# The DWARF numbers of the callee-saved registers (System V ABI, AMD64 supplement).
_SAVED = {"rbx": 3, "rbp": 6, "r12": 12, "r13": 13, "r14": 14, "r15": 15}
_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
# The values of rax when the kernel interrupts a system call: EINTR, ERESTARTSYS, ERESTARTNOINTR,
# ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
_INTERRUPTED = frozenset((1 << 64) - number for number in (4, 512, 513, 514, 516))


class Registers:
    """The registers of one thread.

    Args:
        data: The registers as the kernel writes them, `SIZE` bytes.

    Attributes:
        pc: The address of the next instruction.
        sp: The stack pointer.
        argument: The register of the first argument: the argument, unless the function changed it.
        thread_pointer: The address of the thread's TLS.
        saved: The callee-saved registers, by their DWARF numbers.
        call: The system call that the kernel interrupted, or None.
    """

    def __init__(self, data: bytes) -> None:
        values: dict[str, int] = dict(zip(_NAMES, _LAYOUT.unpack_from(data), strict=True))
        self.pc, self.sp, self.argument = values["rip"], values["rsp"], values["rdi"]
        self.thread_pointer = values["fs_base"]
        self.saved = {number: values[name] for name, number in _SAVED.items()}
        number = values["orig_rax"]
        in_call = number < 1 << 31 and values["rax"] in _INTERRUPTED
        arguments = tuple(values[name] for name in _ARGUMENTS)
        self.call = Call(number, arguments) if in_call else None

    def apply(self, thread: Thread) -> Thread:
        """Return the stopped thread with the state that the registers show."""
        return thread._replace(
            state="R" if self.call is None else "S", call=self.call, sp=self.sp, pc=self.pc,
            saved=self.saved, argument=self.argument,
        )  # fmt: skip
