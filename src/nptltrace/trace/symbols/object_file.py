"""One ELF file: its identity, how it is mapped, its debug link and its variables."""

from __future__ import annotations

import bisect
import struct
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nptltrace._binding.handle import own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ElfFile", "Symbol", "checksum"]

_SYMBOL = struct.Struct("<IBBHQQ")
_OBJECTS = frozenset({0, 1})  # STT_NOTYPE in assembler files, STT_OBJECT

# Address, size and name.
Symbol = tuple[int, int, str]


class ElfFile:
    """What a file says of itself.

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
        file = path.open("rb")
        own(self, file.close)
        try:
            self._elf: Any = ELFFile(file)
            if self._elf.elfclass != 64 or not self._elf.little_endian:  # noqa: PLR2004 -- bits
                raise ValueError(f"{path}: not a 64-bit little-endian file")
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

    @cached_property
    def debug_link(self) -> tuple[str, int] | None:
        """Name and checksum of its debug file, from `.gnu_debuglink`."""
        try:
            section = self._elf.get_section_by_name(".gnu_debuglink")
            data = section.data() if section is not None else b""
        except Exception:  # noqa: BLE001 -- as above
            return None
        name = data.partition(b"\0")[0].decode("utf-8", "replace")
        if not name or "/" in name or len(data) < len(name) + 5:
            return None
        return name, int.from_bytes(data[-4:], "little")

    @cached_property
    def base(self) -> int:
        """The address of its first byte that is mapped: not 0 where it cannot be moved."""
        try:
            return int(next(self._elf.iter_segments("PT_LOAD"))["p_vaddr"])
        except Exception:  # noqa: BLE001 -- as above
            return 0

    def bias(self, start: int, offset: int) -> int | None:
        """Return what to add to the file's addresses when `offset` is mapped at `start`."""
        try:
            for segment in self._elf.iter_segments("PT_LOAD"):
                at, size = segment["p_offset"], max(segment["p_filesz"], 1)
                if at & ~0xFFF <= offset < at + size:
                    return int(start - (segment["p_vaddr"] + offset - at))
        except Exception:  # noqa: BLE001 -- as above
            return None
        return None

    @cached_property
    def variables(self) -> list[Symbol]:
        """Its global variables by address, one name each."""
        found: dict[int, Symbol] = {}
        for symbol in self._objects():
            known = found.get(symbol[0])
            # Of several names the plain one: fewer leading underscores, then shorter.
            if known is None or _rank(symbol[2]) < _rank(known[2]):
                found[symbol[0]] = symbol
        return sorted(found.values())

    def _objects(self) -> Iterator[Symbol]:
        """Yield the objects of both symbol tables."""
        for name in (".symtab", ".dynsym"):
            try:
                section = self._elf.get_section_by_name(name)
                if section is None or section["sh_type"] == "SHT_NOBITS":
                    continue
                strings = self._elf.get_section(section["sh_link"]).data()
                data = section.data()
            except Exception:  # noqa: BLE001, S112 -- a broken table is no table
                continue
            whole = data[: len(data) // _SYMBOL.size * _SYMBOL.size]
            for st_name, info, _, shndx, value, size in _SYMBOL.iter_unpack(whole):
                kind = info & 15
                if shndx == 0 or not value or kind not in _OBJECTS or (kind == 0 and not size):
                    continue
                text = strings[st_name : strings.find(b"\0", st_name)].decode("utf-8", "replace")
                if text:
                    yield value, size, text

    def variable(self, address: int) -> Symbol | None:
        """Return the variable an address lies in."""
        at = bisect.bisect_right(self.variables, (address, 2**64, "")) - 1
        # A short symbol inside a long one hides it: look a few back.
        for number in range(at, max(at - 8, -1), -1):
            start, size, _ = self.variables[number]
            if address < start + max(size, 1):
                return self.variables[number]
        return None


def _rank(name: str) -> tuple[int, int, str]:
    return len(name) - len(name.lstrip("_")), len(name), name


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file, as debug links have it."""
    value = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value
