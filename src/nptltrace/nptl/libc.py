"""What a file of the C library says: version, sizes of symbols, SystemTap notes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._files.elf import Elf, notes_of, text_at
from nptltrace.errors import PttError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Libc", "NotGlibc", "installed", "probe_notes", "read_libc", "same_interface"]

_BANNER = re.compile(
    rb"GNU C Library \(([^)\n]*)\) (?:stable|development|release)[^\n]* version ([0-9.]+)\."
)
# What ld.so and libc.so share besides functions: a different size is a different layout.
_SHARED = ("_rtld_global", "_rtld_global_ro")


class NotGlibc(PttError):  # noqa: N818 -- reads as the sentence it reports
    """A file is no glibc, or there is none."""


class Libc(NamedTuple):
    """A libc.so.6.

    Attributes:
        path: The file.
        package: Its packager and version, as in `Debian GLIBC 2.36-9+deb12u14`.
        version: glibc's own version, as in `2.36`.
    """

    path: Path
    package: str
    version: str

    @property
    def distribution_version(self) -> str:
        """The version of the distribution's package, as in `2.36-9+deb12u14`; empty if unknown."""
        last = self.package.rsplit(" ", 1)[-1]
        return last if last.startswith(self.version) else ""


def read_libc(path: Path) -> Libc:
    """Return what a libc.so.6 says of itself.

    Raises:
        NotGlibc: It is none, or cannot be read.
    """
    try:
        match = _BANNER.search(path.read_bytes())
    except OSError as error:
        raise NotGlibc(f"{path}: {error.strerror}") from None
    if match is None:
        raise NotGlibc(f"{path}: not a GNU C library")
    return Libc(path, match[1].decode(), match[2].decode())


@cache
def installed() -> Libc:
    """Return the C library of the system: the one of the first dynamic program that is found.

    Raises:
        NotGlibc: The system has another C library.
    """
    places = [
        *Path("/lib").glob("*-linux-gnu/libc.so.6"),
        *map(Path, ("/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6")),
    ]
    for path in places:
        if path.is_file() and _is_of_this_machine(path):
            return read_libc(path)
    raise NotGlibc("found no glibc in the usual places of this system")


def _is_of_this_machine(path: Path) -> bool:
    with path.open("rb") as file, Path("/proc/self/exe").open("rb") as own:
        return file.read(20)[4:20:14] == own.read(20)[4:20:14]


# ---- what the file holds ----------------------------------------------------------------------


def same_interface(one: Path, other: Path) -> bool:
    """Return whether two files of ld.so share their data with libc.so in the same layout."""
    shapes = [
        {name: size for name, size in _dynamic_symbols(path) if name in _SHARED}
        for path in (one, other)
    ]
    return shapes[0] == shapes[1] and bool(shapes[0])


def probe_notes(path: Path) -> Counter[str]:
    """Return the SystemTap probe points that a library carries: how many of each name."""
    elf, names = _elf(path), Counter[str]()
    section = elf.named(".note.stapsdt") if elf is not None else None
    if elf is not None and section is not None:
        for _, _, content in notes_of(elf.data(section)):
            # three addresses, then provider, name and arguments, each ended by a zero
            _, name, _ = content[24:].split(b"\0", 2)
            names[name.decode()] += 1
    return names


def _elf(path: Path) -> Elf | None:
    """Return a file of this machine's kind, or None."""
    try:
        elf = Elf.open(path)
    except ValueError:
        return None
    return elf if elf.is_native else None


def _dynamic_symbols(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and size of each dynamic symbol."""
    elf = _elf(path)
    if elf is not None:
        symbols, strings = elf.symbols(".dynsym")
        for name, *_, size in symbols:
            yield text_at(strings, name), size
