"""Offsets in structures of a process's C library, learned from the library itself.

glibc exports tables for debuggers: its version, and the offset of a thread's id. The code of a wait
for a condition shows the offset of the number of waiters there; distributions have changed it
within a version. Where the code is not readable, an export tells the version. The other offsets are
the same in glibc 2.28 to 2.43. For another version, threads of PTT's own process wait, if that
process has the same library (`hang/calibration.py`).
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._files.elf import Elf
from nptltrace.hang.calibration import is_as_expected
from nptltrace.hang.conditions import COUNTED, LAYOUTS, Layout
from nptltrace.hang.targets.target import TID_AT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["CLibrary", "c_library"]

# Before 2.34, the functions for threads are in a library of their own.
_FILES = ("libc.so", "libc-", "libpthread")
_VERSIONS = ("__nptl_version", "nptl_version")
_VERSION = re.compile(rb"(\d+)\.(\d+)")
_FIRST, _LAST = (2, 28), (2, 43)
# The table of a field: its size in bits, the number of its elements, its offset (thread_dbP.h).
_TID, _FIELD = "_thread_db_pthread_tid", struct.Struct("<III")
_TID_BITS, _THREAD_MAX = 32, 1 << 13
# Functions that count a waiter, and the instruction: it adds to a 32-bit word behind a register.
_WAITS = ("pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait")
_COUNTS = re.compile(rb"\xf0[\x40-\x47]?\x0f\xc1([\x40-\x7f])(.)", re.DOTALL)
_WITH_INDEX, _CONDITION, _CODE_MAX = 4, 48, 1 << 12
# The C library exports this function from 2.41 on. Then most builds count no references.
_SINCE_2_41 = "sched_getattr"


class CLibrary(NamedTuple):
    """The facts about a C library.

    Attributes:
        path: The file of the library; empty for a static program.
        version: The version of glibc, as `2.41`; empty if it is not known.
        condition: The layout of conditions; None if it is not known.
        tid_at: The offset of a thread's id from its `pthread_t`.
        is_known: Whether all other offsets are known.
    """

    path: str = ""
    version: str = ""
    condition: Layout | None = None
    tid_at: int = TID_AT
    is_known: bool = True


def c_library(process: Target, names: Names) -> CLibrary:
    """Return the known facts about the C library of a process.

    Args:
        process: The process.
        names: The names in the process.
    """
    modules = [m for m in process.modules if m.path.rpartition("/")[2].startswith(_FILES)]
    # Without the file, no function of the library has a name, and so no wait has a kind.
    with_files = [module for module in modules if names.files(module)]
    if not with_files:
        return CLibrary()
    by_export = _by_export(names, with_files)
    if process.machine != "x86_64":
        return CLibrary(condition=by_export)
    version = next(_versions(process, names, modules), None)
    is_known = version is not None and _FIRST <= version <= _LAST
    return CLibrary(
        modules[0].path, f"{version[0]}.{version[1]}" if version else "",
        next(_conditions(process, names, modules), by_export),
        next(_tids(process, names, modules), TID_AT),
        is_known or is_as_expected(modules[0].build_id),
    )  # fmt: skip


def _versions(process: Target, names: Names, modules: list[Module]) -> Iterator[tuple[int, int]]:
    for module in modules:
        for variable in _VERSIONS:
            match = _VERSION.match(_constant(process, names, module, variable, 8))
            if match is not None:
                yield int(match[1]), int(match[2])


def _constant(process: Target, names: Names, module: Module, name: str, size: int) -> bytes:
    """Return the begin of an exported constant; from the file if the memory is not there."""
    at = names.exported(module, name).start
    if not at:
        return b""
    if len(data := process.read(at, size)) == size:
        return data
    for path in names.files(module):
        with suppress(OSError, ValueError):
            if data := Elf.open(path).mapped(at - (module.bias or 0), size):
                return data
    return b""


def _tids(process: Target, names: Names, modules: list[Module]) -> Iterator[int]:
    for module in modules:
        data = _constant(process, names, module, _TID, _FIELD.size)
        if len(data) == _FIELD.size:
            bits, count, offset = _FIELD.unpack(data)
            if bits == _TID_BITS and count == 1 and 0 < offset < _THREAD_MAX:
                yield offset


def _by_export(names: Names, modules: list[Module]) -> Layout | None:
    """Return the usual layout of conditions in a version; None without the file of the library."""
    libraries = [m for m in modules if m.path.rpartition("/")[2].startswith(_FILES[:2])]
    if not libraries:
        return None
    return LAYOUTS[1] if names.exported(libraries[0], _SINCE_2_41) else COUNTED


def _conditions(process: Target, names: Names, modules: list[Module]) -> Iterator[Layout]:
    for module in modules:
        for function in _WAITS:
            code = names.exported(module, function)
            match = _COUNTS.search(process.read(code.start, min(len(code), _CODE_MAX)))
            if match is None or match[1][0] & 7 == _WITH_INDEX:
                continue
            if 0 < (at := match[2][0]) < _CONDITION - 4:
                # The words on which the waiters of both groups sleep come next.
                yield Layout(at, at + 4)
