"""Attributes of Python objects, read from the memory of CPython 3.8 to 3.15 (x86-64)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LOCALS", "PythonObjects"]

# The offset of the local variables in a frame, by minor version.
LOCALS = {8: 360, 9: 360, 10: 352, 11: 72, 12: 72, 13: 72, 14: 80, 15: 80}
# In an object: its type. In a type: the size of its objects, flags, the offset of an object's dict.
_TYPE, _BASIC_SIZE, _FLAGS, _DICT_AT = 8, 32, 168, 288
# In a dict: the keys, and the values if several dicts share the keys.
_KEYS, _VALUES = 32, 40
# In a type: the keys of its objects. Before an object: its dict and its values.
_CACHED_KEYS = {11: 872, 12: 880, 13: 880, 14: 880, 15: 888}
_DICT_AT_MAX = 1 << 20
_DICT_BEFORE, _VALUES_BEFORE = -24, -32
_INLINE_VALUES, _INLINE_BEGIN, _MANAGED = 1 << 2, 8, 1 << 4
_SHARED_SINCE, _TAGGED, _INLINE_SINCE = 11, 12, 13
# The head of keys: older versions have the size as a number, newer versions as a power of 2.
_OLD_HEAD, _NEW_HEAD = struct.Struct("<8xQ16xQ"), struct.Struct("<8xBBB5x8xQ")
_GENERAL, _ENTRY, _SHORT_ENTRY = 0, 24, 16
_KEYS_MAX, _PAIR = 4096, struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class PythonObjects:
    """The objects of an interpreter.

    Attributes:
        minor: The minor version of Python 3.
        read: Reads memory: `read(address, size)`.
    """

    minor: int
    read: Callable[[int, int], bytes]

    def attributes(self, address: int) -> Iterator[tuple[int, int]]:
        """Yield the addresses of the names and values of an object's attributes.

        Raises:
            struct.error: The memory cannot be read.
        """
        keys, values = self._of_object(address)
        if keys:
            yield from self._pairs(keys, values)

    def items(self, address: int) -> Iterator[tuple[int, int]]:
        """Yield the addresses of the keys and values of a dict.

        Raises:
            struct.error: The memory cannot be read.
        """
        yield from self._pairs(*self._of_dict(address))

    def _pairs(self, keys: int, values: int) -> Iterator[tuple[int, int]]:
        """Yield the keys that have a value, and the values."""
        for number, (key, unshared) in enumerate(self._entries(keys)):
            value = self._word(values + 8 * number) if values else unshared
            if key and value:
                yield key, value

    def _word(self, address: int) -> int:
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def _entries(self, keys: int) -> Iterator[tuple[int, int]]:
        """Yield each key of a dict, with its value if no other dict shares the keys."""
        if self.minor < _SHARED_SINCE:
            slots, count = _OLD_HEAD.unpack(self.read(keys, _OLD_HEAD.size))
            width = next(bytes_ for bytes_ in (1, 2, 4, 8) if slots < 1 << 8 * bytes_)
            at, entry, key_at = keys + _OLD_HEAD.size + slots * width, _ENTRY, 8
        else:
            _, log2_indices, kind, count = _NEW_HEAD.unpack(self.read(keys, _NEW_HEAD.size))
            entry, key_at = (_ENTRY, 8) if kind == _GENERAL else (_SHORT_ENTRY, 0)
            at = keys + _NEW_HEAD.size + (1 << min(log2_indices, 16))
        size = min(count, _KEYS_MAX) * entry
        data = self.read(at, size)
        for begin in range(key_at, size, entry):
            yield _PAIR.unpack_from(data, begin)

    def _of_dict(self, address: int) -> tuple[int, int]:
        """Return the address of a dict's keys, and of its values or 0 if they are with the keys."""
        values = self._word(address + _VALUES)
        head = _INLINE_BEGIN if values and self.minor >= _INLINE_SINCE else 0
        return self._word(address + _KEYS), values + head

    def _of_object(self, address: int) -> tuple[int, int]:
        """Return the addresses of the keys and values of an object's attributes."""
        kind = self._word(address + _TYPE)
        if self.minor < _SHARED_SINCE:
            return self._of_dict(self._word(address + self._word(kind + _DICT_AT)))
        if not self._word(kind + _FLAGS) & _MANAGED:
            at = self._word(kind + _DICT_AT)
            return self._of_dict(self._word(address + at)) if 0 < at < _DICT_AT_MAX else (0, 0)
        return self._managed(address, kind)

    def _managed(self, address: int, kind: int) -> tuple[int, int]:
        """Return the same for an object with a managed dict: it exists only after its first use."""
        dict_ = self._word(address + _DICT_BEFORE)
        keys = self._word(kind + _CACHED_KEYS[self.minor])
        if self.minor == _TAGGED and dict_ & 1:
            return keys, dict_ + 1
        if dict_:
            return self._of_dict(dict_)
        if self.minor < _INLINE_SINCE:
            return keys, self._word(address + _VALUES_BEFORE)
        if not self._word(kind + _FLAGS) & _INLINE_VALUES:
            return 0, 0
        return keys, address + self._word(kind + _BASIC_SIZE) + _INLINE_BEGIN
