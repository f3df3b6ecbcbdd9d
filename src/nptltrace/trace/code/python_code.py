"""Functions of Python and methods of Java, which have addresses of their own in stacks."""

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

# Frames of this version count instructions. Other versions count bytes, two per instruction.
_COUNTS_INSTRUCTIONS = 10
# The hash of the identity of an object, which gives its number.
_HASH, _HASH_SHIFT, _PROBES = 0x9E3779B97F4A7C15, 49, 32


@dataclass(frozen=True, slots=True)
class PythonCode:
    """A code object of Python, a method of Java, or an object of Java that has a number.

    Attributes:
        function: Name of the function, qualified since Python 3.11; class of an object.
        path: The source file, as the interpreter knows it.
        first_line: The first line; for an object, its number.
        minor: The minor version of Python 3, or `ptt_abi.PTT_CODE_…`.
        lines: The line table.
        targets: By line, the target of an assignment and the class or function that it calls.
    """

    function: str
    path: str
    first_line: int
    minor: int
    lines: bytes
    targets: Mapping[int, tuple[str, str]] = field(default_factory=dict, compare=False)

    def line(self, instruction: int) -> int:
        """Return the line of an instruction by its number; 0 if unknown."""
        if self.minor == ptt_abi.PTT_CODE_JAVA:
            # The last entry at the bytecode or before it has the line.
            rows = [row for row in struct.iter_unpack("=HH", self.lines) if row[0] <= instruction]
            return max(rows)[1] if rows else 0
        at = instruction if self.minor == _COUNTS_INSTRUCTIONS else 2 * instruction
        return line_of(self.minor, self.lines, self.first_line, at)


def named_object(codes: Mapping[int, PythonCode], address: int) -> str:
    """Return class and number of an object of Java, which has a number in place of an address.

    Args:
        codes: The code objects of its process.
        address: Any address; an address in a reserved range stands for the number of an object.

    Returns:
        The text, or the empty string if no such object is known.
    """
    if not ptt_abi.PTT_NUMBERED_PLACE <= address < ptt_abi.PTT_NUMBERED_PLACE_END:
        return ""
    number = address - ptt_abi.PTT_NUMBERED_PLACE >> ptt_abi.PTT_NUMBERED_SHIFT
    # Search where the tracer puts it: see native/ring/origin/image_files.c.
    first = ((number | 1 << 63) * _HASH % 2**64) >> _HASH_SHIFT
    for place in range(first, first + _PROBES):
        code = codes.get(place % ptt_abi.PTT_PYTHON_CODES)
        if code is None:
            continue
        if code.minor == ptt_abi.PTT_CODE_JAVA_OBJECT and code.first_line == number:
            return f"{code.function}#{number}"
    return ""


def numbered_objects(codes: Mapping[int, PythonCode], name: str) -> Iterator[int]:
    """Yield the addresses of the objects of a class, or of one object such as `Monitor#3`."""
    for code in codes.values():
        if code.minor != ptt_abi.PTT_CODE_JAVA_OBJECT:
            continue
        if name in {code.function, f"{code.function}#{code.first_line}"}:
            yield ptt_abi.PTT_NUMBERED_PLACE + (code.first_line << ptt_abi.PTT_NUMBERED_SHIFT)


def add_targets(codes: dict[int, PythonCode], rows: Iterable[Any]) -> None:
    """Take in the assignments of a line of `info/processes.jsonl`."""
    by_code: dict[int, dict[int, tuple[str, str]]] = {}
    for number, line, target, callee in rows:
        assigned = readable(str(target)), readable(str(callee))
        by_code.setdefault(int(number), {})[int(line)] = assigned
    for number, targets in by_code.items():
        if number in codes:
            codes[number] = replace(codes[number], targets=targets)


def is_python(site: int) -> bool:
    """Return whether a call site lies in a function of Python or a method of Java."""
    return ptt_abi.PTT_PYTHON_PLACE <= address_of_site(site) < ptt_abi.PTT_PYTHON_PLACE_END


def code_and_offset(site: int) -> tuple[int, int]:
    """Return the numbers of code object and instruction of a call site in Python or Java."""
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
