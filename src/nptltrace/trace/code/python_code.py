"""Functions of Python and methods of Java in stacks, by the addresses that stand for them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace._dataclasses import dataclass, field, replace
from nptltrace._escaping import readable
from nptltrace.trace.code.call_site import address_of_site
from nptltrace.trace.code.python_lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

__all__ = [
    "PythonCode", "add_targets", "code_and_offset", "is_python", "named_object",
    "numbered_objects", "read_codes",
]  # fmt: skip

# Frames of this version count instructions; frames of other versions count bytes, two for each
# instruction.
_COUNTS_INSTRUCTIONS = 10
# How the identity of a code object becomes its number.
_HASH, _HASH_SHIFT, _PROBES = 0x9E3779B97F4A7C15, 49, 32


@dataclass(frozen=True, slots=True)
class PythonCode:
    """A function of Python or a code object like it, a method of Java, or the class of an object.

    Attributes:
        function: Its name, qualified since Python 3.11; the class of an object.
        path: The source file, as the interpreter has it.
        first_line: Where it begins; the number of an object.
        minor: The version of Python 3 that compiled it, or `ptt_abi.PTT_CODE_…`.
        lines: Its line table.
        targets: By line, what the object that is made there is assigned to, and the class.
    """

    function: str
    path: str
    first_line: int
    minor: int
    lines: bytes
    targets: Mapping[int, tuple[str, str]] = field(default_factory=dict, compare=False)

    def line(self, instruction: int) -> int:
        """Return the line of an instruction by its number, 0 if that is not known."""
        if self.minor == ptt_abi.PTT_CODE_JAVA:
            return _line_of_bytecode(self.lines, instruction)
        at = instruction if self.minor == _COUNTS_INSTRUCTIONS else 2 * instruction
        return line_of(self.minor, self.lines, self.first_line, at)


def _line_of_bytecode(lines: bytes, at: int) -> int:
    """Return the line that the last entry before a bytecode, or at it, says; 0 for none."""
    found = [pair for pair in struct.iter_unpack("=HH", lines) if pair[0] <= at]
    return max(found)[1] if found else 0


def named_object(codes: Mapping[int, PythonCode], address: int) -> str:
    """Return the class and the number of an object that has a number instead of an address.

    Args:
        codes: The code objects of its process.
        address: What stands for it, or any other address.

    Returns:
        The text, or the empty string if no such object is known.
    """
    if not ptt_abi.PTT_NUMBERED_PLACE <= address < ptt_abi.PTT_NUMBERED_PLACE_END:
        return ""
    number = address - ptt_abi.PTT_NUMBERED_PLACE >> ptt_abi.PTT_NUMBERED_SHIFT
    # where the tracer put it: see native/ring/origin/image_files.c
    first = ((number | 1 << 63) * _HASH % 2**64) >> _HASH_SHIFT
    for place in range(first, first + _PROBES):
        code = codes.get(place % ptt_abi.PTT_PYTHON_CODES)
        if code is None:
            continue
        if code.minor == ptt_abi.PTT_CODE_JAVA_OBJECT and code.first_line == number:
            return f"{code.function}#{number}"
    return ""


def numbered_objects(codes: Mapping[int, PythonCode], name: str) -> Iterator[int]:
    """Yield the addresses that stand for the objects of a class, or for a single object of it."""
    for code in codes.values():
        if code.minor != ptt_abi.PTT_CODE_JAVA_OBJECT:
            continue
        if name in {code.function, f"{code.function}#{code.first_line}"}:
            yield ptt_abi.PTT_NUMBERED_PLACE + (code.first_line << ptt_abi.PTT_NUMBERED_SHIFT)


def add_targets(codes: dict[int, PythonCode], rows: Iterable[Any]) -> None:
    """Take in what a line of `info/processes.jsonl` says of assignments."""
    found: dict[int, dict[int, tuple[str, str]]] = {}
    for number, line, target, callee in rows:
        where = readable(str(target)), readable(str(callee))
        found.setdefault(int(number), {})[int(line)] = where
    for number, targets in found.items():
        if number in codes:
            codes[number] = replace(codes[number], targets=targets)


def is_python(site: int) -> bool:
    """Return whether a call site is in a function of Python, or a method of Java."""
    return ptt_abi.PTT_PYTHON_PLACE <= address_of_site(site) < ptt_abi.PTT_PYTHON_PLACE_END


def code_and_offset(site: int) -> tuple[int, int]:
    """Return the number of the code object of a call site in Python, and of the instruction."""
    at = address_of_site(site) - ptt_abi.PTT_PYTHON_PLACE
    return at >> ptt_abi.PTT_PYTHON_SHIFT, at & ((1 << ptt_abi.PTT_PYTHON_SHIFT) - 1)


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
