"""Files of the C library: version, sizes of symbols, SystemTap notes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nptltrace._files.elf import Elf, notes_of, text_at
from nptltrace.errors import PttError

__all__ = ["Libc", "NotGlibc", "installed", "probe_notes", "read_libc", "same_interface"]

_BANNER = re.compile(
    rb"GNU C Library \(([^)\n]*)\) (?:stable|development|release)[^\n]* version ([0-9.]+)\."
)
# The data that ld.so and libc.so share. If a size differs, the layout differs.
_SHARED = ("_rtld_global", "_rtld_global_ro")


class NotGlibc(PttError):  # noqa: N818 -- reads as the sentence it reports
    """A file is no glibc, or the system has no glibc."""


class Libc(NamedTuple):
    """A libc.so.6.

    Attributes:
        path: The file.
        package: Packager and version, as in `Debian GLIBC 2.36-9+deb12u14`.
        version: The version of glibc, as in `2.36`.
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
    """Read package and version from a libc.so.6.

    Raises:
        NotGlibc: The file is no glibc, or it cannot be read.
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
    """Return the C library of the system: the first libc.so.6 of this machine's architecture.

    Raises:
        NotGlibc: The system has another C library.
    """
    paths = [
        *Path("/lib").glob("*-linux-gnu/libc.so.6"),
        *map(Path, ("/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6")),
    ]
    for path in paths:
        if path.is_file() and _architecture(path) == _architecture(Path("/proc/self/exe")):
            return read_libc(path)
    raise NotGlibc("found no glibc in the usual places of this system")


def _architecture(path: Path) -> bytes:
    """Return the class (32 or 64 bits) and the low byte of the machine from an ELF header."""
    with path.open("rb") as file:
        return file.read(20)[4:20:14]


def same_interface(built: Path, system: Path) -> bool:
    """Return whether two files of ld.so share data with libc.so in the same layout."""
    sizes = _shared_sizes(built)
    return bool(sizes) and sizes == _shared_sizes(system)


def _shared_sizes(path: Path) -> dict[str, int]:
    """Return the sizes of the shared data, by name."""
    elf = _elf(path)
    if elf is None:
        return {}
    symbols, strings = elf.symbols(".dynsym")
    sizes = {text_at(strings, name): size for name, *_, size in symbols}
    return {name: sizes[name] for name in _SHARED if name in sizes}


def probe_notes(path: Path) -> Counter[str]:
    """Return the names of a library's SystemTap probe points, with the number of each."""
    elf, names = _elf(path), Counter[str]()
    section = elf.named(".note.stapsdt") if elf is not None else None
    if elf is not None and section is not None:
        for _, _, content in notes_of(elf.data(section)):
            # Three addresses, then provider, name and arguments, each with a zero at the end.
            _, name, _ = content[24:].split(b"\0", 2)
            names[name.decode()] += 1
    return names


def _elf(path: Path) -> Elf | None:
    """Return the ELF file at a path; None for another file or another architecture."""
    try:
        elf = Elf.open(path)
    except ValueError:
        return None
    return elf if elf.is_native else None
