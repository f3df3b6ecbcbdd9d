"""Functions, lines and inlined calls of one ELF file, from debug information or the symbol table.

The library `symbolic` makes a compact table of a file. Tables of large files are kept in the user's
cache, by build-id.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, replace
from nptltrace._files.cache import cache_directory, shrink
from nptltrace.trace.symbols.elf.demangle import demangle
from nptltrace.trace.symbols.elf.display_names import display_name
from nptltrace.trace.symbols.elf.names_copy import copied_names

if TYPE_CHECKING:
    from typing import Any

    from nptltrace.trace.symbols.elf.debug_calls import DebugCalls
    from nptltrace.trace.symbols.elf.object_file import ElfFile

__all__ = ["CodeTable", "Frame", "is_foreign"]

# Size of a file, in bytes. Tables of smaller files take no time to make.
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
    """A function at a place in the code.

    Attributes:
        function: Demangled name of the function, or empty.
        path: Source file as the compiler knew it, or empty.
        line: Source line, or 0.
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
        """Whether its source is in the language's own library, not in the program."""
        return is_foreign(self.path)

    def __str__(self) -> str:
        """Return a text such as `push (queue.c:30)`."""
        name = display_name(self.function)
        return f"{name} ({self.file}:{self.line})" if self.path else name


class CodeTable:
    """Finds functions and lines by address.

    Args:
        elf: The file. Its table is kept if the file is large and has a build-id.
        calls: Reads debug information of the file in other files; None if there is none.
    """

    def __init__(self, elf: ElfFile, calls: DebugCalls | None = None) -> None:
        self._elf, self._base, self._calls = elf, elf.base, calls
        self._table = _table(elf.path, elf.build_id)

    def find(self, address: int) -> tuple[list[Frame], int]:
        """Return the functions at an address, and the address of the outermost function.

        The first function is the deepest inlined function. The last is the function that is not
        inlined. Without a name for the address, there are no functions.
        """
        # The library counts from the first mapped byte of the file.
        inside = address - self._base
        if self._table is None or not 0 <= inside < _NO_ADDRESS:
            return [], 0
        try:
            rows = self._table.lookup(inside)
        except Exception:  # noqa: BLE001 -- the library raises anything for damaged information
            return [], 0
        frames = [Frame(demangle(f.symbol or ""), f.full_path or "", f.line) for f in rows]
        if self._calls is not None and not all(f.function and f.path for f in frames):
            calls = self._calls.find(address)
            frames = [Frame(demangle(c.symbol), c.path, c.line) for c in calls] or frames
        # `dwz` moves the names that several files share into another file, which may be missing.
        if frames and not frames[-1].function:
            frames[-1] = replace(frames[-1], function=demangle(self._elf.function(address)))
        frames = [f for f in frames[:-1] if f.function] + frames[-1:]
        start = rows[-1].sym_addr + self._base if rows else 0
        # A function that is partly inlined appears twice.
        once = [f for n, f in enumerate(frames) if n + 1 == len(frames) or f != frames[n + 1]]
        return once, min(start, address)


def _table(path: Path, build_id: str) -> Any:
    """Return the table of a file, from the cache or a new one; None if there is none."""
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
            file = next(Archive.open(copy).iter_objects())
            if build_id and file.code_id not in {None, build_id}:
                return None  # another build has just replaced the file
            table = file.make_symcache()
    except (SymbolicError, StopIteration, OSError, ValueError):
        return None
    if kept is not None:
        _keep(table, kept)
    return table


def _kept(path: Path, build_id: str, version: int) -> Path | None:
    """Return the path of a file's table in the cache; None for a table that is not kept."""
    try:
        size = path.stat().st_size
    except OSError:
        return None
    cache = cache_directory("symbols")
    if cache is None or not build_id or size < _KEPT_FROM:
        return None
    # A program and its debug file have the same build-id, but not the same size.
    return cache / f"{build_id}-{size:x}.{version}"


def _keep(table: Any, place: Path) -> None:
    """Write a table into the cache. If that fails, the next call makes the table again."""
    import tempfile

    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            table.dump_into(file)
        Path(file.name).replace(place)
        shrink(place.parent)
    except OSError:
        return
