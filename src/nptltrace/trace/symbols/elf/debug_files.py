"""Finds the files that ran, and their debug files, by build-id.

A file with another build-id is never used. A newer file of the same name gives wrong names, which
are worse than none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._binding.handle import own
from nptltrace._paths import PRELOAD
from nptltrace.trace.symbols.elf.debug_calls import DebugCalls
from nptltrace.trace.symbols.elf.object_file import checksum, open_elf

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from nptltrace.trace.code.modules import Module
    from nptltrace.trace.symbols.elf.object_file import ElfFile

__all__ = ["ModuleFiles", "environment_directories"]

_DEBUG = Path("/usr/lib/debug")
_VARIABLE = "NPTLTRACE_SYMBOLS"
# The user may name a wrong, huge directory: read at most this many files.
_FILES_MAX = 20_000


def environment_directories() -> list[Path]:
    """Return the directories that the environment names."""
    return [Path(part) for part in os.environ.get(_VARIABLE, "").split(":") if part]


class ModuleFiles:
    """Finds the files of modules, and keeps the results.

    Args:
        directories: Directories to search first, in this order.
        named: Build-ids or paths of modules with names in the trace: nobody misses their files.

    Attributes:
        remarks: A sentence for each file that is not the file that ran.
    """

    def __init__(self, directories: Sequence[Path], named: Collection[str] = ()) -> None:
        self._directories = list(directories)
        self._named = named
        self._by_id: dict[str, list[Path]] | None = None
        self._found: dict[tuple[str, str, int | None], list[ElfFile]] = {}
        self.remarks: list[str] = []

    def find(self, module: Module, began_ns: int | None) -> list[ElfFile]:
        """Return the files with names of a module, the file with the most names first.

        Args:
            module: The module.
            began_ns: When the process began, in ns of Unix time. A file without a build-id must not
                be younger.
        """
        # Without a build-id, a file may belong to one run and not to another.
        key = (module.path, module.build_id, None if module.build_id else began_ns)
        if key not in self._found:
            self._found[key] = self._find(module, began_ns)
        return self._found[key]

    def _find(self, module: Module, began_ns: int | None) -> list[ElfFile]:
        own = self._own_file(module, began_ns)
        debug = self._debug_file(module, own)
        small = _small_debug_file(own) if own is not None else None
        files = [elf for elf in (debug, small, own) if elf is not None]
        if not files:
            self._remark(module, began_ns)
        return files

    def _remark(self, module: Module, began_ns: int | None) -> None:
        """Remark why the file of a module is not used."""
        if (module.build_id or module.path) in self._named:
            return
        place = Path(module.path)
        if place.name == PRELOAD:
            return  # PTT was updated; nobody asks for the names of its tracer
        try:
            if not module.path.startswith("/") or not place.is_file():
                return
        except OSError:
            return  # the path leads through /proc of a process that has ended
        if module.build_id:
            why = "is not the file that ran (another build-id)"
        elif began_ns is None or place.stat().st_mtime_ns <= began_ns:
            return
        else:
            why = "was changed after it ran and has no build-id"
        self.remarks.append(f"{place} {why}: its names are not used")

    def _own_file(self, module: Module, began_ns: int | None) -> ElfFile | None:
        """Return the file of a module, or another copy of it, stripped or not."""
        name = module.path.rpartition("/")[2]
        candidates: list[Path] = []
        for directory in self._directories:
            if module.build_id:
                candidates += [
                    directory / module.build_id,
                    _by_build_id(directory, module.build_id),
                ]
            candidates += [directory / module.path.lstrip("/"), directory / name]
        copy = _first(candidates, module.build_id)
        if copy is None and module.build_id:
            copy = _first(self._index().get(module.build_id, ()), module.build_id)
        if (copy is not None and copy.has_code) or not module.path.startswith("/"):
            return copy
        if module.image:
            return _first([Path(module.image)], module.build_id) or copy
        place = Path(module.path)
        if not module.build_id and began_ns is not None:
            try:
                if place.stat().st_mtime_ns > began_ns:
                    return copy
            except OSError:
                return copy
        # The file from a directory may be a debug file, without code.
        return _first([place], module.build_id) or copy

    def _debug_file(self, module: Module, own: ElfFile | None) -> ElfFile | None:
        """Return the separate debug file."""
        if module.build_id:
            debug = self._with_build_id(module.build_id)
            if debug is not None and (own is None or debug.path != own.path):
                return debug
        if own is None or own.debug_link is None:
            return None
        name, crc = own.debug_link
        beside = own.path.resolve().parent
        places = [beside / name, beside / ".debug" / name]
        places += [d / name for d in self._directories]
        places += [d / str(beside).lstrip("/") / name for d in (*self._directories, _DEBUG)]
        for place in places:
            debug = _first([place], module.build_id)
            if debug is None or debug.path == own.path:
                continue
            if module.build_id or checksum(place) == crc:
                return debug
        return None

    def shared(self, elf: ElfFile) -> ElfFile | None:
        """Return the file with the information that a debug file shares with others, or None."""
        if elf.shared_debug_link is None:
            return None
        name, build_id = elf.shared_debug_link
        beside = _first([elf.path.resolve().parent / name], build_id)
        return beside or self._with_build_id(
            build_id, [directory / Path(name).name for directory in self._directories]
        )

    def _with_build_id(self, build_id: str, places: Iterable[Path] = ()) -> ElfFile | None:
        """Return the debug file with a build-id: from its usual places, or from other places."""
        usual = [
            _by_build_id(directory / part, build_id, ".debug")
            for directory in (*self._directories, _DEBUG)
            for part in ("", ".build-id")
        ]
        return _first([*usual, *places, *self._index().get(build_id, ())], build_id)

    def calls(self, elf: ElfFile) -> DebugCalls | None:
        """Return a reader of a file's debug information in other files; None if there is none."""
        shared = self.shared(elf)
        if shared is None and not elf.is_split:
            return None
        return DebugCalls(elf, shared, self._directories)

    def _index(self) -> dict[str, list[Path]]:
        """Return the ELF files below the user's directories, by build-id."""
        if self._by_id is None:
            self._by_id = {}
            files = (p for directory in self._directories for p in sorted(directory.rglob("*")))
            for _, path in zip(range(_FILES_MAX), files, strict=False):
                if (elf := open_elf(path)) is not None and elf.build_id:
                    self._by_id.setdefault(elf.build_id, []).append(path)
        return self._by_id


def _first(places: Iterable[Path], build_id: str) -> ElfFile | None:
    """Return the first file with a build-id, or None."""
    for place in places:
        elf = open_elf(place)
        if elf is not None and elf.build_id == build_id:
            return elf
    return None


def _small_debug_file(elf: ElfFile) -> ElfFile | None:
    """Return the debug file inside a stripped file, unpacked into memory, or None."""
    data = elf.small_debug_file()
    if not data:
        return None
    fd = os.memfd_create("debug file", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    elf_in_memory = open_elf(Path(f"/proc/self/fd/{fd}"))
    if elf_in_memory is None:
        os.close(fd)
    else:
        own(elf_in_memory, os.close, fd)
    return elf_in_memory


def _by_build_id(directory: Path, build_id: str, suffix: str = "") -> Path:
    return directory / build_id[:2] / (build_id[2:] + suffix)
