"""A copy of what names an ELF file's code, in memory: not of its code, nor of what lies behind.

The file itself is not mapped: a program that is being built anew would take the ground from under
us. Nor is it read as a whole: it may be larger than the memory.
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
# Debug information may take this part of the machine's memory, and symbol tables that of it.
_SHARE, _SYMBOLS_SHARE = 4, 16


@contextmanager
def copied_names(path: Path) -> Iterator[str]:
    """Make the copy; yield a path under which it can be opened.

    Debug information that is too large for the machine is left out.

    Raises:
        OSError: The file cannot be read, or its symbol tables are too large.
        ValueError: It is no ELF file.
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
    """Return how much memory there is for this process."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return memory if limit == resource.RLIM_INFINITY else min(memory, limit)


def _pieces(elf: Elf) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Return where headers and symbol tables lie, and debug information: with unpacked sizes."""
    symbols, debug = [(at, size, size) for at, size in elf.headers()], []
    for name, at, size, unpacked in elf.contents():
        if name.startswith(_DEBUG):
            debug.append((at, size, unpacked))
        elif name in _SYMBOLS or any(part in name for part in _TABLES):
            symbols.append((at, size, unpacked))
    return symbols, debug


def _copy(elf: Elf, copy: int, begin: int, size: int) -> None:
    """Copy a piece of a file to the same place in another one."""
    for at in range(begin, begin + size, _PIECE):
        data = elf.read(at, min(_PIECE, begin + size - at))
        if not data:
            return
        os.pwrite(copy, data, at)
