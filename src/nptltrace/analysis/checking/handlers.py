"""Tells from the imports of a process's modules whether a signal handler may post a semaphore."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nptltrace.trace.code.modules import is_interpreter
from nptltrace.trace.symbols.elf.object_file import ElfFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.trace.info import Process
    from nptltrace.trace.traceset import Traceset

__all__ = ["posters_of"]

_POST = frozenset({"sem_post"})
# Functions that install a handler.
_HANDLERS = frozenset(
    {
        "sigaction", "__sigaction", "signal", "bsd_signal", "sysv_signal", "__sysv_signal",
        "sigset",
    }
)  # fmt: skip
# Functions that let the C library start a thread of its own.
_STARTS = frozenset(
    {
        "timer_create", "mq_notify", "getaddrinfo_a", "lio_listio", "lio_listio64",
        *(f"aio_{call}{bits}" for call in ("read", "write", "fsync") for bits in ("", "64")),
    }
)  # fmt: skip
# Functions that make the kernel send signals by itself. A handler of such a signal may post.
_TIMERS = frozenset({"alarm", "ualarm", "setitimer"})
# Modules to leave out: the C library and the tracer. An interpreter's own handler posts nothing.
_LIBRARIES = (
    "libc.so", "libc-", "libpthread", "librt", "ld-linux", "libnptltrace", "libring.so",
    "libshared.so", "libfile.so", "libtext.so", "libposix.so",
)  # fmt: skip


def posters_of(process: Process, source: Traceset) -> Literal["threads", "handlers", "anyone"]:
    """Return who can post a semaphore of a process: its own threads, or also signal handlers.

    A handler can post if one module installs handlers and one module posts. A module without a
    readable file may do both. If the C library may start its own threads, or the kernel may send
    signals by itself, anyone can post.

    Args:
        process: The process.
        source: The opened traces. They may have copies of the modules.
    """
    folders = [trace.path / "info" / "modules" for trace in source.traces]
    files = []
    for module in process.modules:
        name = module.path.rpartition("/")[2]
        if name.startswith(_LIBRARIES) or is_interpreter(name):
            continue
        bundled = [folder / module.build_id for folder in folders if module.build_id]
        files.append((Path(module.path), *bundled))
    if not _any_imports(files, _POST):
        return "threads"
    if _any_imports(files, _STARTS):
        return "anyone"
    if not _any_imports(files, _HANDLERS):
        return "threads"
    return "anyone" if _any_imports(files, _TIMERS) else "handlers"


def _any_imports(modules: Iterable[tuple[Path, ...]], functions: frozenset[str]) -> bool:
    return any(_may_import(files, functions) for files in modules)


@lru_cache(4096)
def _may_import(paths: tuple[Path, ...], functions: frozenset[str]) -> bool:
    """Return whether a module may import one of some functions, by its first readable file."""
    for path in paths:
        names = _imports(path)
        if names is not None:
            return not functions.isdisjoint(names)
    return True


@lru_cache(1024)
def _imports(path: Path) -> frozenset[str] | None:
    """Return the imported functions of a file; None if the file cannot be read.

    A static program has no imports: all functions count as imported.
    """
    try:
        # To open a FIFO would block.
        if not path.is_file():
            return None
        names = ElfFile(path).imports
    except (OSError, ValueError):
        return None
    return _HANDLERS | _STARTS | _TIMERS | _POST if names is None else names
