"""Copies the symbols and debug information of an ELF file into memory, without its code.

The file is not mapped: if a build truncates the file meanwhile, a mapping raises SIGBUS. The file
is not read as a whole: it may be larger than the memory.
"""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nptltrace._files.elf import Elf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["copied_names"]

_SYMBOLS = frozenset({".symtab", ".strtab", ".dynsym", ".dynstr", ".dynamic", ".shstrtab"})
_TABLES = ("note", ".hash", ".gnu.hash", ".gnu.version")
_DEBUG = (".debug_", ".zdebug_", ".gnu_debug")
_PIECE = 1 << 20
# Debug information may take 1/4 of the machine's memory, and symbol tables 1/16.
_SHARE, _SYMBOLS_SHARE = 4, 16


@contextmanager
def copied_names(path: Path) -> Iterator[str]:
    """Copy a file, and yield the path of the copy. The copy lasts as long as the block.

    Debug information is left out if it is too large for the machine.

    Raises:
        OSError: The file cannot be read, or its symbol tables are too large.
        ValueError: The file is not an ELF file.
    """
    elf = Elf.open(path)
    symbols, debug = _pieces(elf)
    memory = _memory()
    if sum(size for *_, size in symbols) > memory // _SYMBOLS_SHARE:
        raise OSError(f"{path}: its symbol tables are too large")
    fits = sum(size for *_, size in debug) <= memory // _SHARE
    copy = os.memfd_create("ptt names")
    try:
        for at, size, _ in (*symbols, *(debug if fits else ())):
            _copy(elf, copy, at, size)
        yield f"/proc/self/fd/{copy}"
    finally:
        os.close(copy)


def _memory() -> int:
    """Return the memory that this process can have, in bytes."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return memory if limit == resource.RLIM_INFINITY else min(memory, limit)


def _pieces(elf: Elf) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Return (offset, size, unpacked size) of headers and symbol tables, and of debug sections."""
    symbols, debug = [(at, size, size) for at, size in elf.headers()], []
    for name, at, size, unpacked in elf.contents():
        if name.startswith(_DEBUG):
            debug.append((at, size, unpacked))
        elif name in _SYMBOLS or any(part in name for part in _TABLES):
            symbols.append((at, size, unpacked))
    return symbols, debug


def _copy(elf: Elf, copy: int, begin: int, size: int) -> None:
    """Copy a piece of a file to the same offset of the copy."""
    for at in range(begin, begin + size, _PIECE):
        data = elf.read(at, min(_PIECE, begin + size - at))
        if not data:
            return
        os.pwrite(copy, data, at)
