"""The stacks of sleeping threads, walked from outside with the unwind tables of the modules."""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.libptttasks import STACK
from nptltrace.hang.stack.prologue import CODE_SIZE, frame_size
from nptltrace.hang.stack.unwind_table import PROCESSORS, Processor, UnwindTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nptltrace.hang.stack.unwind_table import Row
    from nptltrace.hang.targets.target import Target, Thread
    from nptltrace.trace.code.modules import Module

__all__ = ["DEPTH", "UNKNOWN_SIGNAL", "Frame", "Stacks"]

# The largest number of frames of a stack.
DEPTH = 64
# The size of the pieces for reading a stack, in bytes.
_PIECE = 1 << 12
# The part of a stack that is searched for a frame if no table leads to it, in bytes.
_SEARCHED = 1 << 12
# The largest size of arguments on the stack, in bytes.
_ARGUMENTS = 1 << 6
# A stub of the linker: endbr64, and a jump through a word in memory.
_STUB = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\xf2?\xff\x25(....)", re.DOTALL)
_STUB_SIZE = 11
# The opcode of a jump, conditional or not, before a 32-bit distance.
_JUMP = re.compile(rb"\xe9|\x0f[\x80-\x8f]")
# The largest number of remembered ways for one program counter.
_WAYS = 64
# The kernel's frame of a signal handler on x86-64 (`struct ucontext`): the registers with these
# DWARF numbers, the interrupted address, and the blocked signals.
_CONTEXT = struct.Struct("<40x17Q120xQ")
_CONTEXT_REGISTERS = (8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7)


UNKNOWN_SIGNAL = -1
# The registers of an architecture without support for stacks.
_UNKNOWN = Processor(-1, -1, -1, -1)


class Frame(NamedTuple):
    """A function on a stack.

    Attributes:
        address: The address of the next instruction: after the call, except in the innermost frame.
        guessed: The frame was guessed from the contents of the stack.
        by_table: An unwind table led to the frame.
        stack: The stack pointer, relative to the stack pointer of the thread.
        signal: 0 if the function made a call. If a signal handler interrupted the function, the
            signal, or `UNKNOWN_SIGNAL`; the frame before is the place to which the handler returns.
        kept: The places of registers that called functions have saved, relative as `stack`.
    """

    address: int
    guessed: bool = False
    by_table: bool = True
    stack: int = 0
    signal: int = 0
    kept: tuple[int, ...] = ()

    @property
    def inside(self) -> int:
        """An address in the current instruction: the call, except in an interrupted function."""
        return self.address - (not self.signal)


class _Word(NamedTuple):
    """A word on a stack that decides the way of a walk.

    Attributes:
        at: The place of the word, relative to the stack pointer.
        value: The value.
        is_place: The value is a place on the stack, relative to the stack pointer.
    """

    at: int
    value: int
    is_place: bool


class _Walk:
    """The state of a walk.

    Args:
        thread: The thread with the stack.
        numbers: The numbers of the registers.
        memory: The stack.
        blocked: Returns the blocked signals of the thread as a bit mask.
    """

    def __init__(
        self, thread: Thread, numbers: Processor, memory: _Memory, blocked: Callable[[], int]
    ) -> None:
        self.memory, self.blocked = memory, blocked
        self.frames = [Frame(thread.pc)]
        self.known = {**thread.saved, numbers.stack: thread.sp}
        self.origin: dict[int, int] = {}  # the places of saved registers on the stack
        self.words: list[_Word] = []
        # Whether the words alone decide the way of the walk.
        self.is_exact = not thread.saved


class _Way:
    """The words that led a walk to its frames. Another stack with the same words has these frames.

    Args:
        words: The words.
        frames: The frames.

    Attributes:
        frames: As given.
        size: The number of bytes of a stack that are needed for a comparison.
    """

    def __init__(self, words: Iterable[_Word], frames: Sequence[Frame]) -> None:
        decide = sorted({word.at: word for word in words}.values())
        ends = [0, *(word.at + 8 for word in decide)]
        gaps = (word.at - end for word, end in zip(decide, ends, strict=False))
        self.frames, self.size = frames, ends[-1]
        self._layout = struct.Struct("=" + "".join(f"{gap}xQ" for gap in gaps))
        self._values = tuple(word.value for word in decide)
        self._places = [n for n, word in enumerate(decide) if word.is_place]

    def is_of(self, stack: bytes, top: int) -> bool:
        """Return whether another stack has the same frames.

        Args:
            stack: The first bytes of the stack.
            top: The stack pointer.
        """
        if len(stack) < self.size:
            return False
        words = self._layout.unpack_from(stack)
        if not self._places:
            return words == self._values
        values = [*self._values]
        for number in self._places:
            values[number] += top
        return words == tuple(values)


class Stacks:
    """Walks the stacks of one process.

    For a thread that was not stopped, the kernel shows only the stack pointer and the program
    counter. Other registers come from the stack, if functions of the C library have saved them. If
    a table needs another register, the next frame is searched on the stack.

    Args:
        process: The process.
        files: Returns the files of a module.
    """

    def __init__(self, process: Target, files: Callable[[Module], Sequence[Path]]) -> None:
        self._process, self._files = process, files
        self._registers = PROCESSORS.get(process.machine, _UNKNOWN)
        self._tables: dict[Module, UnwindTable] = {}
        self._rows: dict[int, Row | None] = {}
        self._code: dict[int, bool] = {}
        self._ways: dict[int, list[_Way]] = {}

    def of(self, thread: Thread) -> Sequence[Frame]:
        """Return the frames of a thread, the innermost first; none for a running thread.

        Most of many threads are in the same few places. If a stack has the same deciding words as
        an earlier stack, the frames are the same.
        """
        if not thread.pc or self._registers is _UNKNOWN:
            return []
        stack = b""
        for way in self._ways.get(thread.pc, ()) if not thread.saved else ():
            if len(stack) < way.size:
                stack = self._process.read(thread.sp, max(way.size, STACK))
            if way.is_of(stack, thread.sp):
                return way.frames
        memory = _Memory(self._process, thread.sp)
        blocked = partial(self._process.blocked_signals, thread.tid)
        walk = _Walk(thread, self._registers, memory, blocked)
        while len(walk.frames) < DEPTH:
            step = self._step(walk, thread.sp)
            if step is None:
                break
            walk.frames.append(step)
        ways = self._ways.setdefault(thread.pc, [])
        if walk.is_exact and len(ways) < _WAYS:
            ways.append(_Way(walk.words, walk.frames))
        return walk.frames

    def is_whole(self, frames: Sequence[Frame]) -> bool:
        """Return whether the last frame is the outermost: its table says that nothing called it."""
        row = self._row(self._inside(frames)) if frames else None
        return row is not None and not row.signal and row.returns is None

    def _step(self, walk: _Walk, top: int) -> Frame | None:
        """Find the caller of the last frame, and its registers."""
        known, memory = walk.known, walk.memory
        inner = self._inside(walk.frames)
        row = self._row(inner)
        stack = known[self._registers.stack]
        if row is None:
            return None
        if row.signal:
            return self._interrupted(walk, top)
        at = row.returns
        if at is None:
            return None if row.register in known else self._search(known, memory, top)
        if row.register in known:
            frame, guessed = known[row.register] + row.offset, False
            if row.register in walk.origin:
                origin = walk.origin[row.register] - top
                walk.words.append(_Word(origin, known[row.register] - top, is_place=True))
        else:
            walk.is_exact = False
            returns, guessed = self._returns(inner, row, stack, memory)
            if returns is None:
                return self._search(known, memory, top)
            frame = returns - at
        return self._called_from(walk, row, frame, top, guessed=guessed)

    def _called_from(
        self, walk: _Walk, row: Row, frame: int, top: int, *, guessed: bool
    ) -> Frame | None:
        """Return the caller of the last frame of a walk, and update the registers of the walk.

        Args:
            walk: The walk.
            row: The row of the last frame.
            frame: The canonical frame address of the last frame.
            top: The stack pointer of the thread.
            guessed: The canonical frame address was guessed.
        """
        known, memory = walk.known, walk.memory
        at = row.returns
        if at is None or frame <= known[self._registers.stack]:
            return None
        by_table = row.register in known
        address = memory.word(frame + at)
        walk.is_exact &= address is not None
        walk.words.append(_Word(frame + at - top, address or 0, is_place=False))
        if not address or not self._is_code(address - 1):
            return None
        for register, offset in row.saved.items():
            known.pop(register, None)
            walk.origin.pop(register, None)
            if offset is not None and (value := memory.word(frame + offset)) is not None:
                known[register] = value
                walk.origin[register] = frame + offset
        known[self._registers.stack] = frame
        kept = tuple(saved - top for saved in walk.origin.values())
        return Frame(address, guessed, by_table, frame - top, kept=kept)

    @staticmethod
    def _inside(frames: Sequence[Frame]) -> int:
        """Return an address in the current instruction of the last frame."""
        return frames[-1].inside if len(frames) > 1 else frames[-1].address

    def _interrupted(self, walk: _Walk, top: int) -> Frame | None:
        """Return the interrupted function of a handler that returns to the last frame of a walk.

        All registers of the interrupted function are on the stack.
        """
        at = walk.known[self._registers.stack]
        walk.is_exact = False
        data = self._process.read(at, _CONTEXT.size)
        if self._process.machine != "x86_64" or len(data) < _CONTEXT.size:
            return None
        *values, address, blocked = _CONTEXT.unpack_from(data)
        if not self._is_code(address):
            return None
        # Without SA_SIGINFO, the stack does not name the signal. But the kernel blocks the signal
        # while the handler runs.
        since = walk.blocked() & ~blocked
        signal = since.bit_length() if since.bit_count() == 1 else UNKNOWN_SIGNAL
        walk.blocked = lambda: blocked
        walk.known.clear()
        walk.origin.clear()
        walk.known.update(zip(_CONTEXT_REGISTERS, values, strict=True))
        # The handler may have run on an alternate stack.
        sp = walk.known[self._registers.stack]
        walk.memory = _Memory(self._process, sp)
        return Frame(address, by_table=False, stack=sp - top, signal=signal)

    def _returns(
        self, inner: int, row: Row, stack: int, memory: _Memory
    ) -> tuple[int | None, bool]:
        """Return the place of a return address on a stack, and whether the place is a guess.

        Args:
            inner: An address in the function.
            row: The row for this address.
            stack: The stack pointer of the function.
            memory: The stack.
        """
        module = self._process.map.only(inner)
        begin = row.begin + (module.bias or 0) if module is not None else 0
        at = self._by_prologue(begin, row, stack, memory)
        return (self._by_call(begin, stack, memory), True) if at is None else (at, False)

    def _by_prologue(self, begin: int, row: Row, stack: int, memory: _Memory) -> int | None:
        """Return the place of the return address of a function, by its prologue.

        Args:
            begin: The begin of the function.
            row: The row for its current instruction.
            stack: The stack pointer of the function.
            memory: The stack.
        """
        if self._process.machine != "x86_64" or row.register != self._registers.frame:
            return None
        size = frame_size(self._process.read(begin, CODE_SIZE))
        if not size:
            return None
        # Arguments of the function's current call may lie below its frame.
        for at in range(stack + size - 8, stack + size + _ARGUMENTS, 8):
            address = memory.word(at)
            if address and self._is_return(address):
                called = self.called_before(address)
                if not called or self._goes_on_as(called, begin):
                    return at
        return None

    def _by_call(self, begin: int, stack: int, memory: _Memory) -> int | None:
        """Return the place of the first return address after a call of a function, or None.

        Args:
            begin: The begin of the function.
            stack: The stack pointer, where the search begins.
            memory: The stack.
        """
        for at in range(stack, stack + _SEARCHED, 8):
            address = memory.word(at)
            if address is None:
                break
            if not self._is_code(address - 1):
                continue
            called = self.called_before(address)
            if called and self._goes_on_as(called, begin):
                return at
        return None

    def _goes_on_as(self, called: int, begin: int) -> bool:
        """Return whether the called function is another function, or soon jumps to it (x86).

        Args:
            called: The begin of the called function.
            begin: The begin of the other function.
        """
        if called == begin:
            return True
        code = self._process.read(called, CODE_SIZE)
        jumps = (at.end() for at in _JUMP.finditer(code) if at.end() + 4 <= len(code))
        return any(
            called + at + 4 + int.from_bytes(code[at : at + 4], "little", signed=True) == begin
            for at in jumps
        )

    def called_before(self, address: int) -> int:
        """Return the target of the call before an address (x86); 0 if the code does not show it."""
        before = self._process.read(address - 6, 6)
        if len(before) < 6:  # noqa: PLR2004 -- a call through a word in memory
            return 0
        far = address + int.from_bytes(before[2:], "little", signed=True)
        if before[:2] == b"\xff\x15":
            return self._process.word(far)
        return self._behind_stub(far) if before[1] == 0xE8 else 0  # noqa: PLR2004

    def _behind_stub(self, address: int) -> int:
        """Return the target of a stub of the linker; for another function, the address itself."""
        stub = _STUB.match(self._process.read(address, _STUB_SIZE))
        if stub is None:
            return address
        word = address + stub.end() + int.from_bytes(stub[1], "little", signed=True)
        return self._process.word(word)

    def _search(self, known: dict[int, int], memory: _Memory, top: int) -> Frame | None:
        """Return the frame at the first saved frame pointer with a return address after it."""
        begin = known[self._registers.stack]
        for at in range(begin, begin + _SEARCHED, 8):
            pointer, address = memory.word(at), memory.word(at + 8)
            if pointer is None or address is None:
                break
            if at < pointer < at + (1 << 20) and not pointer & 7 and self._is_return(address):
                known.clear()
                known[self._registers.stack] = at + 16
                known[self._registers.frame] = pointer
                return Frame(address, guessed=True, by_table=False, stack=at + 16 - top)
        return self._search_caller(known, memory, top)

    def _search_caller(self, known: dict[int, int], memory: _Memory, top: int) -> Frame | None:
        """Return the frame at the first return address with a table that leads to another.

        A callback of the C library has saved no frame pointer if its caller uses the register of
        the frame pointer for another value.
        """
        begin = known[self._registers.stack]
        for at in range(begin, begin + _SEARCHED, 8):
            address = memory.word(at)
            if address is None:
                return None
            row = self._row(address - 1) if self._is_return(address) else None
            if row is None or row.signal or row.register != self._registers.stack:
                continue
            offset = row.returns
            outer = memory.word(at + 8 + row.offset + offset) if offset is not None else None
            if outer is not None and self._is_return(outer):
                known.clear()
                known[self._registers.stack] = at + 8
                return Frame(address, guessed=True, by_table=False, stack=at + 8 - top)
        return None

    def _is_return(self, address: int) -> bool:
        """Return whether there is a call instruction before an address."""
        if not self._is_code(address - 1) or self._row(address - 1) is None:
            return False
        before = self._process.read(address - 7, 7)
        if len(before) < 7:  # noqa: PLR2004 -- the longest call instruction
            return False
        # x86: a direct call, or a call through a register or memory
        indirect = any(
            before[-n] == 0xFF and before[1 - n] & 0x38 == 0x10  # noqa: PLR2004
            for n in (2, 3, 4, 6, 7)
        )
        return before[-5] == 0xE8 or indirect  # noqa: PLR2004

    def _is_code(self, address: int) -> bool:
        if address not in self._code:
            self._code[address] = self._process.map.only(address) is not None
        return self._code[address]

    def _row(self, address: int) -> Row | None:
        if address not in self._rows:
            module = self._process.map.only(address)
            row = None
            if module is not None:
                if module not in self._tables:
                    self._tables[module] = UnwindTable(self._files(module), self._registers)
                row = self._tables[module].row(address - (module.bias or 0))
            self._rows[address] = row
        return self._rows[address]


class _Memory:
    """A stack that is read piece by piece.

    Attributes:
        words: The 8-byte words that were read.
    """

    def __init__(self, process: Target, begin: int) -> None:
        self._process, self._begin = process, begin & ~7
        self.words: list[int] = []
        self._whole = False
        self._read(STACK)

    def word(self, address: int) -> int | None:
        """Return the word at an address of the stack, None if it cannot be read."""
        at = address - self._begin
        if not 0 <= at < 1 << 24 or at & 7:
            return None
        while at >> 3 >= len(self.words) and not self._whole:
            self._read(_PIECE)
        return self.words[at >> 3] if at >> 3 < len(self.words) else None

    def _read(self, size: int) -> None:
        more = self._process.read(self._begin + 8 * len(self.words), size)
        self._whole = len(more) < size
        self.words += struct.unpack_from(f"={len(more) // 8}Q", more)
