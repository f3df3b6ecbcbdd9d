"""Names for addresses: functions, lines and global variables, from the files a process had mapped.

Works on another machine than the trace's own as long as the files, or debug files with the same
build-id, can be found there; where they cannot, an address is `module+0x…`.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.trace.alias import Aliases
from nptltrace.trace.elf import ElfFile, demangle

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from nptltrace.trace.info import Module, Process
    from nptltrace.trace.source import Source

__all__ = ["Location", "Symbols"]

_DEBUG_DIRS = (Path("/usr/lib/debug"),)


@dataclass(frozen=True, slots=True)
class Location:
    """What is known of a code address.

    Attributes:
        module: File name of the module, or empty.
        module_offset: Where in the module, as its own symbol table counts.
        build_id: Of the module, or empty.
        function: The function, demangled, or empty.
        offset: Bytes from its start.
        file: Source file, or empty.
        line: Source line, or 0.
    """

    module: str = ""
    module_offset: int = 0
    build_id: str = ""
    function: str = ""
    offset: int = 0
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return it as `worker+0x1c (pool.c:88)`."""
        if self.function:
            text = f"{self.function}+{self.offset:#x}"
        elif self.module:
            text = f"{self.module}+{self.module_offset:#x}"
        else:
            return ""
        if self.file:
            return f"{text} ({self.file}:{self.line})"
        return f"{text} ({self.module})" if self.function else text


@dataclass(slots=True)
class _Loaded:
    """A module as it lies in one process."""

    module: Module
    bias: int
    start: int
    end: int
    elf: ElfFile | None
    debug: ElfFile | None = field(default=None)
    looked_for_debug: bool = False


class Symbols:
    """Names addresses of all processes of a traceset.

    Args:
        source: The opened traces.
        aliases: Names that win over those of symbol tables.
        directories: Where to look first for files, by build-id or by name.
    """

    def __init__(
        self,
        source: Source,
        aliases: Aliases | None = None,
        directories: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        self._source = source
        self.aliases = aliases or Aliases()
        bundles = [trace.path / "info" / "modules" for trace in source.traces]
        self._directories = [Path(d) for d in directories] + bundles
        self._files: dict[tuple[str, str], ElfFile | None] = {}
        self._loaded: dict[int, list[_Loaded]] = {}
        self._locations: dict[tuple[int, int], Location] = {}

    # ---- questions ----

    def location(self, process: int, address: int, *, after_call: bool = True) -> Location:
        """Return what is known of a code address.

        Args:
            process: Number of the process in the traceset.
            address: The address.
            after_call: It is where a call returns to, so the line is that of the call before it.
        """
        key = (process, address if after_call else -address)
        known = self._locations.get(key)
        if known is None:
            known = self._locations[key] = self._locate(process, address, after_call)
        return known

    def site_name(self, process: int, address: int) -> str:
        """Return the name of a call site, or the empty string."""
        return str(self.location(process, address))

    def code_name(self, process: int, address: int) -> str:
        """Return the name of a function by its address, or the empty string."""
        found = self.location(process, address, after_call=False)
        if found.function and not found.offset:
            return found.function
        return str(found)

    def object_name(self, process: int, address: int) -> str:
        """Return the name of a global variable at an address, or the empty string."""
        alias = self.aliases.addresses.get(address)
        if alias is not None:
            return alias
        loaded = self._module_at(process, address)
        if loaded is None:
            return ""
        for elf in self._with_symbols(loaded):
            symbol = elf.object(address - loaded.bias)
            if symbol is not None:
                start, _, name = symbol
                text = self.aliases.symbols.get(name) or demangle(name)
                offset = address - loaded.bias - start
                return f"{text}+{offset:#x}" if offset else text
        return ""

    def find_object(self, name: str) -> list[tuple[int, int]]:
        """Return (process, address) of all global variables of that name or alias."""
        plain, _, offset = name.partition("+")
        addresses, symbols = self.aliases.find(name)
        found = [
            (process, address)
            for process in range(len(self._source.processes()))
            for address in addresses
        ]
        for process in range(len(self._source.processes())):
            for loaded in self._modules(process):
                for elf in self._with_symbols(loaded):
                    at = [a for s in (plain, *symbols) for a in elf.addresses_of(s)]
                    shift = loaded.bias + (int(offset, 16) if offset else 0)
                    found += [(process, address + shift) for address in at]
        return found

    def ranges(self, process: int) -> list[tuple[int, int]]:
        """Return where global variables and code of a process lie, without overlaps."""
        found: list[tuple[int, int]] = []
        for loaded in self._modules(process):
            if found and loaded.start < found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], loaded.end))
            else:
                found.append((loaded.start, loaded.end))
        return found

    def forget(self) -> None:
        """Drop what was derived from module lists, which have been read anew."""
        self._loaded.clear()
        self._locations.clear()

    # ---- finding ----

    def _locate(self, process: int, address: int, after_call: bool) -> Location:  # noqa: FBT001 -- private
        loaded = self._module_at(process, address)
        if loaded is None:
            return Location()
        at = address - loaded.bias
        name = loaded.module.path.rpartition("/")[2]
        function, offset = "", 0
        # Where a call is the last thing of a function, its return address is another's.
        inside = at - 1 if after_call else at
        for elf in self._with_symbols(loaded):
            symbol = elf.function(inside)
            if symbol is not None:
                function, offset = demangle(symbol[2]), at - symbol[0]
                break
        file, line = "", 0
        for elf in self._with_symbols(loaded):
            found = elf.line(inside) if elf.has_lines else None
            if found is not None:
                file, line = found
                break
        return Location(name, at, loaded.module.build_id, function, offset, file, line)

    def _module_at(self, process: int, address: int) -> _Loaded | None:
        modules = self._modules(process)
        at = bisect.bisect_right(modules, address, key=lambda loaded: loaded.start) - 1
        return modules[at] if at >= 0 and address < modules[at].end else None

    def _modules(self, process: int) -> list[_Loaded]:
        """Return the modules of a process sorted by address."""
        known = self._loaded.get(process)
        if known is None:
            processes = self._source.processes()
            known = self._load(processes[process]) if process < len(processes) else []
            self._loaded[process] = known
        return known

    def _load(self, process: Process) -> list[_Loaded]:
        """Join the mappings of each file, and find the file."""
        by_file: dict[tuple[str, str], list[Module]] = {}
        for module in process.modules:
            by_file.setdefault((module.path, module.build_id), []).append(module)
        found: list[_Loaded] = []
        for modules in by_file.values():
            first = min(modules, key=lambda module: module.start)
            start, end = first.start, max(module.end for module in modules)
            elf = self._file(first)
            bias = first.bias
            if elf is not None:
                if bias is None:
                    bias = elf.bias(first.start, first.offset)
                if bias is not None:
                    # Variables without initial value lie behind what is mapped from the file.
                    end = max(end, bias + elf.extent()[1])
            found.append(
                _Loaded(first, start - first.offset if bias is None else bias, start, end, elf)
            )
        return sorted(found, key=lambda loaded: loaded.start)

    def _with_symbols(self, loaded: _Loaded) -> Iterable[ElfFile]:
        """Yield the files to ask, the one with the most to tell first."""
        if not loaded.looked_for_debug:
            loaded.looked_for_debug = True
            loaded.debug = self._debug_file(loaded.module)
        return [elf for elf in (loaded.debug, loaded.elf) if elf is not None]

    def _file(self, module: Module) -> ElfFile | None:
        key = (module.path, module.build_id)
        if key not in self._files:
            self._files[key] = self._open(self._candidates(module), module.build_id)
        return self._files[key]

    def _candidates(self, module: Module) -> list[Path]:
        name = module.path.rpartition("/")[2]
        places = []
        for directory in self._directories:
            if module.build_id:
                places.append(directory / module.build_id)
                places.append(_by_build_id(directory, module.build_id, ""))
            places += [directory / module.path.lstrip("/"), directory / name]
        return [*places, Path(module.path)]

    def _debug_file(self, module: Module) -> ElfFile | None:
        if not module.build_id:
            return None
        places = [_by_build_id(d, module.build_id, ".debug") for d in self._directories]
        places += [
            _by_build_id(d / ".build-id", module.build_id, ".debug")
            for d in (*self._directories, *_DEBUG_DIRS)
        ]
        return self._open(places, module.build_id)

    @staticmethod
    def _open(places: Iterable[Path], wanted: str) -> ElfFile | None:
        """Return the first file that is the one meant."""
        for place in places:
            try:
                if not place.is_file():
                    continue
                elf = ElfFile(place)
            except (OSError, ValueError):
                continue
            # A newer file of the same name would give wrong names: worse than none.
            if not wanted or elf.build_id == wanted:
                return elf
        return None


def _by_build_id(directory: Path, build_id: str, suffix: str) -> Path:
    return directory / build_id[:2] / (build_id[2:] + suffix)
