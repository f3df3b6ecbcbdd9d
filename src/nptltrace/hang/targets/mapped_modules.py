"""The modules of a process, from its memory map and the ELF headers in its memory."""

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
    """A mapped part of a file.

    Attributes:
        start: The first address.
        end: The address after the last byte.
        offset: The offset in the file.
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
    """Return the modules of a process, each with the build-id from the process's memory.

    A new file may have replaced the mapped file since. So the headers in memory count, and a file
    with another build-id is not used.

    Args:
        mappings: The mapped files in the order of addresses.
        read: Reads memory: `read(address, size)`.
        root: The prefix of all paths.
        image: Returns a path to the mapped contents of a deleted file, or the empty string.
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
    """Return the module with its ELF header at an address; None for another kind of file."""
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
