"""The memory of HotSpot, a virtual machine of Java: fields of its structures, objects, classes.

The library has tables for debuggers with the offsets of fields (vmStructs.hpp). The garbage
collector may move objects while they are read. So each object is checked: the names of its class
and fields must be the expected texts.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["JVM", "Objects", "fields_of"]

JVM = "libjvm.so"
# The tables of fields and of types, each with the variables that hold the offsets in an entry.
_STRUCT = ("TypeNameOffset", "FieldNameOffset", "IsStaticOffset", "OffsetOffset", "AddressOffset")
_STRUCTS = ("gHotSpotVMStruct", _STRUCT)
_TYPES = ("gHotSpotVMType", ("TypeNameOffset", "SizeOffset"))
_ENTRIES = 1 << 13
_STRINGS = 1 << 23
_TEXT_MAX = 128

_SHIFTS = 31
_NAME = re.compile(rb"<(cl)?init>|[\w$/\[;.+-]{1,512}")
_CLASSES = 64
_FIELDS = 1 << 10
# A field of a class: flags, name, signature, value, and an offset with marks in its lowest bits.
_FIELD = struct.Struct("<HHHHI")
_MARKS, _OFFSET_KNOWN = 2, 1
_INTERNAL = 0x400
# The possible numbers of marks in words of ZGC (`zAddress.hpp`), and the lowest bit of the class in
# a compact object header (JEP 519).
_ZGC_MARKS, _COMPACT_SHIFT = (13, 14, 15, 16), 42
# From JDK 21 on, the fields of a class are numbers in a stream (`fieldInfo.hpp`): first the numbers
# of fields of both kinds, then of each field: name, signature, offset, access, and bits. These bits
# say that another number follows. Bytes up to the limit end a number (UNSIGNED5).
_OPTIONAL, _STREAM_MAX = (1 << 0, 1 << 2, 1 << 4), 1 << 16
_NOT_LAST, _NUMBER_MAX, _EXCESS, _DIGIT = 192, 5, 1, 6
_THREAD = "java/lang/Thread"


def fields_of(process: Target, module: Module, names: Names) -> dict[tuple[str, str], int]:
    """Return the offsets of fields, or the addresses of static fields, by type and name.

    The size of a type is under the type and an empty name.

    Args:
        process: A process that runs Java.
        module: The `libjvm.so` of the process.
        names: The names in the process.
    """
    fields = [
        (kind, field, address if static & 1 else offset)
        for kind, field, static, offset, address in _entries(process, module, names, _STRUCTS)
    ]
    sizes = [(kind, size) for kind, size in _entries(process, module, names, _TYPES)]
    texts = [at for kind, field, _ in fields for at in (kind, field)]
    strings = _Strings(process, texts + [kind for kind, _ in sizes])
    known = {(strings.at(kind), ""): size for kind, size in sizes}
    return known | {(strings.at(kind), strings.at(field)): value for kind, field, value in fields}


def _entries(
    process: Target, module: Module, names: Names, table: tuple[str, tuple[str, ...]]
) -> Iterator[list[int]]:
    """Yield the parts of each entry of a table. The first part is never 0."""
    name, parts = table
    stride, *offsets = (
        process.word(names.exported(module, f"{name}Entry{part}").start)
        for part in ("ArrayStride", *parts)
    )
    begin = process.word(names.exported(module, f"{name}s").start)
    if not begin or not stride or stride & 7:
        return
    data = process.read(begin, _ENTRIES * stride)
    for at in range(0, len(data) - stride + 1, stride):
        words = [int.from_bytes(data[at + n : at + n + 8], "little") for n in offsets]
        if not words[0]:
            return
        yield words


class _Strings:
    """Texts that are near one another, read at once.

    Args:
        process: The process.
        addresses: The addresses of the texts.
    """

    def __init__(self, process: Target, addresses: list[int]) -> None:
        self._begin = min(addresses, default=0)
        size = max(addresses, default=0) + _TEXT_MAX - self._begin
        self._data = process.read(self._begin, size) if size <= _STRINGS else b""

    def at(self, address: int) -> str:
        """Return the text at an address."""
        begin = address - self._begin
        end = self._data.find(b"\0", begin, begin + _TEXT_MAX)
        return self._data[begin:end].decode("ascii", "replace") if end >= 0 else ""


class Objects:
    """The objects of one virtual machine.

    Args:
        process: The process.
        fields: The result of `fields_of`.
    """

    def __init__(self, process: Target, fields: Mapping[tuple[str, str], int]) -> None:
        self._process, self._fields = process, fields
        self._offsets: dict[tuple[int, str], int] = {}
        self._lineages: dict[int, list[tuple[int, str]]] = {}

    def class_name(self, instance: int) -> str:
        """Return the class name of an object, as `java/lang/Object`; empty if it is not known."""
        try:
            lineage = self._lineage(instance)
        except (KeyError, struct.error):
            return ""
        return lineage[0][1] if lineage else ""

    def name_of_class(self, klass: int) -> str:
        """Return the name of the class with a structure at an address; empty if there is none."""
        try:
            return self.symbol(self._word(klass + self._fields["Klass", "_name"]))
        except (KeyError, struct.error):
            return ""

    def symbol(self, symbol: int) -> str:
        """Return a text of the virtual machine at an address, empty if there is none.

        Raises:
            struct.error: The memory cannot be read.
        """
        size = self._number(symbol + self._fields["Symbol", "_length"], "<H")
        text = self._process.read(symbol + self._fields["Symbol", "_body[0]"], size)
        return text.decode("ascii") if _NAME.fullmatch(text) else ""

    def thread(self, at: int) -> int:
        """Return the `java.lang.Thread` of a thread, 0 if it is not known.

        Args:
            at: The address of the thread's `JavaThread`.
        """
        try:
            handle = self._word(at + self._fields["JavaThread", "_threadObj"])
            # Newer versions have a handle in this field, older versions the object itself.
            for instance in (self.object_in(self._word(handle)), handle):
                if any(name == _THREAD for _, name in self._lineage(instance)):
                    return instance
        except (KeyError, struct.error):
            pass
        return 0

    def reference(self, instance: int, owner: str, name: str) -> int:
        """Return the object that a field refers to; 0 if it is null or not known.

        Args:
            instance: The object with the field.
            owner: The class that declares the field, as `java/lang/Thread`.
            name: The field.
        """
        try:
            klass = next((k for k, known in self._lineage(instance) if known == owner), 0)
            if not klass:
                return 0
            if (klass, name) not in self._offsets:
                self._offsets[klass, name] = self._offset(klass, name)
            offset = self._offsets[klass, name]
            return self._referred(instance + offset) if offset else 0
        except (KeyError, struct.error):
            return 0

    def _lineage(self, instance: int) -> list[tuple[int, str]]:
        """Return the class of an object and its superclasses, each with its name."""
        first = klass = self._class(instance)
        lineage: list[tuple[int, str]] = []
        while first not in self._lineages:
            name = self.symbol(self._word(klass + self._fields["Klass", "_name"])) if klass else ""
            if not name or len(lineage) == _CLASSES:
                self._lineages[first] = lineage
                break
            lineage.append((klass, name))
            klass = self._word(klass + self._fields["Klass", "_super"])
        return self._lineages[first]

    def _offset(self, klass: int, name: str) -> int:
        """Return the offset of a field in objects of a class, 0 if it is not known.

        Raises:
            KeyError: The version describes fields in another way.
        """
        known = self._fields
        pool = self._word(klass + known["InstanceKlass", "_constants"])
        constants = pool + known["ConstantPool", ""]
        if ("InstanceKlass", "_fieldinfo_stream") in known:
            return next(
                (
                    offset
                    for name_index, offset in self._described(klass)
                    if self.symbol(self._word(constants + 8 * name_index)) == name
                ),
                0,
            )
        described = self._word(klass + known["InstanceKlass", "_fields"])
        count = self._number(klass + known["InstanceKlass", "_java_fields_count"], "<H")
        at = described + known["Array<u2>", "_data"]
        data = self._process.read(at, min(count, _FIELDS) * _FIELD.size)
        for flags, name_index, _, _, packed in _FIELD.iter_unpack(
            data[: len(data) // _FIELD.size * _FIELD.size]
        ):
            if flags & _INTERNAL or not packed & _OFFSET_KNOWN:
                continue
            if self.symbol(self._word(constants + 8 * name_index)) == name:
                return int(packed >> _MARKS)
        return 0

    def _described(self, klass: int) -> Iterator[tuple[int, int]]:
        """Yield the number of the name, and the offset, of each field that a class declares.

        JDK 21 and newer versions have these numbers.
        """
        stream = self._word(klass + self._fields["InstanceKlass", "_fieldinfo_stream"])
        size = min(self._number(stream), _STREAM_MAX)
        numbers = _numbers(self._process.read(stream + self._fields["Array<u1>", "_data"], size))
        count = min(next(numbers, 0), _FIELDS)
        next(numbers, 0)
        for _ in range(count):
            name, _, offset, _, bits = (next(numbers, 0) for _ in range(5))
            for _ in filter(bits.__and__, _OPTIONAL):
                next(numbers, 0)
            if not name:
                return
            yield name, offset

    def _referred(self, at: int) -> int:
        """Return the object of a reference at an address."""
        known, kind = self._fields, "CompressedOops"
        prefix = "_narrow_oop." if (kind, "_narrow_oop._base") in known else ""
        base = self._word(known[kind, f"{prefix}_base"])
        shift = self._number(known[kind, f"{prefix}_shift"]) & _SHIFTS
        narrow = self._number(at)
        instance = base + (narrow << shift) if narrow else 0
        if not base and not shift:  # the reference may be an uncompressed word
            instance = self.object_in(self._word(at)) or (
                instance if self.class_name(instance) else 0
            )
        return instance

    def object_in(self, word: int) -> int:
        """Return the object that a word refers to, 0 if there is none.

        The lowest bits of a word of the collector ZGC are marks.
        """
        instances = (word >> marks for marks in (0, *_ZGC_MARKS))
        return next((at for at in instances if at and self.class_name(at)), 0)

    def _class(self, instance: int) -> int:
        """Return the class of an object, 0 if it is not known."""
        base, shift = self._class_scale
        narrow = self._number(instance + self._fields["oopDesc", "_metadata._compressed_klass"])
        compact = self._word(instance + self._fields["oopDesc", "_mark"]) >> _COMPACT_SHIFT
        classes = (base + (number << shift) for number in (narrow, compact) if number)
        return next((klass for klass in classes if self.name_of_class(klass)), 0)

    @cached_property
    def _class_scale(self) -> tuple[int, int]:
        """The base and the shift of compressed references to classes."""
        known, kind = self._fields, "CompressedKlassPointers"
        prefix = "_narrow_klass." if (kind, "_narrow_klass._base") in known else ""
        shift = self._number(known[kind, f"{prefix}_shift"]) & _SHIFTS
        return self._word(known[kind, f"{prefix}_base"]), shift

    def _word(self, address: int) -> int:
        return self._number(address, "<Q")

    def _number(self, address: int, layout: str = "<I") -> int:
        size = struct.calcsize(layout)
        return int(struct.unpack(layout, self._process.read(address, size))[0])


def _numbers(data: bytes) -> Iterator[int]:
    """Yield the numbers in some bytes (UNSIGNED5 of HotSpot). A zero ends them."""
    value = count = 0
    for byte in data:
        if not byte:
            return
        value += (byte - _EXCESS) << _DIGIT * count
        count += 1
        if byte < _NOT_LAST or count == _NUMBER_MAX:
            yield value
            value = count = 0
