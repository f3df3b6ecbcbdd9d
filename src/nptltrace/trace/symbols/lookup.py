"""Names addresses: functions, lines, inlined calls and global variables.

Names come from the trace (`ptt bundle`), and from the files that a process had mapped or their
debug files, found by build-id. An address without a name is `module+0x…`.
"""

from __future__ import annotations

import re
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nptltrace._dataclasses import dataclass, replace
from nptltrace._escaping import readable
from nptltrace.catalog import DOMAINS
from nptltrace.trace.code.call_site import ENTRY, address_of_site, is_entry
from nptltrace.trace.code.modules import ModuleMap
from nptltrace.trace.code.python_code import (
    code_and_offset,
    is_python,
    named_object,
    numbered_objects,
)
from nptltrace.trace.objects.chosen import Chosen
from nptltrace.trace.objects.gils import is_of_runtime, name_of_part, place_of_part
from nptltrace.trace.passed_over import PassedOver
from nptltrace.trace.symbols.alias import Aliases
from nptltrace.trace.symbols.bundle import Bundles, Code, Key
from nptltrace.trace.symbols.elf.code import CodeTable, Frame
from nptltrace.trace.symbols.elf.debug_files import ModuleFiles, environment_directories
from nptltrace.trace.symbols.elf.demangle import demangle
from nptltrace.trace.symbols.elf.display_names import display_name
from nptltrace.trace.symbols.frames import chosen_sites, site_uses
from nptltrace.trace.symbols.location import Location
from nptltrace.trace.symbols.python_locks import PythonLocks

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from nptltrace.trace.code.modules import Mapped, Module
    from nptltrace.trace.objects.python_objects import PythonObjects
    from nptltrace.trace.objects.semaphores import Semaphores
    from nptltrace.trace.symbols.elf.object_file import ElfFile
    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses
    from nptltrace.trace.thread_naming import ThreadNaming

__all__ = ["Processes", "Symbols"]

# A variable and its source file: several source files have a variable of this name.
_OF_SOURCE = re.compile(r"(.+) \(([^():]+)\)")


class Trace(Protocol):
    """A trace that may carry names."""

    @property
    def path(self) -> Path:
        """Its directory."""


class Processes(Protocol):
    """The processes of a traceset, or a running process.

    Attributes:
        notes: `Symbols` sets it to the list of remarks about files, which grows later.
    """

    notes: list[str]

    @property
    def traces(self) -> Sequence[Trace]:
        """The traces."""

    @property
    def processes(self) -> Sequence[Mapped]:
        """The processes by number."""

    def trace_of(self, process: int) -> int:
        """Return the number of the trace of a process."""

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Choose the call sites of events from their stacks."""

    @property
    def thread_ids(self) -> list[tuple[int, int]]:
        """(process, tid) of the threads by number."""

    @property
    def names(self) -> ThreadNaming | None:
        """Names the threads; None without events."""

    @property
    def python(self) -> PythonObjects | None:
        """The objects of Python interpreters; None without events."""


@dataclass(slots=True)
class _Loaded:
    """A module in a process, with its load bias."""

    module: Module
    bias: int
    began_ns: int | None

    @property
    def name(self) -> str:
        return readable(self.module.path.rpartition("/")[2])

    @property
    def identity(self) -> str:
        return self.module.build_id or self.module.path


class Symbols:
    """Names addresses of all processes of a traceset.

    Args:
        source: The opened traces, or a running process.
        aliases: Names by the user, which take precedence over symbol tables.
        directories: Directories to search first for files, by build-id or by name. The directories
            of the environment come next.
        passed_over: The rule that passes over frames; None for the built-in rule.
        environment: Whether to search the directories that the environment names.
        sites: Whether to choose the call sites of events from their stacks. To choose, PTT must
            name all frames of all stacks.

    Attributes:
        aliases: As given.
        passed_over: As given.
    """

    def __init__(
        self,
        source: Processes,
        aliases: Aliases | None = None,
        directories: Sequence[str | os.PathLike[str]] = (),
        passed_over: PassedOver | None = None,
        *,
        environment: bool = True,
        sites: bool = True,
    ) -> None:
        self._source = source
        self.aliases = aliases or Aliases()
        self.passed_over = passed_over or PassedOver()
        named = environment_directories() if environment else []
        self._bundles = Bundles(trace.path for trace in source.traces)
        self._files = ModuleFiles([*map(Path, directories), *named], self._bundles.modules)
        source.notes = self._files.remarks
        self._tables: dict[Path, CodeTable] = {}
        self._loaded: dict[tuple[int, Module], _Loaded] = {}
        self._locations: dict[tuple[int, int], Location] = {}
        self._locks: tuple[Semaphores, PythonLocks] | None = None
        if sites:
            source.choose_sites(partial(chosen_sites, self), partial(site_uses, self))

    def of(self, source: Processes) -> Symbols:
        """Return a copy for the same traces, opened once more. Both share tables of files."""
        same = copy(self)
        same._source = source  # noqa: SLF001 -- of this class
        same._loaded, same._locations = {}, {}  # noqa: SLF001 -- as above
        same._locks = None  # noqa: SLF001 -- as above
        source.choose_sites(partial(chosen_sites, same), partial(site_uses, same))
        return same

    # ---- questions ----

    def location(self, process: int, site: int) -> Location:
        """Return the location of a call site.

        Args:
            process: Number of the process in the traceset.
            site: The call site, as in columns. For a return address, the result is the line of the
                call before it. For an entry, it is the first line of the function.
        """
        known = self._locations.get((process, site))
        if known is None:
            known = self._locations[process, site] = self._locate(process, site)
        return known

    def site_name(self, process: int, site: int) -> str:
        """Return the name of a call site, or the empty string."""
        place = self.location(process, site)
        # The name of a function is enough for its entry.
        if is_entry(site) and place.function and not place.offset:
            return display_name(place.function)
        frames = [(frame.function, place.module) for frame in place.inlined]
        first = self.passed_over.first([*frames, (place.function, place.module)])
        return str(replace(place, inlined=place.inlined[first:]) if first else place)

    def named(self) -> dict[str, Location]:
        """Return the locations of the call sites that were named so far, by name."""
        return {str(place): place for place in self._locations.values() if place.module}

    def code_name(self, process: int, address: int) -> str:
        """Return the name of a function by its address, or the empty string."""
        return self.site_name(process, address | ENTRY)

    def object_name(
        self, process: int, address: int, domain: int = 0, at_ns: int | None = None
    ) -> str:
        """Return the name of an object: a global variable, or a lock of Python or Java.

        Args:
            process: Number of the process.
            address: Address of the object.
            domain: Kind of the object, as a number of `DOMAINS`; 0 for a variable.
            at_ns: A time in the life of the object; None for all objects at the address.

        Returns:
            The name, or the empty string.
        """
        alias = self.aliases.addresses.get(address)
        if alias is not None:
            return alias
        processes = self._source.processes
        codes = processes[process].codes if process < len(processes) else {}
        name = named_object(codes, address) or self.variable(process, address)[1]
        if not name or is_of_runtime(name):
            name = name_of_part(self.gils(process), address) or name
        locks = self.python_locks() if not name and domain == DOMAINS["sem"] else None
        return locks.name(process, address, at_ns) if locks is not None else name

    def gils(self, process: int) -> tuple[int, ...]:
        """Return the addresses of the GILs of a process; see `objects.gils.find_gils`."""
        python = self._source.python
        return () if python is None else python.gils(process)

    def python_locks(self) -> PythonLocks | None:
        """Return the names of locks of Python; None without Python or without events."""
        source = self._source
        if source.python is None or source.names is None:
            return None
        semaphores = source.python.semaphores()
        if semaphores is None:
            return None
        if self._locks is None or self._locks[0] is not semaphores:
            locks = PythonLocks(
                self, source.processes, source.thread_ids, source.names.of, semaphores
            )
            self._locks = semaphores, locks
        return self._locks[1]

    def variable(self, process: int, address: int) -> tuple[Key | None, str]:
        """Return the key of an address, and the name of the variable there or the empty string.

        The key is None if no module has the address, or several modules had it.
        """
        module = self._map(process).only(address)
        if module is None:
            return None, ""
        loaded = self._load(process, module)
        at = address - loaded.bias
        key = Key(loaded.identity, "variable", at)
        for elf in self._files.find(loaded.module, loaded.began_ns):
            symbol = elf.variable(at)
            if symbol is not None:
                start, _, name = symbol
                alias, source = self.aliases.symbols.get(name), elf.sources.get(start)
                text = (alias or demangle(name)) + (f"+{at - start:#x}" if at > start else "")
                return key, f"{text} ({source})" if source and not alias else text
        known = self._bundled(process, key) or ""
        return key, self.aliases.symbols.get(str(known)) or str(known)

    def find_object(self, name: str) -> list[tuple[int, int]]:
        """Return (process, address) of all objects with a name or alias.

        For Java, the name is the name of an object or the name of its class.
        """
        return list(dict.fromkeys((c.process, c.address) for c in self.choose_object(name)))

    def choose_object(self, name: str) -> list[Chosen]:
        """Return all objects with a name or alias, each with the time of this name."""
        plain, source = _name_and_source(name)
        plain, _, offset = plain.partition("+")
        addresses, symbols = self.aliases.find(name)
        wanted = {plain, *symbols}
        places: dict[tuple[int, int], None] = {}
        for number, process in enumerate(self._source.processes):
            for address in (*numbered_objects(process.codes, name), *addresses):
                places[number, address] = None
            for module in process.map.modules():
                loaded = self._load(number, module)
                for at in self._addresses_of(number, loaded, wanted, source):
                    shift = loaded.bias + (int(offset, 16) if offset else 0)
                    places[number, at + shift] = None
        if not places:
            for number in range(len(self._source.processes)):
                part = place_of_part(self.gils(number), name)
                if part is not None:
                    places[number, part] = None
        locks = self.python_locks() if not places else None
        return locks.find(name) if locks is not None else [Chosen(*place) for place in places]

    def object_names(self) -> list[str]:
        """Return names for `find_object`: aliases, locks of Python, variables of programs."""
        names = dict.fromkeys([*self.aliases.addresses.values(), *self.aliases.symbols.values()])
        locks = self.python_locks()
        if locks is not None:
            names |= dict.fromkeys(locks.all_names())
        for number, process in enumerate(self._source.processes):
            for module in islice(process.map.modules(), 1):
                for elf in self.files(number, module):
                    names |= dict.fromkeys(demangle(name) for _, _, name in elf.variables)
        return list(names)

    def ranges(self, process: int) -> list[tuple[int, int]]:
        """Return begin and end of the modules of a process, without overlaps."""
        return self._map(process).ranges()

    def forget(self) -> None:
        """Forget results from lists of modules, since the lists were read again."""
        self._loaded.clear()
        self._locations.clear()

    # ---- finding ----

    def _locate(self, process: int, site: int) -> Location:
        if is_python(site):
            return self._in_python(process, site)
        loaded = self._module_at(process, site)
        if loaded is None:
            return Location()
        at, entry = address_of_site(site) - loaded.bias, is_entry(site)
        bundled = self._bundled(process, Key(loaded.identity, "code" if entry else "site", at))
        known = _from_bundle(at, bundled) if isinstance(bundled, Code) else Location()
        if known.file:
            return known
        # A call may be the last instruction of a function: then its return address is outside.
        place = self._look_up(loaded, at, at if entry else at - 1)
        return place if place.function or not known.function else known

    def _in_python(self, process: int, site: int) -> Location:
        number, instruction = code_and_offset(site)
        code = self._source.processes[process].codes.get(number)
        if code is None:
            return Location()
        return Location(
            code.path, function=code.function, file=code.path.rpartition("/")[2],
            line=code.line(instruction), path=code.path, python=True,
        )  # fmt: skip

    def _bundled(self, process: int, key: Key) -> Code | str | None:
        """Return the name of an address in the trace of a process."""
        return self._bundles.get(self._source.trace_of(process), key) if self._bundles else None

    def _look_up(self, loaded: _Loaded, at: int, inside: int) -> Location:
        """Look up an address in files, the file with the most names first."""
        frames: list[Frame] = []
        start = at
        for elf in self._files.find(loaded.module, loaded.began_ns):
            if elf.path not in self._tables:
                self._tables[elf.path] = CodeTable(elf, self._files.calls(elf))
            frames, start = self._tables[elf.path].find(inside)
            if frames:
                break
        last = frames[-1] if frames else Frame("")
        return Location(
            loaded.name, at, loaded.module.build_id, last.function, at - start if frames else 0,
            last.file, last.line, last.path, tuple(frames[:-1]),
        )  # fmt: skip

    def _addresses_of(
        self, process: int, loaded: _Loaded, names: set[str], source: str
    ) -> list[int]:
        """Return the addresses of variables with these names, of one source file unless empty."""
        files = self._files.find(loaded.module, loaded.began_ns)
        addresses = [a for elf in files for a, _, name in elf.variables if name in names]
        if not addresses:
            addresses = [a for a, name in _mangled(files, names) if demangle(name) in names]
        if source:
            addresses = [a for a in addresses if any(elf.sources.get(a) == source for elf in files)]
        if self._bundles:
            bundled = self._bundles.of_module(self._source.trace_of(process), loaded.identity)
            for key, value in bundled:
                name, its_source = _name_and_source(str(value))
                if name in names and source in {"", its_source}:
                    addresses.append(key.offset)
        return addresses

    def files(self, process: int, module: Module) -> list[ElfFile]:
        """Return the files that have the names of a module."""
        return self._files.find(module, self._load(process, module).began_ns)

    def caller(self, process: int, address: int, site: int) -> int | None:
        """Return the call site of an address in a stack; see `ModuleMap.caller`."""
        return self._map(process).caller(address, site)

    def module_at(self, process: int, site: int) -> Module | None:
        """Return the module of a call site or of another address, or None."""
        loaded = self._module_at(process, site)
        return loaded.module if loaded is not None else None

    def _module_at(self, process: int, site: int) -> _Loaded | None:
        module = self._map(process).at(site)
        return None if module is None else self._load(process, module)

    def _map(self, process: int) -> ModuleMap:
        processes = self._source.processes
        return processes[process].map if process < len(processes) else ModuleMap([])

    def _load(self, process: int, module: Module) -> _Loaded:
        """Return a module with its load bias."""
        known = self._loaded.get((process, module))
        if known is None:
            began = self._source.processes[process].start_unix_ns
            bias = module.bias
            if bias is None:
                files = self._files.find(module, began)
                biases = (elf.bias(module.start, module.offset) for elf in files)
                bias = next((b for b in biases if b is not None), module.start - module.offset)
            known = self._loaded[process, module] = _Loaded(module, bias, began)
        return known


def _name_and_source(name: str) -> tuple[str, str]:
    """Return the name of a variable, and its source file or the empty string."""
    match = _OF_SOURCE.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _mangled(files: Sequence[ElfFile], names: set[str]) -> list[tuple[int, str]]:
    """Return (address, mangled name) of the variables that may have these names."""
    # A mangled name contains the last word of the name.
    words = [parts[-1] for name in names if (parts := re.findall(r"\w+", name))]
    return [
        (address, name)
        for elf in files
        for address, _, name in elf.variables
        if name.startswith(("_Z", "_R")) and any(word in name for word in words)
    ]


def _from_bundle(at: int, code: Code) -> Location:
    """Return the location of a code address from the names in the trace."""
    last = code.frames[-1]
    return Location(
        code.module, at, code.build_id, last.function, code.offset, last.file, last.line, last.path,
        code.frames[:-1],
    )  # fmt: skip
