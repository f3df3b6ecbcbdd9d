"""The modules of a process by its memory map, as their headers in its memory say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._dataclasses import replace
from nptltrace._files.elf import Elf
from nptltrace.trace.code.modules import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Mapping", "modules_of"]

_NO_MODULES, _NO_FILE = ("/dev/", "/SYSV"), "/memfd:"
_DELETED = " (deleted)"
_PAGE = 4096


class Mapping(NamedTuple):
    """A part of a file that is mapped.

    Attributes:
        start: First address.
        end: First address behind it.
        offset: Where in the file it begins.
        path: The file, as the process knows it.
    """

    start: int
    end: int
    offset: int
    path: str


def modules_of(
    mappings: Iterable[Mapping],
    read: Callable[[int, int], bytes],
    root: str = "",
    image: Callable[[Mapping], str] = lambda _: "",
) -> list[Module]:
    """Return the modules of a process, each by the build-id in its memory.

    A file may have been replaced since by another of its name: its own headers count, and a file
    with another build-id is not used.

    Args:
        mappings: In the order of addresses.
        read: Reads memory.
        root: What to put before the paths.
        image: Returns a path to the mapped contents of a file that is gone, or nothing.
    """
    modules: list[Module] = []
    for mapping in mappings:
        start, end, offset, name = mapping
        path = name.removesuffix(_DELETED)
        if not path.startswith("/") or path.startswith(_NO_MODULES):
            continue
        place = root + path
        # The segments of a small file may all lie in its first page.
        if modules and modules[-1].path == place and (offset or start < modules[-1].end):
            modules[-1] = modules[-1].joined(Module(place, "", start, end))
        elif not offset:
            module = _module(place, start, end, read)
            if module is not None:
                gone = name != path
                modules.append(replace(module, image=image(mapping)) if gone else module)
    return modules


def _module(path: str, start: int, end: int, read: Callable[[int, int], bytes]) -> Module | None:
    """Return the module with its header at an address; None for a file of another kind."""
    head = read(start, min(_PAGE, end - start))
    if not head:
        return None if path.startswith(_NO_FILE) else Module(path, "", start, end)

    def part(at: int, size: int) -> bytes:
        if at + size <= len(head):
            return head[at : at + size]
        return read(start + at, size) if start + at + size <= end else b""

    try:
        elf = Elf(part)
    except ValueError:
        return None
    bias = elf.bias(start, 0)
    if bias is None:
        return None
    low, high = elf.extent(bias)
    return Module(path, elf.build_id, low, max(high, end), 0, bias)
