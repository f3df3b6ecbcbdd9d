"""Which modules of a process stay where they are: static data there is used for nothing else."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.trace.info import Module, Process
    from nptltrace.trace.source import Source

__all__ = ["behind_all", "loaded_for_good"]

# Address space of processes ends here: with 47 bits, and with 48.
_ENDS = (1 << 47, 1 << 48)
_NEAR = 1 << 36


def loaded_for_good(process: Process, source: Source) -> list[Module]:
    """Return the program and the libraries that it, or one of those, is linked with.

    What a program loads while it runs (`dlopen`) it may unload again, and something else comes to
    lie there.

    Args:
        process: The process.
        source: The opened traces, which may have brought the files along.
    """
    by_name: dict[str, list[Module]] = {}
    for module in process.modules:
        by_name.setdefault(PurePath(module.path).name, []).append(module)
    wanted = [PurePath(process.exe).name]
    found: list[Module] = []
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        # A library may be mapped under the name of the file that its soname is a link to.
        for module in by_name.get(name) or _behind(name, process.modules):
            found.append(module)
            wanted += _needed(module, source)
    return found


def behind_all(process: Process) -> int | None:
    """Return an address behind which there is only the stack of the first thread, if that shows.

    Mappings are laid out downwards from below that stack, the libraries first.
    """
    last = max((module.end for module in process.modules), default=0)
    end = next((end for end in _ENDS if end > last), None)
    return None if end is None or not last else max(last, end - _NEAR)


def _behind(soname: str, modules: list[Module]) -> list[Module]:
    """Return the modules whose file a soname may lead to."""
    for module in modules:
        link = Path(module.path).parent / soname
        try:
            if link.is_symlink() and link.resolve() == Path(module.path).resolve():
                return [module]
        except OSError:
            continue
    stem = soname.split(".so", maxsplit=1)[0]
    return [m for m in modules if PurePath(m.path).name.startswith((stem + ".so", stem + "-"))]


def _needed(module: Module, source: Source) -> list[str]:
    """Return the sonames of the libraries that a module is linked with, if it can be read."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    bundles = [trace.path / "info" / "modules" / module.build_id for trace in source.traces]
    for path in [Path(module.path), *(b for b in bundles if module.build_id)]:
        try:
            with path.open("rb") as file:
                section = ELFFile(file).get_section_by_name(".dynamic")
                if not isinstance(section, DynamicSection):
                    continue
                return [str(vars(tag)["needed"]) for tag in section.iter_tags("DT_NEEDED")]
        except (OSError, ELFError):
            continue
    return []
