"""Modules that are never unloaded. No other object can come to lie in their static data."""

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

__all__ = ["loaded_for_good", "stack_area"]

# Ends of the address space of processes: with 47 bits, and with 48 bits.
_ENDS = (1 << 47, 1 << 48)
_NEAR = 1 << 36


def loaded_for_good(process: Process, source: Traceset) -> list[Module]:
    """Return the program and the libraries that it is linked with, directly or indirectly.

    A program may unload a module that it loaded with `dlopen`. Then other memory can come to lie
    at the same address.

    Args:
        process: The process.
        source: The opened traces. They may have copies of the files.
    """
    by_name: dict[str, list[Module]] = {}
    folders = dict.fromkeys(os.path.dirname(m.path) for m in process.modules)  # noqa: PTH120 -- many
    for module in process.modules:
        by_name.setdefault(PurePath(module.path).name, []).append(module)
    files = [trace.path / "info" / "modules" for trace in source.traces]
    wanted = [PurePath(process.exe).name]
    linked: list[Module] = []
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        # A library may be mapped under the name of the file that its soname is a link to.
        for module in by_name.get(name) or _modules_of(name, folders, process.modules):
            linked.append(module)
            bundled = tuple(folder / module.build_id for folder in files if module.build_id)
            wanted += _needed(Path(module.path), *bundled)
    return linked


def stack_area(process: Process) -> int | None:
    """Return an address above which only the stack of the first thread lies; None if unknown.

    The kernel lays mappings out downwards from below that stack, the libraries first.
    """
    last = max((module.end for module in process.modules), default=0)
    end = next((end for end in _ENDS if end > last), None)
    return None if end is None or not last else max(last, end - _NEAR)


def _modules_of(soname: str, folders: Iterable[str], modules: list[Module]) -> list[Module]:
    """Return the modules that a soname may mean."""
    for folder in folders:
        target = _link_target(folder, soname)
        module = next((m for m in modules if target and _real_path(m.path) == target), None)
        if module is not None:
            return [module]
    stem = soname.split(".so", maxsplit=1)[0]
    return [m for m in modules if PurePath(m.path).name.startswith((stem + ".so", stem + "-"))]


# Caches: the processes of a trace mostly have the same files.


@lru_cache(4096)
def _link_target(folder: str, soname: str) -> str | None:
    """Return the file that a link in a folder leads to; None if there is no such link."""
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
    """Return the sonames that a module is linked with, by its first readable file."""
    for path in paths:
        try:
            needed = ElfFile(path).needed
        except (OSError, ValueError):
            continue
        if needed is not None:
            return needed
    return ()
