"""Functions, lines and inlined calls of one ELF file, from debug information or the symbol table.

The `symbolic` library makes a compact table of a file; that of a large file is kept in the user's
cache, by build-id.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._cache import cache_directory, shrink
from nptltrace._dataclasses import dataclass, replace
from nptltrace.trace.symbols.elf.demangle import demangle
from nptltrace.trace.symbols.elf.display_names import display_name
from nptltrace.trace.symbols.elf.names_copy import copied_names

if TYPE_CHECKING:
    from typing import Any

    from nptltrace.trace.symbols.elf.debug_calls import DebugCalls
    from nptltrace.trace.symbols.elf.object_file import ElfFile

__all__ = ["CodeTable", "Frame", "is_foreign"]

# Tables of smaller files are made in no time.
_KEPT_FROM = 1 << 20
_NO_ADDRESS = 0xFFFF_FFFF


def is_foreign(path: str) -> bool:
    """Return whether a source file belongs to the language's own library, not to a program."""
    markers = ("/include/c++/", "/rustc/", "/rustlib/src/")
    return path.startswith(("/usr/include/", "/usr/lib/gcc/")) or any(
        marker in path for marker in markers
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """One function at a place in the code.

    Attributes:
        function: Its name, demangled, or empty.
        path: Source file as the compiler knew it, or empty.
        line: Line in it, or 0.
    """

    function: str
    path: str = ""
    line: int = 0

    @property
    def file(self) -> str:
        """The source file without its directories."""
        return self.path.rpartition("/")[2]

    @property
    def foreign(self) -> bool:
        """Whether it belongs to the language's own library, not to the program."""
        return is_foreign(self.path)

    def __str__(self) -> str:
        """Return it as `push (queue.c:30)`."""
        name = display_name(self.function)
        return f"{name} ({self.file}:{self.line})" if self.path else name


class CodeTable:
    """Finds functions and lines by address.

    Args:
        elf: The file; its table is kept if it has a build-id.
        calls: Reads debug information that the file has in others.
    """

    def __init__(self, elf: ElfFile, calls: DebugCalls | None = None) -> None:
        self._elf, self._base, self._calls = elf, elf.base, calls
        self._table = _table(elf.path, elf.build_id)

    def find(self, address: int) -> tuple[list[Frame], int]:
        """Return the functions at an address, and where the outermost begins.

        The first one is what the compiler inlined deepest; the last one is the function that
        really stands there. Without a name for the address there are none.
        """
        # The library counts from where the file begins.
        inside = address - self._base
        if self._table is None or not 0 <= inside < _NO_ADDRESS:
            return [], 0
        try:
            found = self._table.lookup(inside)
        except Exception:  # noqa: BLE001 -- broken debug information is none, whatever the library raises
            return [], 0
        frames = [Frame(demangle(f.symbol or ""), f.full_path or "", f.line) for f in found]
        if self._calls is not None and not all(f.function and f.path for f in frames):
            calls = self._calls.find(address)
            frames = [Frame(demangle(c.symbol), c.path, c.line) for c in calls] or frames
        # `dwz` moves names that several files share into one of its own, which may be missing.
        if frames and not frames[-1].function:
            frames[-1] = replace(frames[-1], function=demangle(self._elf.function(address)))
        frames = [f for f in frames[:-1] if f.function] + frames[-1:]
        start = found[-1].sym_addr + self._base if found else 0
        # A function that was inlined in part stands there twice.
        once = [f for n, f in enumerate(frames) if n + 1 == len(frames) or f != frames[n + 1]]
        return once, min(start, address)


def _table(path: Path, build_id: str) -> Any:
    """Return the table of a file: kept from the last time, or made; None where it has none."""
    from symbolic.debuginfo import Archive
    from symbolic.exceptions import SymbolicError
    from symbolic.symcache import SYMCACHE_LATEST_VERSION, SymCache

    tables: Any = SymCache  # its functions have no types

    kept = _kept(path, build_id, SYMCACHE_LATEST_VERSION)
    try:
        if kept is not None and kept.is_file():
            with suppress(SymbolicError):
                table = tables.open(str(kept))
                kept.touch()
                return table
        with copied_names(path) as copy:
            found = next(Archive.open(copy).iter_objects())
            if build_id and found.code_id not in {None, build_id}:
                return None  # it has just been replaced by another build
            made = found.make_symcache()
    except (SymbolicError, StopIteration, OSError, ValueError):
        return None
    if kept is not None:
        _keep(made, kept)
    return made


def _kept(path: Path, build_id: str, version: int) -> Path | None:
    """Return where the table of a file is kept, None for one that is not."""
    try:
        size = path.stat().st_size
    except OSError:
        return None
    cache = cache_directory("symbols")
    if cache is None or not build_id or size < _KEPT_FROM:
        return None
    # A program and its debug file share a build-id, not a size.
    return cache / f"{build_id}-{size:x}.{version}"


def _keep(table: Any, place: Path) -> None:
    """Write a table into the cache; one that cannot be written is generated again next time."""
    import tempfile

    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            table.dump_into(file)
        Path(file.name).replace(place)
        shrink(place.parent)
    except OSError:
        return
