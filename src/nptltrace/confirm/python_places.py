"""Places in programs of Python, as numbers that are the same in each run of the same files.

The tracer computes the same number for a call; see `ptt_python_place()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace.trace.code.call_site import address_of_site, stack_sites
from nptltrace.trace.code.python_code import code_and_offset, is_python

if TYPE_CHECKING:
    from nptltrace.trace.code.python_code import PythonCode
    from nptltrace.trace.traceset import Traceset

__all__ = ["python_place", "python_sites"]

# FNV-1a, by Fowler, Noll and Vo, over the four bytes of each number.
_BASIS, _PRIME = 2166136261, 16777619
_THREADING = "threading.py"


def python_sites(source: Traceset, process: int) -> dict[int, int]:
    """Return call sites in Python by number of the stack: the innermost outside of threading.py.

    Args:
        source: The opened traces.
        process: Number of the process.
    """
    image = source.processes[process]
    if not image.codes:
        return {}
    found: dict[int, int] = {}
    for stack in image.stacks:
        for site in stack_sites(image.stacks, stack):
            code = image.codes.get(code_and_offset(site)[0]) if is_python(site) else None
            if code is not None and _file(code) != _THREADING:
                found[stack] = site
                break
    return found


def python_place(source: Traceset, process: int, site: int) -> int:
    """Return the number of a call site in Python; 0 if the trace does not know its function.

    Args:
        source: The opened traces.
        process: Number of the process.
        site: Number of the call site.
    """
    number, instruction = code_and_offset(address_of_site(site))
    code = source.processes[process].codes.get(number)
    if code is None:
        return 0
    name = _mixed(_BASIS, *map(ord, _file(code)), *map(ord, code.function), code.first_line)
    place = (name & 0xFFFFFE or 2) << ptt_abi.PTT_PYTHON_SHIFT | instruction
    return _mixed(_BASIS, place & 0xFFFFFFFF, place >> 32)


def _file(code: PythonCode) -> str:
    return code.path.rpartition("/")[2]


def _mixed(number: int, *values: int) -> int:
    for value in values:
        for byte in value.to_bytes(4, "little"):
            number = (number ^ byte) * _PRIME & 0xFFFFFFFF
    return number
