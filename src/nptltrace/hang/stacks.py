"""The stacks of threads that sleep, walked from outside by the unwind tables of what is mapped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.unwind_tables import UnwindTable

if TYPE_CHECKING:
    from nptltrace.hang.process import Process, Thread
    from nptltrace.hang.unwind_tables import Row

__all__ = ["Frame", "Stacks"]

_DEPTH = 64
# As much of a stack is read at a time.
_PIECE = 1 << 14
# How far a frame is looked for where no table leads to it.
_SEARCHED = 1 << 12


class _Registers(NamedTuple):
    """Numbers that DWARF gives to the registers of an architecture."""

    stack: int
    frame: int


_MACHINES = {"x86_64": _Registers(7, 6), "aarch64": _Registers(31, 29)}
_UNKNOWN = _Registers(-1, -1)


class Frame(NamedTuple):
    """A function on a stack.

    Attributes:
        address: Where it goes on: behind its call; of the innermost, where it is.
        guessed: No table led to it: it was recognized on the stack by what it looks like.
    """

    address: int
    guessed: bool = False


class Stacks:
    """Walks stacks of one process.

    The kernel gives the stack pointer and the place of a thread that sleeps, no other register.
    What the functions of the C library have saved comes from the stack itself; where a table wants
    a register that none of them saved, the next frame is looked for on the stack.

    Args:
        process: Whose threads they are.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._registers = _MACHINES.get(os.uname().machine, _UNKNOWN)
        self._tables: dict[str, UnwindTable] = {}

    def of(self, thread: Thread) -> list[Frame]:
        """Return the frames of a thread, the innermost first; none of one that runs."""
        if not thread.pc or self._registers is _UNKNOWN:
            return []
        memory = _Memory(self._process, thread.sp)
        numbers = self._registers
        known = {numbers.stack: thread.sp}
        found = [Frame(thread.pc)]
        while len(found) < _DEPTH:
            step = self._step(found, known, memory)
            if step is None:
                break
            found.append(step)
        return found

    def _step(self, found: list[Frame], known: dict[int, int], memory: _Memory) -> Frame | None:
        """Find the caller of the last frame, and its registers."""
        inner = found[-1].address
        row = self._row(inner - (len(found) > 1))
        stack = known[self._registers.stack]
        if row is None or row.signal:
            return None
        base = known.get(row.register)
        if base is None:
            return self._search(known, memory)
        frame = base + row.offset
        at = row.saved.get(row.returns)
        if at is None or frame <= stack:
            return None
        address = memory.word(frame + at)
        if not address or self._process.map.only(address - 1) is None:
            return None
        for register, offset in row.saved.items():
            if register != row.returns:
                known.pop(register, None)
                if offset is not None and (value := memory.word(frame + offset)) is not None:
                    known[register] = value
        known[self._registers.stack] = frame
        return Frame(address)

    def _search(self, known: dict[int, int], memory: _Memory) -> Frame | None:
        """Look for a saved frame pointer with a return address behind it: the first there is."""
        begin = known[self._registers.stack]
        for at in range(begin, begin + _SEARCHED, 8):
            pointer, address = memory.word(at), memory.word(at + 8)
            if pointer is None or address is None:
                return None
            if at < pointer < at + (1 << 20) and not pointer & 7 and self._is_return(address):
                known.clear()
                known[self._registers.stack] = at + 16
                known[self._registers.frame] = pointer
                return Frame(address, guessed=True)
        return None

    def _is_return(self, address: int) -> bool:
        """Return whether a call stands before an address."""
        if self._process.map.only(address - 1) is None or self._row(address - 1) is None:
            return False
        before = self._process.read(address - 7, 7)
        if len(before) < 7:  # noqa: PLR2004 -- the longest call there is
            return False
        # x86: a call of an address, or through a register or memory
        indirect = any(
            before[-n] == 0xFF and before[1 - n] & 0x38 == 0x10  # noqa: PLR2004
            for n in (2, 3, 4, 6, 7)
        )
        return before[-5] == 0xE8 or indirect  # noqa: PLR2004

    def _row(self, address: int) -> Row | None:
        module = self._process.map.only(address)
        if module is None:
            return None
        table = self._tables.get(module.path)
        if table is None:
            table = self._tables[module.path] = UnwindTable(Path(module.path))
        return table.row(address - (module.bias or 0))


class _Memory:
    """A stack, read a piece at a time."""

    def __init__(self, process: Process, begin: int) -> None:
        self._process, self._begin = process, begin & ~7
        self._data = b""

    def word(self, address: int) -> int | None:
        """Return the word at an address of the stack, None where there is none."""
        at = address - self._begin
        if not 0 <= at < 1 << 24 or at & 7:
            return None
        while at + 8 > len(self._data):
            more = self._process.read(self._begin + len(self._data), _PIECE)
            self._data += more
            if len(more) < _PIECE:
                break
        data = self._data[at : at + 8]
        return int.from_bytes(data, "little") if len(data) == 8 else None  # noqa: PLR2004
