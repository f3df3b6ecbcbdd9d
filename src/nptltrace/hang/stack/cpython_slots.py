"""What frames of CPython have in their slots: local variables, and what `with` statements leave."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.stack.cpython_objects import LOCALS, PythonObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.hang.stack.cpython import InsideFrame, Pythons

__all__ = ["Entered", "Slots"]

# In a code object the names that it uses, and its table of handlers; the number and names of its
# variables. Up to 3.10 a function's own variables and the shared variables stand apart.
_NAMES, _HANDLERS, _ALL_NAMES = {8: 64, 9: 64, 10: 64}, 40, 96
_NAMES_NEW, _ALL = 32, {11: 76}
_ALL_NEW = 72
_OWN, _OWN_NAMES, _SHARED_NAMES = 28, 72, (88, 80)
# In a frame up to 3.10 its stack, how many blocks it is in, and the blocks, each with a level.
_STACK, _BLOCKS = 64, {8: 112, 9: 112, 10: 104}
_FIRST_BLOCK, _BLOCK, _LEVEL = 8, 12, 8
_BLOCKS_MAX = 20
_HANDLERS_SINCE, _TWO_SLOTS_SINCE = 11, 14
_GLOBALS, _GLOBALS_NEW = {8: 48, 9: 48, 10: 48, 11: 8}, 24
# In a tuple its size and its first item; in a cell what is in it, and in a bound method its object.
_SIZE, _ITEMS, _ITEMS_NEW, _CONTENT, _BOUND = 16, 24, 32, 16, 24
_CELL, _REF_MARKS = "cell", 3
_SLOTS_MAX, _TABLE_MAX = 1000, 1 << 16
_BYTES_SIZE, _BYTES = 16, 32
# Numbers have digits, from 3.12 on with bits beside their size.
_DIGIT_BITS, _DIGITS_MAX, _SIZE_BITS, _TAGGED_SIZE_SINCE = 30, 4, 3, 12
# In a code object how large the stack of the function may be.
_STACK_SIZE, _STACK_SIZE_NEW = {8: 32, 9: 32, 10: 32, 11: 68}, 64


class Entered(NamedTuple):
    """An object whose `with` statement a function is in.

    Attributes:
        object: Where it is.
        kind: The name of its class.
    """

    object: int
    kind: str


class _Code(NamedTuple):
    """The parts of a code object that slots depend on.

    Attributes:
        slots: How many variables it has.
        handlers: (first instruction, the one behind, depth) of its handlers, from 3.11 on.
        names: The names that it uses, without the names of its variables.
    """

    slots: int
    handlers: tuple[tuple[int, int, int], ...]
    names: frozenset[str]


class Slots:
    """The slots of frames of Python functions.

    All methods raise `struct.error` where the memory cannot be read.

    Args:
        read: Reads memory.
        pythons: Whose frames they are.
    """

    def __init__(self, read: Callable[[int, int], bytes], pythons: Pythons) -> None:
        self._read, self._pythons = read, pythons
        self._codes: dict[int, _Code] = {}

    def word(self, address: int) -> int:
        """Return a word of memory."""
        return int(struct.unpack("<Q", self._read(address, 8))[0])

    def number(self, address: int) -> int:
        """Return a number of 32 bits."""
        return int(struct.unpack("<i", self._read(address, 4))[0])

    def integer(self, frame: InsideFrame, address: int) -> int:
        """Return the value of an `int` of up to 120 bits.

        Args:
            frame: A frame of the same interpreter.
            address: The number.
        """
        size = self.word(address + _SIZE)
        size = size >> _SIZE_BITS if frame.minor >= _TAGGED_SIZE_SINCE else size
        digits = (self.number(address + _ITEMS + 4 * n) for n in range(min(size, _DIGITS_MAX)))
        return sum(digit << _DIGIT_BITS * n for n, digit in enumerate(digits))

    def releases(self, frame: InsideFrame) -> bool:
        """Return whether a function itself may give a lock back: it uses the name `release`."""
        return "release" in self.names(frame)

    def names(self, frame: InsideFrame) -> frozenset[str]:
        """Return the names that a function uses, without the names of its variables."""
        return self._code(frame).names

    def first(self, frame: InsideFrame) -> int:
        """Return the first variable of a frame: of a method its object."""
        return self._object(self.word(frame.address + LOCALS[frame.minor]))

    def entered(self, frame: InsideFrame) -> Iterator[Entered]:
        """Yield the objects whose `with` statements a function is in, the outermost first.

        A statement whose `__enter__` has not returned does not count.
        """
        base, depth = self._stack(frame)
        if not 0 < depth <= _SLOTS_MAX:
            return
        slots = [self._object(self.word(base + 8 * number)) for number in range(depth)]
        for number, slot in enumerate(slots):
            kind = self._pythons.kind_of(slot) if slot else ""
            if frame.minor < _TWO_SLOTS_SINCE:
                is_bound = kind in {"method", "builtin_function_or_method"}
                if is_bound and "__exit__" in self._pythons.function_name(slot):
                    bound = self.word(slot + _BOUND)
                    yield Entered(bound, self._pythons.kind_of(bound))
            elif kind in {"function", "method_descriptor"} and slots[number + 1 : number + 2] > [0]:
                yield Entered(slots[number + 1], self._pythons.kind_of(slots[number + 1]))

    def variables(self, frame: InsideFrame) -> Iterator[tuple[str, int]]:
        """Yield names and objects of the variables of a function."""
        at = frame.address + LOCALS[frame.minor]
        for number, name in enumerate(self._variable_names(frame)):
            value = self._object(self.word(at + 8 * number))
            if value and self._pythons.kind_of(value) == _CELL:
                value = self._object(self.word(value + _CONTENT))
            if value and name:
                yield name, value

    def shared(self, frame: InsideFrame) -> Iterator[tuple[str, int]]:
        """Yield names and objects of the variables of its module that a function uses."""
        names = self._code(frame).names
        module = self.word(frame.address + _GLOBALS.get(frame.minor, _GLOBALS_NEW))
        for key, value in PythonObjects(frame.minor, self._read).items(module):
            if (name := self._pythons.text(key)) in names:
                yield name, value

    def on_stack(self, frame: InsideFrame) -> Iterator[int]:
        """Yield objects that may be on the stack of a function, and the objects of methods there.

        Objects that are no longer there are still found, as are objects that are freed.
        """
        base, _ = self._stack(frame)
        if frame.minor < _HANDLERS_SINCE:
            base = self.word(frame.address + _STACK)
        size = self.number(frame.code + _STACK_SIZE.get(frame.minor, _STACK_SIZE_NEW))
        data = self._read(base, 8 * min(size, _SLOTS_MAX))
        for (slot,) in struct.iter_unpack("<Q", data):
            address = self._object(slot)
            try:
                kind = self._pythons.kind_of(address)
                yield address
                if kind == "builtin_function_or_method":
                    yield self.word(address + _BOUND)
            except struct.error:
                continue

    def attributes(self, frame: InsideFrame, address: int) -> Iterator[tuple[str, int]]:
        """Yield names and objects of the attributes of an object.

        Args:
            frame: A frame of the same interpreter.
            address: The object.
        """
        for key, value in PythonObjects(frame.minor, self._read).attributes(address):
            yield self._pythons.text(key), value

    def _object(self, slot: int) -> int:
        return slot & ~_REF_MARKS

    def _stack(self, frame: InsideFrame) -> tuple[int, int]:
        """Return where a function has its stack, and how much of that surely is in use."""
        if frame.minor < _HANDLERS_SINCE:
            at = frame.address + _BLOCKS[frame.minor]
            blocks = self.number(at)
            if not 0 < blocks <= _BLOCKS_MAX:
                return 0, 0
            level = self.number(at + _FIRST_BLOCK + (blocks - 1) * _BLOCK + _LEVEL)
            return self.word(frame.address + _STACK), level
        code = self._code(frame)
        depths = (depth for first, end, depth in code.handlers if first <= frame.at // 2 < end)
        return frame.address + LOCALS[frame.minor] + 8 * code.slots, next(depths, 0)

    def _code(self, frame: InsideFrame) -> _Code:
        code = self._codes.get(frame.code)
        if code is None:
            names = self._texts(self.word(frame.code + _NAMES.get(frame.minor, _NAMES_NEW)), frame)
            slots = self.number(frame.code + _OWN)
            handlers: tuple[tuple[int, int, int], ...] = ()
            if frame.minor >= _HANDLERS_SINCE:
                slots = self.number(frame.code + _ALL.get(frame.minor, _ALL_NEW))
                table = self.word(frame.code + _HANDLERS)
                size = min(self.word(table + _BYTES_SIZE), _TABLE_MAX)
                handlers = tuple(_handlers(self._read(table + _BYTES, size)))
            code = self._codes[frame.code] = _Code(slots, handlers, frozenset(names))
        return code

    def _variable_names(self, frame: InsideFrame) -> list[str]:
        if frame.minor >= _HANDLERS_SINCE:
            return self._texts(self.word(frame.code + _ALL_NAMES), frame)
        return [
            name
            for at in (_OWN_NAMES, *_SHARED_NAMES)
            for name in self._texts(self.word(frame.code + at), frame)
        ]

    def _texts(self, address: int, frame: InsideFrame) -> list[str]:
        size = min(self.word(address + _SIZE), _SLOTS_MAX)
        items = address + (_ITEMS_NEW if frame.minor >= _TWO_SLOTS_SINCE else _ITEMS)
        return [self._pythons.text(self.word(items + 8 * number)) for number in range(size)]


def _handlers(table: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the first instruction, that behind the last one, and the depth of handlers."""
    read = 0
    numbers: list[int] = []
    while read < len(table):
        value = table[read] & 63
        while table[read] & 64 and read + 1 < len(table):
            read += 1
            value = value << 6 | table[read] & 63
        read += 1
        numbers.append(value)
    for first, size, _, depth in zip(*[iter(numbers)] * 4, strict=False):
        yield first, first + size, depth >> 1
