"""One ELF file: its symbols by address, and its lines, read when they are first asked for."""

from __future__ import annotations

import bisect
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ElfFile", "Symbol", "build_id", "demangle"]

_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTIONS = frozenset({2, 10})  # STT_FUNC, STT_GNU_IFUNC
_OBJECTS = frozenset({0, 1, 6})  # STT_NOTYPE in assembler files, STT_OBJECT, STT_TLS
_TLS = 6

# Address, size and name.
Symbol = tuple[int, int, str]


class ElfFile:
    """The symbols and lines of a file.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a 64-bit little-endian ELF file.
    """

    def __init__(self, path: Path) -> None:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile

        self.path = path
        self._file = path.open("rb")
        try:
            self._elf: Any = ELFFile(self._file)
            if self._elf.elfclass != 64 or not self._elf.little_endian:  # noqa: PLR2004 -- bits
                raise ValueError(f"{path}: not a 64-bit little-endian file")
            self.segments: list[tuple[int, int, int, int]] = [
                (s["p_offset"], s["p_vaddr"], s["p_filesz"], s["p_memsz"])
                for s in self._elf.iter_segments("PT_LOAD")
            ]
        except (ELFError, struct.error, KeyError, UnicodeDecodeError, OverflowError) as error:
            raise ValueError(f"{path}: {error}") from error

    @cached_property
    def build_id(self) -> str:
        """Its build-id in hexadecimal, or empty."""
        try:
            for section in self._elf.iter_sections("SHT_NOTE"):
                for note in section.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
        except Exception:  # noqa: BLE001 -- a broken note is no note, whatever pyelftools makes of it
            return ""
        return ""

    def bias(self, start: int, offset: int) -> int | None:
        """Return what to add to the file's addresses when `offset` is mapped at `start`."""
        for p_offset, p_vaddr, filesz, _ in self.segments:
            page = p_offset & ~0xFFF
            if page <= offset < p_offset + max(filesz, 1):
                return start - (p_vaddr + offset - p_offset)
        return None

    def extent(self) -> tuple[int, int]:
        """Return the first address and the one behind the last."""
        starts = [vaddr for _, vaddr, _, _ in self.segments]
        ends = [vaddr + memsz for _, vaddr, _, memsz in self.segments]
        return min(starts, default=0), max(ends, default=0)

    def _symbols(self) -> Iterator[tuple[int, Symbol]]:
        """Yield (type, symbol) of both symbol tables."""
        for name in (".symtab", ".dynsym"):
            try:
                section = self._elf.get_section_by_name(name)
                if section is None or section["sh_type"] == "SHT_NOBITS":
                    continue
                strings = self._elf.get_section(section["sh_link"]).data()
                data = section.data()
            except Exception:  # noqa: BLE001, S112 -- a broken table is no table
                continue
            for st_name, info, _, shndx, value, size in _SYMBOL.iter_unpack(
                data[: len(data) // _SYMBOL.size * _SYMBOL.size]
            ):
                if shndx == 0 or not value or st_name >= len(strings):
                    continue
                end = strings.find(b"\0", st_name)
                text = strings[st_name:end].decode("utf-8", "replace")
                if text:
                    yield info & 15, (value, size, text)

    @cached_property
    def _tables(self) -> tuple[list[Symbol], list[Symbol]]:
        """Functions and objects, each sorted by address, one name an address."""
        functions: dict[int, Symbol] = {}
        objects: dict[int, Symbol] = {}
        for kind, symbol in self._symbols():
            table = functions if kind in _FUNCTIONS else objects if kind in _OBJECTS else None
            if table is None or kind == _TLS:
                continue
            if kind == 0 and not symbol[1]:
                continue
            known = table.get(symbol[0])
            # Of several names the plain one: fewer leading underscores, then shorter.
            if known is None or _rank(symbol[2]) < _rank(known[2]):
                table[symbol[0]] = symbol
        return sorted(functions.values()), sorted(objects.values())

    def function(self, address: int) -> Symbol | None:
        """Return the function an address lies in."""
        return _around(self._tables[0], address)

    def object(self, address: int) -> Symbol | None:
        """Return the variable an address lies in."""
        return _around(self._tables[1], address)

    def addresses_of(self, name: str) -> list[int]:
        """Return the addresses of all variables of that name."""
        return [symbol[0] for symbol in self._tables[1] if symbol[2] == name]

    def line(self, address: int) -> tuple[str, int] | None:
        """Return file and line of an instruction, from DWARF."""
        found: tuple[str, int] | None = self._lines.find(address)
        return found

    @cached_property
    def _lines(self) -> Any:
        from nptltrace.trace._dwarf import LineTable

        return LineTable(self._elf)

    @property
    def has_lines(self) -> bool:
        """Whether it has line tables itself."""
        return self._elf.get_section_by_name(".debug_line") is not None or (
            self._elf.get_section_by_name(".zdebug_line") is not None
        )


def _rank(name: str) -> tuple[int, int, str]:
    return len(name) - len(name.lstrip("_")), len(name), name


def _around(table: list[Symbol], address: int) -> Symbol | None:
    """Return the symbol an address lies in; one of size 0 reaches to the next."""
    at = bisect.bisect_right(table, (address, 2**64, "")) - 1
    # A short symbol inside a long one hides it: look a few back.
    for number in range(at, max(at - 8, -1), -1):
        start, size, _ = table[number]
        if address < start + size or (size == 0 and number == at) or address == start:
            return table[number]
    return None


def build_id(path: Path) -> str:
    """Return the build-id of a file, or the empty string."""
    try:
        return ElfFile(path).build_id
    except (OSError, ValueError):
        return ""


_demangler: Any = None


def demangle(name: str) -> str:
    """Return a C++ or Rust name as it was written, where the C++ library is at hand."""
    global _demangler  # noqa: PLW0603 -- found once
    if not name.startswith(("_Z", "_R")):
        return name
    import ctypes

    if _demangler is None:
        try:
            library = ctypes.CDLL("libstdc++.so.6")
            _demangler = getattr(library, "__cxa_demangle")
            _demangler.restype = ctypes.c_void_p
            _demangler.argtypes = (
                ctypes.c_char_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
            )
        except (OSError, AttributeError):
            _demangler = False
    if not _demangler:
        return name
    status = ctypes.c_int()
    pointer = _demangler(name.encode(), None, None, ctypes.byref(status))
    if not pointer:
        return name
    try:
        text = ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = (ctypes.c_void_p,)
        free(pointer)
    # Rust's older scheme ends in a hash that tells nothing.
    head, _, tail = text.rpartition("::")
    return head if len(tail) == 17 and tail[0] == "h" and head else text  # noqa: PLR2004 -- h and 16 digits
