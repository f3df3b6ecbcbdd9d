"""The stacks of threads that sleep, walked from outside by the unwind tables of their modules."""

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

__all__ = ["UNKNOWN_SIGNAL", "Frame", "Stacks"]

_DEPTH = 64
# As much of a stack is read at a time.
_PIECE = 1 << 12
# How far a frame is looked for where no table leads to it.
_SEARCHED = 1 << 12
# The arguments of a call that do not fit in registers, in bytes.
_ARGUMENTS = 1 << 6
# How the linker's stubs begin: endbr64, and a jump through a word in memory.
_STUB = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\xf2?\xff\x25(....)", re.DOTALL)
_STUB_SIZE = 11
# A jump, with or without a condition, by a distance that follows.
_JUMP = re.compile(rb"\xe9|\x0f[\x80-\x8f]")
# So many ways to one place are remembered.
_WAYS = 64
# What the kernel puts on a stack for a signal handler of x86-64 (`struct ucontext`): the registers,
# which begin with the registers of these numbers of DWARF, the place, and the blocked signals.
_CONTEXT = struct.Struct("<40x17Q120xQ")
_CONTEXT_REGISTERS = (8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7)


UNKNOWN_SIGNAL = -1
# Of a processor whose stacks cannot be walked.
_UNKNOWN = Processor(-1, -1, -1, -1)


class Frame(NamedTuple):
    """A function on a stack.

    Attributes:
        address: Where it goes on: behind its call; of the innermost, where it is.
        guessed: No table led to it: it was recognized on the stack by what it looks like.
        by_table: An unwind table led to it.
        stack: Its stack pointer, counted from the thread's.
        signal: The signal whose handler interrupted it, `UNKNOWN_SIGNAL` if it is not known;
            0 if it made a call. The frame before it is what the handler returns to.
        kept: Where its registers lie that the functions which it called have saved, counted as
            well.
    """

    address: int
    guessed: bool = False
    by_table: bool = True
    stack: int = 0
    signal: int = 0
    kept: tuple[int, ...] = ()

    @property
    def inside(self) -> int:
        """An address in the instruction that it is at."""
        return self.address - (not self.signal)


class _Word(NamedTuple):
    """A word of a stack that decides about a walk.

    Attributes:
        at: Where it is, from the stack pointer on.
        value: What it was.
        is_place: It is a place on the stack, from the stack pointer on.
    """

    at: int
    value: int
    is_place: bool


class _Walk:
    """A walk while it is made.

    Args:
        thread: Whose stack it is.
        numbers: Of the registers.
        memory: The stack.
        blocked: Returns the signals that the thread blocks, as bits.
    """

    def __init__(
        self, thread: Thread, numbers: Processor, memory: _Memory, blocked: Callable[[], int]
    ) -> None:
        self.memory, self.blocked = memory, blocked
        self.frames = [Frame(thread.pc)]
        self.known = {**thread.saved, numbers.stack: thread.sp}
        self.origin: dict[int, int] = {}  # where on the stack registers were saved
        self.words: list[_Word] = []
        # Whether another stack with these words leads the same way.
        self.is_exact = not thread.saved


class _Way:
    """Words by which a walk has come to some frames, in order to know another stack that does.

    Args:
        words: The words.
        frames: The frames.

    Attributes:
        frames: As given.
        size: So much of a stack is needed to compare it.
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
        """Return whether another stack leads the same way.

        Args:
            stack: What of it is known.
            top: Where it begins.
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
    """Walks stacks of one process.

    Of a thread that was not stopped the kernel gives the stack pointer and the place, no other
    register. What the functions of the C library have saved comes from the stack itself; where a
    table wants a register that none of them saved, the next frame is looked for on the stack.

    Args:
        process: Whose threads they are.
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
        """Return the frames of a thread, the innermost first; none of a thread that runs.

        Threads are many, and most are in the same few places: where the words on their stacks are
        the same that another one has been walked by, so are the frames.
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
        while len(walk.frames) < _DEPTH:
            step = self._step(walk, thread.sp)
            if step is None:
                break
            walk.frames.append(step)
        ways = self._ways.setdefault(thread.pc, [])
        if walk.is_exact and len(ways) < _WAYS:
            ways.append(_Way(walk.words, walk.frames))
        return walk.frames

    def is_whole(self, frames: Sequence[Frame]) -> bool:
        """Return whether nothing called the last of some frames, as its table says."""
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
        """Return the caller of the last frame of a walk, and give the walk its registers.

        Args:
            walk: The walk.
            row: What holds where the last frame is.
            frame: Its canonical frame address.
            top: Where the walk began.
            guessed: That address was recognized by what lies there.
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
        """Return an address in the instruction that the last of some frames is at."""
        return frames[-1].inside if len(frames) > 1 else frames[-1].address

    def _interrupted(self, walk: _Walk, top: int) -> Frame | None:
        """Return what a signal interrupted, whose handler returns to the last frame of a walk.

        All registers that it had are on the stack.
        """
        at = walk.known[self._registers.stack]
        walk.is_exact = False
        data = self._process.read(at, _CONTEXT.size)
        if self._process.machine != "x86_64" or len(data) < _CONTEXT.size:
            return None
        *values, address, blocked = _CONTEXT.unpack_from(data)
        if not self._is_code(address):
            return None
        # A handler that does not ask for more is not told its signal where it could be read. The
        # signal is blocked while the handler runs.
        since = walk.blocked() & ~blocked
        signal = since.bit_length() if since.bit_count() == 1 else UNKNOWN_SIGNAL
        walk.blocked = lambda: blocked
        walk.known.clear()
        walk.origin.clear()
        walk.known.update(zip(_CONTEXT_REGISTERS, values, strict=True))
        # The handler may have had a stack of its own.
        sp = walk.known[self._registers.stack]
        walk.memory = _Memory(self._process, sp)
        return Frame(address, by_table=False, stack=sp - top, signal=signal)

    def _returns(
        self, inner: int, row: Row, stack: int, memory: _Memory
    ) -> tuple[int | None, bool]:
        """Return where on a stack a return address lies, and whether that is only likely.

        Args:
            inner: A place in the function.
            row: What holds there.
            stack: Its stack pointer.
            memory: The stack.
        """
        module = self._process.map.only(inner)
        begin = row.begin + (module.bias or 0) if module is not None else 0
        at = self._returns_of(begin, row, stack, memory)
        return (self._call_of(begin, stack, memory), True) if at is None else (at, False)

    def _returns_of(self, begin: int, row: Row, stack: int, memory: _Memory) -> int | None:
        """Return where on a stack the return address of a function lies, by how it begins.

        Args:
            begin: Where the function begins.
            row: What holds where it is.
            stack: Its stack pointer.
            memory: The stack.
        """
        if self._process.machine != "x86_64" or row.register != self._registers.frame:
            return None
        size = frame_size(self._process.read(begin, CODE_SIZE))
        if not size:
            return None
        # Arguments of the call that it makes may lie below its frame.
        for at in range(stack + size - 8, stack + size + _ARGUMENTS, 8):
            address = memory.word(at)
            if address and self._is_return(address):
                called = self.called_before(address)
                if not called or self._goes_on_as(called, begin):
                    return at
        return None

    def _call_of(self, begin: int, stack: int, memory: _Memory) -> int | None:
        """Return where on a stack the return address of a call of a function lies, if it is there.

        Args:
            begin: Where the function begins.
            stack: Where to begin.
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
        """Return whether a function of x86 is another one, or jumps to it soon.

        Args:
            called: Where the function begins.
            begin: Where the other one begins.
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
        """Return what the call before an address of x86 calls; 0 where that is not in the code."""
        before = self._process.read(address - 6, 6)
        if len(before) < 6:  # noqa: PLR2004 -- a call through a word in memory
            return 0
        far = address + int.from_bytes(before[2:], "little", signed=True)
        if before[:2] == b"\xff\x15":
            return self._process.word(far)
        return self._behind_stub(far) if before[1] == 0xE8 else 0  # noqa: PLR2004

    def _behind_stub(self, address: int) -> int:
        """Return where a stub of the linker leads to; of another place, the place itself."""
        stub = _STUB.match(self._process.read(address, _STUB_SIZE))
        if stub is None:
            return address
        word = address + stub.end() + int.from_bytes(stub[1], "little", signed=True)
        return self._process.word(word)

    def _search(self, known: dict[int, int], memory: _Memory, top: int) -> Frame | None:
        """Look for a saved frame pointer with a return address behind it: the first there is."""
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
        """Look for a return address whose table leads on from there to another one.

        What was called by a function that keeps something else in the frame pointer's register
        has saved no frame pointer: a callback of the C library.
        """
        begin = known[self._registers.stack]
        for at in range(begin, begin + _SEARCHED, 8):
            address = memory.word(at)
            if address is None:
                return None
            row = self._row(address - 1) if self._is_return(address) else None
            if row is None or row.signal or row.register != self._registers.stack:
                continue
            behind = row.returns
            further = memory.word(at + 8 + row.offset + behind) if behind is not None else None
            if further is not None and self._is_return(further):
                known.clear()
                known[self._registers.stack] = at + 8
                return Frame(address, guessed=True, by_table=False, stack=at + 8 - top)
        return None

    def _is_return(self, address: int) -> bool:
        """Return whether a call stands before an address."""
        if not self._is_code(address - 1) or self._row(address - 1) is None:
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

    def _is_code(self, address: int) -> bool:
        if address not in self._code:
            self._code[address] = self._process.map.only(address) is not None
        return self._code[address]

    def _row(self, address: int) -> Row | None:
        if address not in self._rows:
            self._rows[address] = self._find_row(address)
        return self._rows[address]

    def _find_row(self, address: int) -> Row | None:
        module = self._process.map.only(address)
        if module is None:
            return None
        table = self._tables.get(module)
        if table is None:
            table = self._tables[module] = UnwindTable(self._files(module), self._registers)
        return table.row(address - (module.bias or 0))


class _Memory:
    """A stack, read a piece at a time.

    Attributes:
        words: The words that were read of it.
    """

    def __init__(self, process: Target, begin: int) -> None:
        self._process, self._begin = process, begin & ~7
        self.words: list[int] = []
        self._whole = False
        self._read(STACK)

    def word(self, address: int) -> int | None:
        """Return the word at an address of the stack, None where there is none."""
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
