"""Names for addresses in a process: functions with their lines, and global variables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from nptltrace.hang.routines import is_plumbing, routine_kind
from nptltrace.hang.stack.shown_frames import CalledLocation, GuessedLocation
from nptltrace.hang.stack.static_calls import refers_to
from nptltrace.trace.code.call_site import ENTRY
from nptltrace.trace.symbols.elf.code import Frame as CodeFrame
from nptltrace.trace.symbols.location import Location

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from nptltrace.hang.stack.stacks import Frame
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module
    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["Names", "OneProcess"]

# The modules of the C library.
_LIBRARY = ("libc.so", "libc-", "libpthread", "ld-linux")
# Modules without call sites: their functions come between the program and the system call.
_IN_FRONT = (*_LIBRARY, "[vdso]", "libnptltrace.so")


def _as(kind: type[Location], location: Location) -> Location:
    return kind(*(getattr(location, member.name) for member in fields(Location)))


class OneProcess:
    """A process in place of the processes of a traceset, for `Symbols`.

    Args:
        process: The process.

    Attributes:
        notes: Sentences about missing names.
        processes: The process alone.
        thread_ids: The threads with events: none.
    """

    traces = ()
    names = python = None  # events would fill these

    def __init__(self, process: Target) -> None:
        self.processes = [process]
        self.thread_ids: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def trace_of(self, process: int) -> int:
        """Return 0, as there is no trace."""
        del process
        return 0

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Do nothing, as there are no events with call sites."""


class Names:
    """The names in one process.

    Args:
        symbols: The symbols of a `OneProcess`.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._objects: dict[int, str] = {}
        self._sites: dict[Location, str] = {}

    def prepare(self) -> None:
        """Load the modules and the rules for wrappers, which every query needs."""
        self._symbols.variable(0, 0)
        self._symbols.passed_over("-", "-")

    def location(self, frame: Frame, *, innermost: bool) -> Location:
        """Return the location of a frame.

        Args:
            frame: The frame.
            innermost: The frame is where the thread is, not where a call returns to.
        """
        location = self._symbols.location(0, frame.inside + 1 + (innermost and not frame.signal))
        return _as(GuessedLocation, location) if frame.guessed else location

    def called(self, location: Location, address: int) -> Location:
        """Return a location in a function without a name, with the name of the called function.

        Args:
            location: The location.
            address: The address that the caller has called.
        """
        name = self.function(address)
        return _as(CalledLocation, replace(location, function=name)) if name else location

    def is_library(self, function: str, module: str) -> bool:
        """Return whether a frame is of the C library or a wrapper, and so is no call site.

        A static program contains the C library, so the name of the function decides, too.

        Args:
            function: The function of the frame, or empty.
            module: The file name of the module, or empty. For a function of Python, the path of
                its source.
        """
        return (
            module.startswith(_IN_FRONT)
            or bool(routine_kind(function))
            or is_plumbing(function)
            or self._symbols.passed_over(function, module)
        )

    def site(self, location: Location) -> str:
        """Return a frame as a call site, without inlined wrappers; empty for a wrapper."""
        if location not in self._sites:
            # Functions of the language's headers are not shown, so they are no call sites.
            inlined = [frame for frame in location.inlined if not frame.foreign]
            frames = [*inlined, CodeFrame(location.function, location.path, location.line)]
            for number, frame in enumerate(frames):
                if not frame.foreign and not self.is_library(frame.function, location.module):
                    text = str(replace(location, inlined=tuple(inlined[number:])))
                    break
            else:
                text = ""
            self._sites[location] = text
        return self._sites[location]

    def function(self, address: int) -> str:
        """Return the name of the function that begins at an address, or the empty string."""
        location = self._symbols.location(0, address | ENTRY) if address else None
        return location.function if location is not None and not location.offset else ""

    def object(self, address: int) -> str:
        """Return the name of the global variable at an address, or the empty string."""
        if address not in self._objects:
            self._objects[address] = self._symbols.object_name(0, address)
        return self._objects[address]

    def files(self, module: Module) -> list[Path]:
        """Return the files of a module and of its debug information."""
        return [elf.path for elf in self._symbols.files(0, module)]

    def exported(self, module: Module, name: str) -> range:
        """Return the addresses of a module's exported function or variable; empty if unknown."""
        bias = module.bias or 0
        for elf in self._symbols.files(0, module):
            address, size = elf.exported(name)
            if address:
                return range(bias + address, bias + address + size)
        return range(0)

    def imports(self, modules: Iterable[Module], functions: Collection[str]) -> bool | None:
        """Return whether any module imports one of some functions of the C library.

        Args:
            modules: All modules of the process.
            functions: The names of the functions.

        Returns:
            None if it is not known for a module, such as a static program without symbols.
        """
        unknown = False
        for module in modules:
            if module.path.rpartition("/")[2].startswith(_LIBRARY):
                continue
            imports = self._module_imports(module, functions)
            if imports:
                return True
            unknown |= imports is None
        return None if unknown else False

    def _module_imports(self, module: Module, functions: Collection[str]) -> bool | None:
        """Return whether a module imports one of some functions; None if it is not known."""
        files = self._symbols.files(0, module)
        names = next((elf.imports for elf in files if elf.imports is not None), None)
        if names is not None:
            return not names.isdisjoint(functions)
        for elf in files:
            with suppress(OSError, ValueError):
                if (refers := refers_to(elf.path, functions)) is not None:
                    return refers
        return None
