"""Runtimes and libraries with locks of their own: how they are known, and which locks go unseen.

A library is known by its name, a program that has a runtime inside by marks in its file: sections
that only one linker makes, or functions that only one runtime exports.
"""

from __future__ import annotations

from nptltrace._files.elf import Elf

__all__ = ["AGENT", "FUTEXES", "library_of", "ownerless", "runtime_of_file", "unseen"]

AGENT = "of Java's monitors and locks waits are seen, and not what is taken without one"
FUTEXES = "may have locks of Rust or C++20 in it, which are seen only where threads wait for them"

_RUBY = "waits for mutexes and queues of a Ruby inside a program are seen as waits for work"
_RUBYS_OWN = "waits for Ruby's global lock, queues and joins are seen as waits for work"
_MONITORS = "monitors of .NET are its own: their waits are seen as waits for work"
_GUILE = "mutexes of Guile are its own: their waits are seen as waits for work"
_HASKELL = "what threads of Haskell wait for, as an `MVar`, is its own and not seen"
_ERLANG = "processes of Erlang wait inside its own scheduler, which is not seen"
_POSTGRES = "locks of rows and tables, and other waits by latches of its own, are not seen"
_JAVA = "Java's monitors and locks are its own: their waits are seen as waits for work"
_SCRIPTS = "`Atomics.wait()` of JavaScript, by which scripts make locks, is seen as a wait for work"
# Of what is mapped, by the names of shared libraries without version.
_LIBRARIES = {
    "libgomp": "by futexes: waits for tasks, and what it locks itself, are not seen",
    "libomp": "has locks of its own and waits for tasks, which are not seen",
    "libiomp5": "has locks and barriers of its own, which are not seen",
    "libjvm": _JAVA,
    "libcoreclr": "locks of .NET are its own: their waits are seen as waits for work",
    "libruby": _RUBYS_OWN,
    "libmono": _MONITORS,
    "libmonosgen": _MONITORS,
    "threads/shared/shared": "locks of Perl are its own: their waits are seen as waits for work",
    "libguile": _GUILE,
    "libHSrts": _HASKELL,
    "libgo": "synchronizes through futexes directly: Go's own locks and channels are not seen",
    "libjulia": "locks, channels and tasks of Julia are its own, and are not seen",
    "libnode": _SCRIPTS,
    "libtbb": "has spin locks, which are not seen, and locks of which only waits are",
    "libabsl_synchronization": "of readers' locks and `LockWhen()` only waits are seen",
    "libQt5Core": (
        "its semaphores and `QBasicMutex`, and what of its locks is compiled into programs, are "
        "seen only where threads wait for them"
    ),
    "libQt6Core": "its locks are futexes, of which only waits are seen",
}
# Of a library whose functions a process that is attached to had bound before.
_ATTACHED = {
    "libruby": "locks and queues of Ruby are its own: their waits are seen as waits for work",
}
# Of a program, or a library of any name, that has a runtime inside.
_INSIDE = {
    "go": "mutexes and channels of Go are its own, and are not seen",
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
# Of a process that hangs: locks of which it is not known who has them.
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
    "erlang": "what processes of Erlang wait for",
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
# What GHC's runtime says where it fails, which a program has that was stripped.
_HASKELL_FAILS = b"(GHC version %s for %s)"
_DATA_MAX = 8 << 20


def library_of(path: str) -> str:
    """Return the name of a library without version, and without the sum that wheels put there.

    That of Perl's locks is as common as can be: it stands for itself with its folders.
    """
    if path.endswith("/threads/shared/shared.so"):
        return "threads/shared/shared"
    name, is_library, _ = path.rpartition("/")[2].partition(".so")
    return name.partition("-")[0] if is_library else ""


def unseen(path: str, inside: str, *, attached: bool = False) -> str:
    """Return what of a module's locks is not seen; empty where all is, as far as is known.

    Args:
        path: The module.
        inside: The runtime in it, as `runtime_of_file` has found it.
        attached: Whether the process was attached to, when it had begun.
    """
    library = library_of(path)
    if attached and library in _ATTACHED:
        return _ATTACHED[library]
    return _LIBRARIES.get(library) or _INSIDE.get(inside, "")


def ownerless(path: str, inside: str) -> str:
    """Return the locks of a module whose owners nobody knows in a process that hangs, or nothing.

    Args:
        path: The module.
        inside: The runtime in it, as `runtime_of_file` has found it.
    """
    return _OWNERLESS_LIBRARIES.get(library_of(path)) or _OWNERLESS_INSIDE.get(inside, "")


def runtime_of_file(path: str) -> str:
    """Return the runtime that a program or library has inside, empty if none is known.

    Takes a few reads, each of a bounded size: a traced process may have named any file.
    """
    try:
        elf = Elf.open(path, _DATA_MAX)
        return _runtime_of(elf) if elf.is_native else ""
    except (OSError, ValueError):
        return ""


def _runtime_of(elf: Elf) -> str:
    for name, runtime in _SECTIONS.items():
        if elf.named(name) is not None:
            return runtime
    # libraries are known by their names
    if elf.named(".interp") is None:
        return ""
    if _HASKELL_FAILS in elf.data(elf.named(".rodata")):
        return "haskell"
    strings = elf.data(elf.named(".dynstr"))
    for name, runtime in _EXPORTS.items():
        at = strings.find(f"\0{name}\0".encode()) + 1
        # A symbol without a section is one that the program asks for.
        if at and any(row[0] == at and row[3] for row in elf.symbols(".dynsym")[0]):
            return runtime
    return ""
