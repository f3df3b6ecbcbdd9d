"""The slots of frames of CPython: local variables, and the objects of `with` statements."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.stack.cpython_objects import LOCALS, PythonObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.hang.stack.cpython import InsideFrame, Pythons

__all__ = ["Entered", "Slots"]

# Offsets by minor version. A name with `_NEW` is for all later versions.
# In a code object: the names that it uses, the table of handlers, and the number and names of its
# variables. Up to 3.10, local variables and cell variables have separate names.
_NAMES, _HANDLERS, _ALL_NAMES = {8: 64, 9: 64, 10: 64}, 40, 96
_NAMES_NEW, _ALL = 32, {11: 76}
_ALL_NEW = 72
_LOCAL, _LOCAL_NAMES, _CELL_NAMES = 28, 72, (88, 80)
# In a frame up to 3.10: the stack, the number of blocks, and the blocks, each with a stack level.
_STACK, _BLOCKS = 64, {8: 112, 9: 112, 10: 104}
_FIRST_BLOCK, _BLOCK, _LEVEL = 8, 12, 8
_BLOCKS_MAX = 20
_HANDLERS_SINCE, _TWO_SLOTS_SINCE = 11, 14
_GLOBALS, _GLOBALS_NEW = {8: 48, 9: 48, 10: 48, 11: 8}, 24
# In a tuple: size and first item. In a cell: the content. In a bound method: the object.
_SIZE, _ITEMS, _ITEMS_NEW, _CONTENT, _BOUND = 16, 24, 32, 16, 24
_CELL, _REF_MARKS = "cell", 3
_SLOTS_MAX, _TABLE_MAX = 1000, 1 << 16
_BYTES_SIZE, _BYTES = 16, 32
# An `int` has digits. From 3.12 on, the size has flags in its lowest bits.
_DIGIT_BITS, _DIGITS_MAX, _SIZE_BITS, _TAGGED_SIZE_SINCE = 30, 4, 3, 12
# In a code object: the largest size of the stack.
_STACK_SIZE, _STACK_SIZE_NEW = {8: 32, 9: 32, 10: 32, 11: 68}, 64


class Entered(NamedTuple):
    """The object of a `with` statement that a function is in.

    Attributes:
        object: The address of the object.
        kind: The name of its class.
    """

    object: int
    kind: str


class _Code(NamedTuple):
    """The parts of a code object that describe the slots of its frames.

    Attributes:
        slots: The number of variables.
        handlers: The first instruction, the instruction after the last, and the stack depth of
            each handler; empty before 3.11.
        names: The names that the code uses, without the names of its variables.
    """

    slots: int
    handlers: tuple[tuple[int, int, int], ...]
    names: frozenset[str]


class Slots:
    """The slots of frames of Python functions.

    All methods raise `struct.error` if the memory cannot be read.

    Args:
        read: Reads memory: `read(address, size)`.
        pythons: The functions of Python in the process.
    """

    def __init__(self, read: Callable[[int, int], bytes], pythons: Pythons) -> None:
        self._read, self._pythons = read, pythons
        self._codes: dict[int, _Code] = {}

    def word(self, address: int) -> int:
        """Return the 8-byte word at an address."""
        return int(struct.unpack("<Q", self._read(address, 8))[0])

    def number(self, address: int) -> int:
        """Return the signed 32-bit number at an address."""
        return int(struct.unpack("<i", self._read(address, 4))[0])

    def integer(self, frame: InsideFrame, address: int) -> int:
        """Return the value of an `int` of up to 120 bits.

        Args:
            frame: A frame of the same interpreter.
            address: The address of the `int`.
        """
        size = self.word(address + _SIZE)
        size = size >> _SIZE_BITS if frame.minor >= _TAGGED_SIZE_SINCE else size
        digits = (self.number(address + _ITEMS + 4 * n) for n in range(min(size, _DIGITS_MAX)))
        return sum(digit << _DIGIT_BITS * n for n, digit in enumerate(digits))

    def names(self, frame: InsideFrame) -> frozenset[str]:
        """Return the names that a function uses, without the names of its variables."""
        return self._code(frame).names

    def first(self, frame: InsideFrame) -> int:
        """Return the first variable of a frame, which is `self` in a method."""
        return self._object(self.word(frame.address + LOCALS[frame.minor]))

    def entered(self, frame: InsideFrame) -> Iterator[Entered]:
        """Yield the objects of the `with` statements that a function is in, the outermost first.

        A statement counts after its `__enter__` has returned.
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
        """Yield names and objects of the global variables that a function uses."""
        names = self._code(frame).names
        module = self.word(frame.address + _GLOBALS.get(frame.minor, _GLOBALS_NEW))
        for key, value in PythonObjects(frame.minor, self._read).items(module):
            if (name := self._pythons.text(key)) in names:
                yield name, value

    def on_stack(self, frame: InsideFrame) -> Iterator[int]:
        """Yield the objects on the stack of a function, and the objects of bound methods there.

        The result may contain objects that were removed from the stack or freed.
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
        """Return the address of a function's stack, and the number of surely used slots."""
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
            slots = self.number(frame.code + _LOCAL)
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
            for at in (_LOCAL_NAMES, *_CELL_NAMES)
            for name in self._texts(self.word(frame.code + at), frame)
        ]

    def _texts(self, address: int, frame: InsideFrame) -> list[str]:
        size = min(self.word(address + _SIZE), _SLOTS_MAX)
        items = address + (_ITEMS_NEW if frame.minor >= _TWO_SLOTS_SINCE else _ITEMS)
        return [self._pythons.text(self.word(items + 8 * number)) for number in range(size)]


def _handlers(table: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the handlers of an exception table, as in `_Code`.

    The table has varints of 6 bits in each byte (InternalDocs/exception_handling.md of CPython).
    """
    at = 0
    numbers: list[int] = []
    while at < len(table):
        value = table[at] & 63
        while table[at] & 64 and at + 1 < len(table):
            at += 1
            value = value << 6 | table[at] & 63
        at += 1
        numbers.append(value)
    for first, size, _, depth in zip(*[iter(numbers)] * 4, strict=False):
        yield first, first + size, depth >> 1
