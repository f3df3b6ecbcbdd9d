"""Names for what lies in a running process: functions with their lines, and global variables."""

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

# The C library itself, whose parts call one another.
_LIBRARY = ("libc.so", "libc-", "libpthread", "ld-linux")
# Modules whose functions stand in front of a call, and nobody needs to read of them.
_IN_FRONT = (*_LIBRARY, "[vdso]", "libnptltrace.so")


def _as(kind: type[Location], location: Location) -> Location:
    return kind(*(getattr(location, member.name) for member in fields(Location)))


class OneProcess:
    """A running process in the place of the processes of a traceset, for `Symbols`.

    Args:
        process: The process.

    Attributes:
        notes: Why names are missing, a sentence each.
        processes: The process alone.
        thread_ids: The threads that had events: none.
    """

    traces = ()
    names = python = None  # these are found out by events

    def __init__(self, process: Target) -> None:
        self.processes = [process]
        self.thread_ids: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def trace_of(self, process: int) -> int:
        """Return the number of its trace: 0, as there is no trace."""
        del process
        return 0

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Leave call sites as they are: there are no events."""


class Names:
    """Names addresses of one process.

    Args:
        symbols: The names of a `OneProcess`.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._objects: dict[int, str] = {}
        self._sites: dict[Location, str] = {}

    def prepare(self) -> None:
        """Read what every question needs: modules, and rules for functions that are passed over."""
        self._symbols.variable(0, 0)
        self._symbols.passed_over("-", "-")

    def location(self, frame: Frame, *, innermost: bool) -> Location:
        """Return the location of a frame.

        Args:
            frame: The frame.
            innermost: It is where the thread is, not where a call returns to.
        """
        location = self._symbols.location(0, frame.inside + 1 + (innermost and not frame.signal))
        return _as(GuessedLocation, location) if frame.guessed else location

    def called(self, location: Location, address: int) -> Location:
        """Return the location of a frame in a function that has no name.

        Args:
            location: The frame.
            address: What the call before it has called: a function that went on as that one.
        """
        name = self.function(address)
        return _as(CalledLocation, replace(location, function=name)) if name else location

    def is_library(self, function: str, module: str) -> bool:
        """Return whether a frame is no call site.

        It may belong to the C library, which a static program has in it, or to the wrappers of a
        library of threads.

        Args:
            function: Its function, or empty.
            module: File name of its module, or empty; of a function of Python the path of its
                source.
        """
        return (
            module.startswith(_IN_FRONT)
            or bool(routine_kind(function))
            or is_plumbing(function)
            or self._symbols.passed_over(function, module)
        )

    def site(self, location: Location) -> str:
        """Return a frame as a call site, without wrappers that were inlined into it.

        A frame that is a wrapper as a whole has no call site: the text is empty.
        """
        if location not in self._sites:
            self._sites[location] = self._site(location)
        return self._sites[location]

    def _site(self, location: Location) -> str:
        # Functions of the language's own headers are not shown, so none of them is the call site.
        own = [frame for frame in location.inlined if not frame.foreign]
        frames = [*own, CodeFrame(location.function, location.path, location.line)]
        first = next((n for n, f in enumerate(frames) if self._is_own(f, location.module)), None)
        return "" if first is None else str(replace(location, inlined=tuple(own[first:])))

    def _is_own(self, frame: CodeFrame, module: str) -> bool:
        """Return whether a frame may be a call site: no wrapper, no template of the language."""
        return not frame.foreign and not self.is_library(frame.function, module)

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
        """Return where a function or variable of a module is that other modules may use."""
        bias = module.bias or 0
        for elf in self._symbols.files(0, module):
            address, size = elf.exported(name)
            if address:
                return range(bias + address, bias + address + size)
        return range(0)

    def imports(self, modules: Iterable[Module], functions: Collection[str]) -> bool | None:
        """Return whether a module takes any of some functions of the C library from it.

        Args:
            modules: All that there are.
            functions: The functions.

        Returns:
            None if that is not known of a module, as of a static program without symbols.
        """
        unknown = False
        for module in modules:
            if module.path.rpartition("/")[2].startswith(_LIBRARY):
                continue
            takes = self._takes(module, functions)
            if takes:
                return True
            unknown |= takes is None
        return None if unknown else False

    def _takes(self, module: Module, functions: Collection[str]) -> bool | None:
        """Return whether a module takes any of some functions; None where that is not known."""
        files = self._symbols.files(0, module)
        names = next((elf.imports for elf in files if elf.imports is not None), None)
        if names is not None:
            return not names.isdisjoint(functions)
        for elf in files:
            with suppress(OSError, ValueError):
                if (said := refers_to(elf.path, functions)) is not None:
                    return said
        return None
