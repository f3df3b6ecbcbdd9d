"""What a file of the C library says: version, sizes of symbols, SystemTap notes."""

from __future__ import annotations

import re
import struct
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    raise NotGlibc("the C library of this system is not glibc, or lies where nobody looks")


def _is_of_this_machine(path: Path) -> bool:
    with path.open("rb") as file, Path("/proc/self/exe").open("rb") as own:
        return file.read(20)[4:20:14] == own.read(20)[4:20:14]


# ---- what the file holds ----------------------------------------------------------------------


class _Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    link: int
    entry: int


def _sections(data: bytes) -> list[_Section]:
    """Return the sections of a 64-bit little-endian ELF file; none of any other."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]
    if not rows:
        return []
    start = rows[names][4]

    def text(at: int) -> str:
        return data[start + at : data.index(b"\0", start + at)].decode()

    return [_Section(text(r[0]), r[1], r[4], r[5], r[6], r[9]) for r in rows]


def _dynamic_symbols(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield name and size of each dynamic symbol."""
    sections = _sections(data)
    for section in sections:
        if section.name == ".dynsym":
            names = sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, section.entry):
                name, _, _, _, _, size = struct.unpack_from("<IBBHQQ", data, at)
                begin = names + name
                yield data[begin : data.index(b"\0", begin)].decode(), size


def same_interface(one: Path, other: Path) -> bool:
    """Return whether two files of ld.so share their data with libc.so in the same layout."""
    shapes = [
        {name: size for name, size in _dynamic_symbols(path.read_bytes()) if name in _SHARED}
        for path in (one, other)
    ]
    return shapes[0] == shapes[1] and bool(shapes[0])


def probe_notes(path: Path) -> Counter[str]:
    """Return the SystemTap probe points that a library carries: how many of each name."""
    data = path.read_bytes()
    found: Counter[str] = Counter()
    for section in _sections(data):
        if section.name != ".note.stapsdt":
            continue
        at, end = section.offset, section.offset + section.size
        while at < end:
            name_size, size, _ = struct.unpack_from("<III", data, at)
            begin = at + 12 + (name_size + 3 & ~3)
            # three addresses, then provider, name and arguments, each ended by a zero
            _, name, _ = data[begin + 24 : begin + size].split(b"\0", 2)
            found[name.decode()] += 1
            at = begin + (size + 3 & ~3)
    return found
