"""Functions of Python in stacks: what the address of one stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nptltrace._binding.headers import ptt_abi
from nptltrace.trace.escaping import readable
from nptltrace.trace.symbols.places.python_lines import line_of
from nptltrace.trace.symbols.places.site import address_of_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["PythonCode", "code_and_offset", "is_interpreter", "is_python", "read_codes"]

# The version whose frames count instructions; those of others count bytes, of which an
# instruction has two.
_COUNTS_INSTRUCTIONS = 10
_INTERPRETERS = ("python3", "libpython3")


@dataclass(frozen=True, slots=True)
class PythonCode:
    """A function, or what else is compiled as one.

    Attributes:
        function: Its name, qualified since Python 3.11.
        path: The source file, as the interpreter has it.
        first_line: Where it begins.
        minor: The version of Python 3 that compiled it.
        lines: Its line table.
    """

    function: str
    path: str
    first_line: int
    minor: int
    lines: bytes

    def line(self, instruction: int) -> int:
        """Return the line of an instruction by its number, 0 if that is not known."""
        at = instruction if self.minor == _COUNTS_INSTRUCTIONS else 2 * instruction
        return line_of(self.minor, self.lines, self.first_line, at)


def is_python(site: int) -> bool:
    """Return whether a call site is in a function of Python."""
    return ptt_abi.PTT_PYTHON_PLACE <= address_of_site(site) < ptt_abi.PTT_PYTHON_PLACE_END


def code_and_offset(site: int) -> tuple[int, int]:
    """Return the number of the code object of such a site, and that of the instruction."""
    at = address_of_site(site) - ptt_abi.PTT_PYTHON_PLACE
    return at >> ptt_abi.PTT_PYTHON_SHIFT, at & ((1 << ptt_abi.PTT_PYTHON_SHIFT) - 1)


def is_interpreter(module: str) -> bool:
    """Return whether a module, by its file name, is an interpreter of Python or its library."""
    return module.startswith(_INTERPRETERS)


def read_codes(rows: Iterable[Any]) -> Iterator[tuple[int, PythonCode]]:
    """Yield the code objects of a line of `info/processes.jsonl`, with their numbers."""
    for number, minor, first, path, function, lines in rows:
        yield (
            int(number),
            PythonCode(
                readable(str(function)), readable(str(path)), int(first), int(minor),
                bytes.fromhex(lines),
            ),
        )  # fmt: skip
