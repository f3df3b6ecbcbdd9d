"""Which modules of a process stay where they are: static data there is used for nothing else."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from nptltrace.trace.symbols.elf.object_file import ElfFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.trace.code.modules import Module
    from nptltrace.trace.info import Process
    from nptltrace.trace.traceset import Traceset

__all__ = ["behind_all", "loaded_for_good"]

# Address space of processes ends here: with 47 bits, and with 48.
_ENDS = (1 << 47, 1 << 48)
_NEAR = 1 << 36


def loaded_for_good(process: Process, source: Traceset) -> list[Module]:
    """Return the program and the libraries that it, or one of those, is linked with.

    What a program loads while it runs (`dlopen`) it may unload again, and something else comes to
    lie there.

    Args:
        process: The process.
        source: The opened traces, which may have brought the files along.
    """
    by_name: dict[str, list[Module]] = {}
    folders = dict.fromkeys(os.path.dirname(m.path) for m in process.modules)  # noqa: PTH120 -- many
    for module in process.modules:
        by_name.setdefault(PurePath(module.path).name, []).append(module)
    files = [trace.path / "info" / "modules" for trace in source.traces]
    wanted = [PurePath(process.exe).name]
    found: list[Module] = []
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        # A library may be mapped under the name of the file that its soname is a link to.
        for module in by_name.get(name) or _behind(name, folders, process.modules):
            found.append(module)
            bundled = tuple(folder / module.build_id for folder in files if module.build_id)
            wanted += _needed(Path(module.path), *bundled)
    return found


def behind_all(process: Process) -> int | None:
    """Return an address behind which there is only the stack of the first thread, if that shows.

    Mappings are laid out downwards from below that stack, the libraries first.
    """
    last = max((module.end for module in process.modules), default=0)
    end = next((end for end in _ENDS if end > last), None)
    return None if end is None or not last else max(last, end - _NEAR)


def _behind(soname: str, folders: Iterable[str], modules: list[Module]) -> list[Module]:
    """Return the modules whose file a soname may lead to."""
    for folder in folders:
        leads_to = _behind_link(folder, soname)
        found = [m for m in modules if leads_to and _real_path(m.path) == leads_to]
        if found:
            return found[:1]
    stem = soname.split(".so", maxsplit=1)[0]
    return [m for m in modules if PurePath(m.path).name.startswith((stem + ".so", stem + "-"))]


# A trace of many processes asks the same about the same files over and over.


@lru_cache(4096)
def _behind_link(folder: str, soname: str) -> str | None:
    """Return the file that a link of this name in a folder leads to."""
    link = f"{folder}/{soname}"
    return _real_path(link) if os.path.islink(link) else None  # noqa: PTH114 -- many


@lru_cache(4096)
def _real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path)
    except OSError:
        return None


@lru_cache(4096)
def _needed(*paths: Path) -> tuple[str, ...]:
    """Return the sonames of what a module is linked with, if one of its files can be read."""
    for path in paths:
        try:
            needed = ElfFile(path).needed
        except (OSError, ValueError):
            continue
        if needed is not None:
            return needed
    return ()
