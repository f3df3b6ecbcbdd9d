"""Whether a static program uses some functions of the C library, by the references in its code.

A static program has no list of imports. It contains functions of the library, and some of these
call others. For example, abort() calls sigaction() and is in every program.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from nptltrace._files.elf import Elf, text_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

__all__ = ["refers_to"]

_FUNCTIONS = frozenset({2, 10})  # STT_FUNC and STT_GNU_IFUNC
# Functions of glibc that call such functions, but not for handlers of the program.
_OF_THE_LIBRARY = frozenset({"abort", "do_system", "__profil"})


def refers_to(path: Path, functions: Collection[str]) -> bool | None:
    """Return whether code or data of a program refers to functions, except code of the C library.

    Args:
        path: A static program of x86-64.
        functions: The names of the functions.

    Returns:
        None if the program has no symbols.
    """
    elf = Elf.open(path)
    known = sorted(_functions_of(elf))
    if not known:
        return None
    wanted = {address for address, name in known if name in functions}
    code = elf.named(".text")
    if not wanted or code is None:
        return bool(wanted)
    # A function may have several names. The code refers to the address, not to a name.
    names: dict[int, set[str]] = {}
    for address, name in known:
        names.setdefault(address, set()).add(name)
    begins = sorted(names)
    for at in _callers(elf.data(code), code.address, wanted):
        caller = names[begins[max(bisect_right(begins, at) - 1, 0)]]
        if caller.isdisjoint(functions) and caller.isdisjoint(_OF_THE_LIBRARY):
            return True
    pieces = [elf.loaded(segment) for segment in elf.segments]
    return any(address.to_bytes(4, "little") in piece for address in wanted for piece in pieces)


def _functions_of(elf: Elf) -> Iterator[tuple[int, str]]:
    """Yield address and name of each function."""
    symbols, strings = elf.symbols(".symtab")
    for name, info, _, shndx, value, _ in symbols:
        if shndx and info & 15 in _FUNCTIONS:
            yield value, text_at(strings, name)


def _callers(code: bytes, base: int, wanted: Collection[int]) -> Iterator[int]:
    """Yield the addresses of operands that refer to a wanted address, relative to their end."""
    for first in range(4):
        words = memoryview(code)[first : first + (len(code) - first) // 4 * 4].cast("i")
        end = base + first + 4
        for number, word in enumerate(words):  # in total, one turn for each byte of the program
            if end + 4 * number + word in wanted:
                yield base + first + 4 * number
