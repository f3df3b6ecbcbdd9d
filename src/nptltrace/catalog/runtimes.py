"""Runtimes and libraries with locks of their own: how to recognize them, and what PTT misses.

The name of a library tells which library it is. A program with a runtime inside has marks in its
file: sections that only one linker makes, or functions that only one runtime exports.
"""

from __future__ import annotations

import re

from nptltrace._files.elf import Elf
from nptltrace.catalog._cpython import DEBUG_WORDS, VERSIONS

__all__ = [
    "AGENT", "FUTEXES", "is_unknown_python", "library_of", "ownerless", "runtime_of_file",
    "unseen",
]  # fmt: skip

AGENT = "only waits are seen for Java's monitors and locks, and no waits of virtual threads"
FUTEXES = "may have locks of Rust or C++20 in it; only waits for them are seen"

_RUBY = "waits for mutexes and queues of a Ruby inside a program are seen as waits for work"
_RUBYS_OWN = "waits for Ruby's global lock, queues and joins are seen as waits for work"
_MONITORS = "monitors of .NET are its own: their waits are seen as waits for work"
_GUILE = "mutexes of Guile are its own: their waits are seen as waits for work"
_HASKELL = "waits of Haskell's threads, such as for an `MVar`, are not seen"
_ERLANG = "processes of Erlang wait inside its scheduler, and are not seen"
_POSTGRES = "locks of rows and tables, and other waits for its own latches, are not seen"
_JAVA = "Java's monitors and locks are its own: their waits are seen as waits for work"
_SCRIPTS = "`Atomics.wait()`, with which JavaScript makes locks, is seen as a wait for work"
# By the names of shared libraries without version.
_LIBRARIES = {
    "libgomp": "waits for tasks, and locks inside the library, are not seen",
    "libomp": "its own locks, and waits for tasks, are not seen",
    "libiomp5": "its own locks and barriers are not seen",
    "libjvm": _JAVA,
    "libcoreclr": "locks of .NET are its own: their waits are seen as waits for work",
    "libruby": _RUBYS_OWN,
    "libmono": _MONITORS,
    "libmonosgen": _MONITORS,
    "threads/shared/shared": "locks of Perl are its own: their waits are seen as waits for work",
    "libguile": _GUILE,
    "libHSrts": _HASKELL,
    "libgo": "locks and channels of Go use futexes directly, and are not seen",
    "libjulia": "locks, channels and tasks of Julia are not seen",
    "libnode": _SCRIPTS,
    "libtbb": "spin locks are not seen; only waits are seen for other locks",
    "libabsl_synchronization": "only waits are seen for locks of readers and `LockWhen()`",
    "libQt5Core": (
        "only waits are seen for its semaphores, for `QBasicMutex`, and for locks compiled into "
        "programs"
    ),
    "libQt6Core": "only waits are seen for its locks, which are futexes",
}
# For a library that had bound its functions before ptt attached.
_ATTACHED = {
    "libruby": "locks and queues of Ruby are its own: their waits are seen as waits for work",
}
# For a program, or a library of any name, with this runtime inside.
_INSIDE = {
    "go": "mutexes and channels of Go are not seen",
    "haskell": _HASKELL,
    "dotnet": "locks of .NET are its own: their waits are seen as waits for work",
    "native-image": _JAVA,
    "ruby": _RUBY,
    "mono": _MONITORS,
    "guile": _GUILE,
    "erlang": _ERLANG,
    "postgres": _POSTGRES,
    "node": _SCRIPTS,
}
# For a process that hangs: locks with unknown owners.
_OWNERLESS_LIBRARIES = {
    "libcoreclr": "monitors of .NET",
    "libmono": "monitors of .NET",
    "libmonosgen": "monitors of .NET",
    "threads/shared/shared": "locks of Perl",
    "libguile": "mutexes of Guile",
    "libHSrts": "variables of Haskell, such as an `MVar`,",
    "libgo": "locks and channels of Go",
    "libjulia": "locks and channels of Julia",
}
_OWNERLESS_INSIDE = {
    "go": "mutexes and channels of Go",
    "haskell": "variables of Haskell, such as an `MVar`,",
    "dotnet": "monitors of .NET",
    "native-image": "monitors of Java",
    "mono": "monitors of .NET",
    "guile": "mutexes of Guile",
    "erlang": "resources that processes of Erlang wait for",
}
_SECTIONS = {
    ".go.buildinfo": "go",
    ".debug-ghc-link-info": "haskell",
    "__managedcode": "dotnet",
    ".svm_heap": "native-image",
}
_EXPORTS = {
    "DotNetRuntimeInfo": "dotnet",
    "rb_mutex_synchronize": "ruby",
    "mono_monitor_enter": "mono",
    "scm_timed_lock_mutex": "guile",
    "erl_drv_mutex_lock": "erlang",
    "LWLockAcquire": "postgres",
    "node_module_register": "node",
}
# A message of GHC's runtime, which a stripped program still has.
_HASKELL_FAILS = b"(GHC version %s for %s)"
_DATA_MAX = 8 << 20
# An interpreter has its version in this variable since 3.11. The file name has the version, too.
_VERSION = "Py_Version"
_PYTHON = re.compile(r"(?:lib)?python(\d+)\.(\d+)[a-z]*(?:\.so[.0-9]*)?")
_KNOWN_PYTHONS = frozenset({*VERSIONS, *DEBUG_WORDS})
_PREFIX, _MAJOR = "python", 3


def library_of(path: str) -> str:
    """Return the name of a library without its version, and without the hash that wheels add.

    The file name of Perl's locks, `shared.so`, is very common. So their name keeps the folders.
    """
    if path.endswith("/threads/shared/shared.so"):
        return "threads/shared/shared"
    name, is_library, _ = path.rpartition("/")[2].partition(".so")
    return name.partition("-")[0] if is_library else ""


def unseen(path: str, inside: str, *, attached: bool = False) -> str:
    """Return which locks of a module PTT misses; empty if no missed lock is known.

    Args:
        path: The module.
        inside: The runtime in it, from `runtime_of_file`.
        attached: Whether ptt attached to the running process.
    """
    library = library_of(path)
    if attached and library in _ATTACHED:
        return _ATTACHED[library]
    if is_unknown_python(inside):
        version = inside.removeprefix(_PREFIX)
        return (
            f"locks of Python {version} are not known to this version of PTT: the class of their "
            "waits is unknown"
        )
    return _LIBRARIES.get(library) or _INSIDE.get(inside, "")


def is_unknown_python(inside: str) -> bool:
    """Return whether a runtime is a Python interpreter of a version that PTT does not know.

    Args:
        inside: The runtime, from `runtime_of_file`.
    """
    return inside.startswith(_PREFIX)


def ownerless(path: str, inside: str) -> str:
    """Return the locks of a module with unknown owners in a process that hangs, or nothing.

    Args:
        path: The module.
        inside: The runtime in it, from `runtime_of_file`.
    """
    return _OWNERLESS_LIBRARIES.get(library_of(path)) or _OWNERLESS_INSIDE.get(inside, "")


def runtime_of_file(path: str) -> str:
    """Return the runtime inside a program or library; empty without a known runtime.

    For a Python interpreter of an unknown version, the result is `python` with the version.

    It makes a few reads of bounded size: the path from a traced process may name any file.
    """
    try:
        elf = Elf.open(path, _DATA_MAX)
        if not elf.is_native:
            return ""
        return _unknown_python(elf, path.rpartition("/")[2]) or _runtime_of(elf)
    except (OSError, ValueError):
        return ""


def _unknown_python(elf: Elf, name: str) -> str:
    """Return `python3.16` for an interpreter of this unknown version, else the empty string."""
    match = _PYTHON.fullmatch(name)
    if match is None and elf.named(".interp") is None:
        return ""
    address = _exported(elf, elf.data(elf.named(".dynstr")), _VERSION)
    number = int.from_bytes(elf.mapped(address, 8), "little") if address else 0
    if number:
        major, minor = number >> 24, number >> 16 & 0xFF
    elif match is not None:
        major, minor = int(match[1]), int(match[2])
    else:
        return ""
    known = major == _MAJOR and minor in _KNOWN_PYTHONS
    return "" if known else f"{_PREFIX}{major}.{minor}"


def _exported(elf: Elf, strings: bytes, name: str) -> int:
    """Return the address of an exported symbol, 0 if there is none.

    Args:
        elf: The file.
        strings: The names of its imports and exports.
        name: The name of the symbol.
    """
    at = strings.find(f"\0{name}\0".encode()) + 1
    # A symbol without a section is an import of the program.
    rows = elf.symbols(".dynsym")[0] if at else ()
    return next((row[4] for row in rows if row[0] == at and row[3]), 0)


def _runtime_of(elf: Elf) -> str:
    for name, runtime in _SECTIONS.items():
        if elf.named(name) is not None:
            return runtime
    # names identify libraries
    if elf.named(".interp") is None:
        return ""
    if _HASKELL_FAILS in elf.data(elf.named(".rodata")):
        return "haskell"
    strings = elf.data(elf.named(".dynstr"))
    return next((found for name, found in _EXPORTS.items() if _exported(elf, strings, name)), "")
