"""The location of a code address: function, file and line, module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nptltrace._dataclasses import dataclass, replace
from nptltrace.trace.symbols.elf.code import is_foreign
from nptltrace.trace.symbols.elf.display_names import display_name, full_names, run_by

if TYPE_CHECKING:
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.trace.symbols.elf.code import Frame

__all__ = ["Location", "Locations"]


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a code address.

    Attributes:
        module: File name of the module, or empty; for a function of Python, the path of its source.
        module_offset: The address in terms of the module's symbol table.
        build_id: Build-id of the module, or empty.
        function: Demangled name of the function, or empty.
        offset: Bytes from the start of the function.
        file: Source file, without directories, or empty.
        line: Source line, or 0.
        path: Source file as the compiler knew it, or empty.
        inlined: Functions that the compiler inlined at this place, the deepest function first.
        python: Whether it is a function of Python.
    """

    module: str = ""
    module_offset: int = 0
    build_id: str = ""
    function: str = ""
    offset: int = 0
    file: str = ""
    line: int = 0
    path: str = ""
    inlined: tuple[Frame, ...] = ()
    python: bool = False

    def __str__(self) -> str:
        """Return a text such as `worker+0x1c (pool.c:88)`.

        Inlined functions come first: `push (queue.c:30) inlined into worker+0x1c (pool.c:88)`.
        Functions from headers of the language's own library are left out.
        """
        if self.python:
            return f"{self.function} ({self.file}:{self.line})" if self.line else self.function
        inlined = [str(frame) for frame in self.program_frames()]
        if inlined and is_foreign(self.path) and not full_names():
            return " inlined into ".join(inlined)
        if self.function:
            text = f"{display_name(self.function)}+{self.offset:#x}"
        elif self.module:
            text = f"{self.module}+{self.module_offset:#x}"
        else:
            return ""
        if self.file:
            text = f"{text} ({self.file}:{self.line})"
        elif self.function:
            text = f"{text} ({self.module})"
        return " inlined into ".join([*inlined, text])

    def program_frames(self) -> list[Frame]:
        """Return the inlined functions, without functions of the language's own library."""
        frames = [frame for frame in self.inlined if full_names() or not frame.foreign]
        if frames and frames[-1].function == "operator()" and (name := run_by(self.function)):
            frames[-1] = replace(frames[-1], function=name)
        return frames


class Locations(Protocol):
    """Finds the locations of code addresses of a traceset.

    Attributes:
        passed_over: The rule that passes over frames, which are no call sites.
    """

    passed_over: PassedOver

    def location(self, process: int, site: int) -> Location:
        """Return the location of a call site."""

    def caller(self, process: int, address: int, site: int) -> int | None:
        """Return the call site of an address in a stack; see `ModuleMap.caller`."""
