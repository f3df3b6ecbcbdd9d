"""An ELF file: its identity, its links to debug files, and its variables and functions."""

from __future__ import annotations

import bisect
import lzma
import os
import struct
import zlib
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from nptltrace._files.elf import Elf, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ElfFile", "Symbol", "checksum", "open_elf"]

_DYNAMIC = struct.Struct("<QQ")
_END, _NEEDED = 0, 1  # DT_NULL, DT_NEEDED
# Bytes of a debug file. A larger file is found by its build-id only, not by its checksum.
_CHECKED_MAX = 1 << 33
_SOURCE = 4  # STT_FILE
_OBJECTS = frozenset({0, 1})  # STT_NOTYPE in assembler files, STT_OBJECT

_FUNCTIONS = frozenset({2, 10})  # STT_FUNC, STT_GNU_IFUNC
_UNPACKED_MAX = 1 << 28  # bytes of a debug file inside a file

# Address, size and name.
Symbol = tuple[int, int, str]


class ElfFile:
    """An ELF file.

    Args:
        path: The file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a 64-bit little-endian ELF file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._debug: dict[str, bytes] = {}
        self._elf = elf = Elf.open(path)
        if not elf.is_native:
            raise ValueError("not a 64-bit little-endian file")
        elf.sections  # noqa: B018 -- raises if the file ends before them

    @cached_property
    def build_id(self) -> str:
        """The build-id in hexadecimal, or empty."""
        return self._elf.build_id

    @cached_property
    def has_code(self) -> bool:
        """Whether the file has code, not only debug information."""
        return self._elf.named(".text") is not None

    @cached_property
    def debug_link(self) -> tuple[str, int] | None:
        """Name and checksum of the debug file, from `.gnu_debuglink`; or None."""
        data = self._elf.data(self._elf.named(".gnu_debuglink"))
        name = data.partition(b"\0")[0].decode("utf-8", "replace")
        if not name or "/" in name or len(data) < len(name) + 5:
            return None
        return name, int.from_bytes(data[-4:], "little")

    @cached_property
    def shared_debug_link(self) -> tuple[str, str] | None:
        """Path and build-id of the file with shared information, from `.gnu_debugaltlink`."""
        data = self._elf.data(self._elf.named(".gnu_debugaltlink"))
        name, _, build_id = data.partition(b"\0")
        return (os.fsdecode(name), build_id.hex()) if name and build_id else None

    @cached_property
    def is_split(self) -> bool:
        """Whether its debug information may be in other files (split DWARF)."""
        return self._elf.named(".debug_addr") is not None

    def debug_section(self, name: str) -> bytes:
        """Return the contents of a section of debug information, such as `info` or `str.dwo`."""
        if name not in self._debug:
            section = self._elf.named(f".debug_{name}")
            self._debug[name] = self._elf.unpacked(section) if section is not None else b""
        return self._debug[name]

    @cached_property
    def base(self) -> int:
        """The address of the first mapped byte. It is not 0 for a file at a fixed address."""
        return next((segment.vaddr for segment in self._elf.segments), 0)

    def bias(self, start: int, offset: int) -> int | None:
        """Return the load bias; see `Elf.bias`."""
        return self._elf.bias(start, offset)

    @cached_property
    def variables(self) -> list[Symbol]:
        """The variables, ordered by address, with one name each."""
        by_address: dict[int, Symbol] = {}
        for symbol, _ in self._symbols(_OBJECTS):
            known = by_address.get(symbol[0])
            # Take the name with fewer leading underscores, then the shorter name.
            if known is None or _rank(symbol[2]) < _rank(known[2]):
                by_address[symbol[0]] = symbol
        return sorted(by_address.values())

    @cached_property
    def sources(self) -> dict[int, str]:
        """Source files of variables by address, if several source files have the same name."""
        by_name: dict[str, dict[int, str]] = {}
        for (address, _, name), source in self._symbols(_OBJECTS):
            by_name.setdefault(name, {}).setdefault(address, source)
        return {
            address: source
            for places in by_name.values()
            if len(set(places.values())) > 1
            for address, source in places.items()
            if source
        }

    @cached_property
    def _functions(self) -> list[Symbol]:
        return sorted(symbol for symbol, _ in self._symbols(_FUNCTIONS))

    def function(self, address: int) -> str:
        """Return the name of the function at an address, or the empty string."""
        at = bisect.bisect_right(self._functions, (address, 2**64, "")) - 1
        start, size, name = self._functions[at] if at >= 0 else (0, 0, "")
        return name if address < start + size else ""

    def small_debug_file(self) -> bytes:
        """Return the ELF file inside `.gnu_debugdata`, or nothing.

        It has the symbols that were stripped from this file.
        """
        data = self._elf.data(self._elf.named(".gnu_debugdata"))
        try:
            return lzma.LZMADecompressor().decompress(data, _UNPACKED_MAX) if data else b""
        except (lzma.LZMAError, EOFError):
            return b""

    def _symbols(self, kinds: frozenset[int]) -> Iterator[tuple[Symbol, str]]:
        """Yield symbols of some kinds with the source file, which is empty for global symbols."""
        for name in (".symtab", ".dynsym"):
            symbols, strings = self._elf.symbols(name)
            source = ""
            for st_name, info, _, shndx, value, size in symbols:
                kind = info & 15
                if kind == _SOURCE:
                    source = text_at(strings, st_name)
                if shndx == 0 or not value or kind not in kinds or (kind == 0 and not size):
                    continue
                text = text_at(strings, st_name)
                if text:
                    yield (value, size, text), "" if info >> 4 else source

    @cached_property
    def imports(self) -> frozenset[str] | None:
        """The names that the file imports; None for a static program."""
        if not self._dynamic:
            return None
        return frozenset(name for name, (shndx, _, _) in self._dynamic.items() if not shndx)

    def exported(self, name: str) -> tuple[int, int]:
        """Return address and size of an exported symbol; zeros if there is none."""
        shndx, address, size = self._dynamic.get(name, (0, 0, 0))
        return (address, size) if shndx else (0, 0)

    @cached_property
    def _dynamic(self) -> dict[str, tuple[int, int, int]]:
        """Section, address and size of imported and exported symbols, by name."""
        symbols, strings = self._elf.symbols(".dynsym")
        return {
            text_at(strings, name): (shndx, address, size)
            for name, _, _, shndx, address, size in symbols
            if name
        }

    @cached_property
    def needed(self) -> tuple[str, ...] | None:
        """The sonames of the libraries it is linked with; None without a dynamic section."""
        section = self._elf.named(".dynamic")
        if section is None:
            return None
        data, strings = self._elf.data(section), self._elf.strings(section)
        pairs = _DYNAMIC.iter_unpack(data[: len(data) // _DYNAMIC.size * _DYNAMIC.size])
        entries = takewhile(lambda pair: pair[0] != _END, pairs)
        return tuple(text_at(strings, value) for tag, value in entries if tag == _NEEDED)

    def variable(self, address: int) -> Symbol | None:
        """Return the variable at an address, or None."""
        at = bisect.bisect_right(self.variables, (address, 2**64, "")) - 1
        # A short symbol inside a long symbol hides the long symbol: look a few symbols back.
        for number in range(at, max(at - 8, -1), -1):
            start, size, _ = self.variables[number]
            if address < start + max(size, 1):
                return self.variables[number]
        return None


def open_elf(path: Path) -> ElfFile | None:
    """Open a file; None if it is not a 64-bit little-endian ELF file, or cannot be read."""
    try:
        return ElfFile(path) if path.is_file() else None
    except (OSError, ValueError):
        return None


def _rank(name: str) -> tuple[int, int, str]:
    return len(name) - len(name.lstrip("_")), len(name), name


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file, as in `.gnu_debuglink`; -1 for a file that is too large."""
    value = 0
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > _CHECKED_MAX:
            return -1
        while piece := file.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value
