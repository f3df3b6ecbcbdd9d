"""Whether a signal handler of a process may post a semaphore: by what its modules import."""

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
# Functions that install a handler, and those that have the C library start a thread of its own.
_HANDLERS = frozenset(
    {
        "sigaction", "__sigaction", "signal", "bsd_signal", "sysv_signal", "__sysv_signal",
        "sigset",
    }
)  # fmt: skip
_STARTS = frozenset(
    {
        "timer_create", "mq_notify", "getaddrinfo_a", "lio_listio", "lio_listio64",
        *(f"aio_{call}{bits}" for call in ("read", "write", "fsync") for bits in ("", "64")),
    }
)  # fmt: skip
# Functions that have the kernel send signals by itself, for which a handler may post.
_TIMERS = frozenset({"alarm", "ualarm", "setitimer"})
# The C library and the tracer; an interpreter's own handler posts nothing.
_LIBRARIES = (
    "libc.so", "libc-", "libpthread", "librt", "ld-linux", "libnptltrace", "libring.so",
    "libshared.so", "libfile.so", "libtext.so", "libposix.so",
)  # fmt: skip


def posters_of(process: Process, source: Traceset) -> Literal["threads", "handlers", "anyone"]:
    """Return who can post a semaphore of a process: its own threads, or signal handlers as well.

    It takes a module that installs handlers, and one that posts. A module whose file is gone may be
    either. Where the C library may start threads of its own, or the kernel may send signals by
    itself, anyone can.

    Args:
        process: The process.
        source: The opened traces, which may have brought the files along.
    """
    folders = [trace.path / "info" / "modules" for trace in source.traces]
    files = []
    for module in process.modules:
        name = module.path.rpartition("/")[2]
        if name.startswith(_LIBRARIES) or is_interpreter(name):
            continue
        bundled = [folder / module.build_id for folder in folders if module.build_id]
        files.append((Path(module.path), *bundled))
    if not _any_takes(files, _POST):
        return "threads"
    if _any_takes(files, _STARTS):
        return "anyone"
    if not _any_takes(files, _HANDLERS):
        return "threads"
    return "anyone" if _any_takes(files, _TIMERS) else "handlers"


def _any_takes(files: Iterable[tuple[Path, ...]], functions: frozenset[str]) -> bool:
    return any(_takes(paths, functions) for paths in files)


@lru_cache(4096)
def _takes(paths: tuple[Path, ...], functions: frozenset[str]) -> bool:
    """Return whether one of the files of a module imports one of some functions."""
    for path in paths:
        names = _imports(path)
        if names is not None:
            return not functions.isdisjoint(names)
    return True


@lru_cache(1024)
def _imports(path: Path) -> frozenset[str] | None:
    """Return which functions a file takes, all of a static one; None if it cannot be read."""
    try:
        # What is no file may keep whoever opens it, and only tables of a large one are read.
        if not path.is_file():
            return None
        names = ElfFile(path).imports
    except (OSError, ValueError):
        return None
    return _HANDLERS | _STARTS | _TIMERS | _POST if names is None else names
