"""Writes a shared object with stubs for the functions of the user's locks.

The object is preloaded before the tracer, so programs call its stubs. Each stub puts its number
into a register that no call uses for an argument, and jumps to the tracer. The tracer looks up the
real function behind the stub. No compiler is needed: this module writes the ELF file byte by byte.

    page 0   headers, strings, symbols, their hash table, relocations
    page 1   the stubs
    page 2   the dynamic section, addresses in the tracer, and the structs of lock_function.h

Addresses are equal to offsets in the file. There are no sections.
"""

from __future__ import annotations

import ctypes
import platform
import struct

from nptltrace import _paths
from nptltrace._binding.headers import lock_function as c
from nptltrace._dataclasses import dataclass
from nptltrace.catalog import DOMAINS
from nptltrace.errors import PttError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.recording.settings.locks import LockFunction, Locks

__all__ = ["lock_library"]

_PAGE = 0x10000  # the largest of any processor that is known here
_TRACER_ENTRY, _TRACER_DLSYM = b"__nptl_trace_lock_entry", b"__nptl_trace_dlsym"
_TABLE = b"__nptl_trace_locks"
_WORD, _SYMBOL, _RELOCATION, _SEGMENT = 8, 24, 24, 56
_STRINGS = 64 + 5 * _SEGMENT  # offset of the strings
_GOT = 2 * _PAGE + 16 * 12  # behind the dynamic section
_ENTRIES = _GOT + 2 * _WORD
_ENTRY_SIZE = ctypes.sizeof(c.LockFunction)
_DATA, _CODE = 1 << 4 | 1, 1 << 4 | 2  # global, and an object or a function
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1


@dataclass(frozen=True)
class _Processor:
    """The parts of the object that depend on the processor.

    Attributes:
        machine: Number of the processor in the ELF header.
        relative: Type of the relocation that adds the base address.
        address: Type of the relocation that stores the address of a symbol.
        stub: Returns the code of a stub, from its address, the address of the pointer to the
            tracer, and its number.
        jump: Returns the code of a jump, from its address and the address of the pointer.
        size: Room for a stub or a jump, in bytes.
    """

    machine: int
    relative: int
    address: int
    stub: Callable[[int, int, int], bytes]
    jump: Callable[[int, int], bytes]
    size: int


def _x86_64_jump(at: int, target: int) -> bytes:
    return b"\xf3\x0f\x1e\xfa" + b"\xff\x25" + struct.pack("<i", target - at - 10)  # endbr64; jmp *


def _x86_64_stub(at: int, target: int, number: int) -> bytes:
    load = b"\xf3\x0f\x1e\xfa\x41\xbb" + struct.pack("<I", number)  # endbr64; mov number, %r11d
    return load + b"\xff\x25" + struct.pack("<i", target - at - len(load) - 6)


def _aarch64_jump(at: int, target: int, before: tuple[int, ...] = ()) -> bytes:
    """Jump through x17: a `bti c` landing pad at the target allows this register."""
    pages = (target >> 12) - (at + 4 * (1 + len(before)) >> 12)
    load = (
        0x90000011 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5,  # adrp x17, target
        0xF9400231 | (target & 0xFFF) // _WORD << 10,  # ldr x17, [x17, target]
        0xD61F0220,  # br x17
    )
    return struct.pack(f"<{4 + len(before)}I", 0xD503245F, *before, *load)  # bti c


def _aarch64_stub(at: int, target: int, number: int) -> bytes:
    return _aarch64_jump(at, target, (0x52800010 | number << 5,))  # mov w16, number


_PROCESSORS = {
    "x86_64": _Processor(62, 8, 6, _x86_64_stub, _x86_64_jump, 16),
    "aarch64": _Processor(183, 1027, 1025, _aarch64_stub, _aarch64_jump, 32),
}


def lock_library(locks: Locks) -> str:
    """Return the path of the shared object for the user's locks; write it if it does not exist.

    Raises:
        PttError: There is no directory for it, or the processor is not supported.
    """
    processor = _PROCESSORS.get(platform.machine())
    if processor is None:
        raise PttError(f"--locks knows x86_64 and aarch64, not {platform.machine()}")
    return _paths.private_library("locks", _shared_object(locks, processor))


def _shared_object(locks: Locks, processor: _Processor) -> bytes:
    count, size = len(locks.functions), processor.size
    # The stubs for linked calls, then the stubs that dlsym() returns.
    linked = range(_PAGE + size, _PAGE + size * (1 + count), size)
    asked = range(linked.stop, linked.stop + size * count, size)
    code = [processor.jump(_PAGE, _GOT + _WORD)]
    code += [processor.stub(at, _GOT, c.PTT_LOCK_GIVEN + n) for n, at in enumerate(linked)]
    code += [processor.stub(at, _GOT, c.PTT_LOCK_ASKED + n) for n, at in enumerate(asked)]
    text = b"".join(piece.ljust(size, b"\0") for piece in code)

    symbols = [(_TRACER_ENTRY, _CODE, 0, 0), (_TRACER_DLSYM, _CODE, 0, 0)]
    symbols += [(_TABLE, _DATA, 2, _ENTRIES), (b"dlsym", _CODE, 1, _PAGE)]
    symbols += [
        (f.name.encode(), _CODE, 1, at) for f, at in zip(locks.functions, linked, strict=True)
    ]
    strings, packed, named = bytearray(b"\0"), bytearray(_SYMBOL), []
    for name, what, page, address in symbols:
        packed += struct.pack("<IBBHQQ", len(strings), what, 0, page, address, 0)
        named.append(_STRINGS + len(strings))
        strings += name + b"\0"

    relocations = [(_GOT + _WORD * n, 1 + n << 32 | processor.address, 0) for n in range(2)]
    relocations += [
        (place, processor.relative, address)
        for place, address in _pointers(locks, named[-count:], asked)
    ]
    parts = (
        bytes(strings),
        bytes(packed),
        _hash_table([b"", *(name for name, *_ in symbols)]),
        b"".join(struct.pack("<QQQ", *relocation) for relocation in relocations),
    )
    places = [_STRINGS]
    for part in parts:
        places.append(places[-1] + -(-len(part) // _WORD) * _WORD)
    if places[-1] > _PAGE:
        raise PttError("the names of the functions of --locks are too long")
    dynamic = (
        (5, places[0]), (10, len(strings)), (6, places[1]), (11, _SYMBOL), (4, places[2]),
        (7, places[3]), (8, len(parts[3])), (9, _RELOCATION), (0, 0),
    )  # fmt: skip
    data = b"".join(struct.pack("<QQ", *entry) for entry in dynamic)
    data = data.ljust(_ENTRIES - 2 * _PAGE, b"\0")
    data += b"".join(bytes(_described(function)) for function in locks.functions)
    data += bytes(_ENTRY_SIZE + _WORD * len(locks.types))

    first = bytearray(_headers(processor.machine, places[-1], len(text), len(data)))
    for at, part in zip(places, parts, strict=False):
        first += bytes(at - len(first)) + part
    return bytes(first).ljust(_PAGE, b"\0") + text.ljust(_PAGE, b"\0") + data


def _pointers(
    locks: Locks, names: Sequence[int], stubs: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield (address, value) of the pointers in the descriptions of functions."""
    fields, only = c.LockFunction, _ENTRIES + _ENTRY_SIZE * (len(locks.functions) + 1)
    for n, function in enumerate(locks.functions):
        entry = _ENTRIES + _ENTRY_SIZE * n
        pointers = {"name": names[n], "stub": stubs[n]}
        if not function.argument:
            pointers["only"] = only + _WORD * function.type
        for field, address in pointers.items():
            yield entry + int(getattr(fields, field).offset), address


def _described(function: LockFunction) -> c.LockFunction:
    """Return the description of a function for the tracer, without its pointers."""

    def place(number: int | None) -> int:
        return c.PTT_LOCK_NONE if number is None else number

    def argument(number: int) -> int:
        return number - 1 if number else c.PTT_LOCK_NONE

    words = {"does": function.does, "result": function.taken}
    return c.LockFunction(
        domain=DOMAINS[function.like],
        type=c.PTT_LOCK_TYPE_GIVEN + function.type,
        object=argument(function.argument),
        mutex=argument(function.mutex),
        try_with=place(function.try_with),
        limit=argument(function.limit),
        needs=place(function.needs),
        **{
            field: getattr(c, f"PTT_LOCK_{word.upper().replace('-', '_')}")
            for field, word in words.items()
        },
    )


def _hash_table(names: list[bytes]) -> bytes:
    """Return the hash table of symbols (System V ABI, chapter 5); symbol 0 is undefined."""
    buckets, chains = [0] * len(names), [0] * len(names)
    for number, name in enumerate(names[3:], start=3):  # symbols 1 and 2 belong to the tracer
        value = 0
        for byte in name:
            value = (value << 4) + byte
            value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
        bucket = value % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    sizes = len(buckets), len(chains)
    return struct.pack(f"<{2 + sum(sizes)}I", *sizes, *buckets, *chains)


def _headers(machine: int, first: int, code: int, data: int) -> bytes:
    """Return the ELF header and the segments, from the number of bytes in each of the 3 pages."""
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 64, 0, 0, 64, _SEGMENT, 5, 64, 0, 0
    )
    segments = (
        (_LOAD, _READ, 0, first, _PAGE),
        (_LOAD, _READ | _EXECUTE, _PAGE, code, _PAGE),
        (_LOAD, _READ | _WRITE, 2 * _PAGE, data, _PAGE),
        (_DYNAMIC, _READ | _WRITE, 2 * _PAGE, _GOT - 2 * _PAGE, _WORD),
        (_STACK, _READ | _WRITE, 0, 0, 16),
    )
    return header + b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, align)
        for kind, flags, at, size, align in segments
    )
