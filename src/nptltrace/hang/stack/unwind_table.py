"""The unwind table of a module's file: the places of a caller's registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.headers.unwind_image import (
    PTT_UNWIND_AARCH64,
    PTT_UNWIND_LOST,
    PTT_UNWIND_SAME,
    PTT_UNWIND_X86_64,
)
from nptltrace._binding.libptttasks import callers_at
from nptltrace._files.elf import Elf

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["PROCESSORS", "Processor", "Row", "UnwindTable"]

# The largest distance of `.eh_frame` and `.eh_frame_hdr` in bytes, if both are used.
_SPAN_MAX = 1 << 28


class Processor(NamedTuple):
    """The DWARF numbers of registers of an architecture.

    Attributes:
        number: The number of the architecture in the C interpreter of unwind tables.
        stack: The stack pointer.
        frame: The frame pointer.
        returns: The return address.
    """

    number: int
    stack: int
    frame: int
    returns: int


# By the architecture's name from `uname -m`.
PROCESSORS = {
    "x86_64": Processor(PTT_UNWIND_X86_64, 7, 6, 16),
    "aarch64": Processor(PTT_UNWIND_AARCH64, 31, 29, 30),
}


class Row(NamedTuple):
    """The places of the caller's registers at one address (DWARF 5, section 6.4).

    Attributes:
        register: The canonical frame address (CFA) is the value of this register,
        offset: plus this number of bytes.
        saved: The offsets from the CFA of saved registers, by register; None for a register in an
            unknown place.
        returns: The offset of the return address; None if its place is not known, or if nothing
            called the function.
        signal: A signal handler returns to this address.
        begin: The begin of the function, as an address in the file.
    """

    register: int
    offset: int
    saved: dict[int, int | None]
    returns: int | None
    signal: bool
    begin: int


class UnwindTable:
    """The unwind table of one module.

    Args:
        paths: The files of the module. The first file with a table counts. Without a table there
            are no rows.
        processor: The architecture of the files.
    """

    def __init__(self, paths: Iterable[Path], processor: Processor) -> None:
        self._processor = processor
        self._image, self._address, self._header, self._frames = b"", 0, 0, 0
        for path in paths:
            try:
                self._read(Elf.open(path))
            except (OSError, ValueError):
                continue
            if self._image:
                return

    def _read(self, elf: Elf) -> None:
        """Copy both sections of the table, at the same distance as in memory."""
        frames, header = elf.named(".eh_frame"), elf.named(".eh_frame_hdr")
        data = elf.data(frames)  # a debug file has only the header of the section
        if frames is None or not data:
            return
        pieces = {frames.address: data}
        if header is not None and abs(header.address - frames.address) < _SPAN_MAX:
            pieces[header.address] = elf.data(header)
        else:
            header = None
        self._address = min(pieces)
        image = bytearray()
        for address, piece in sorted(pieces.items()):
            image[len(image) :] = bytes(max(address - self._address - len(image), 0))
            image[address - self._address :] = piece
        self._image = bytes(image)
        self._frames = frames.address - self._address
        self._header = header.address - self._address if header is not None else len(image)

    def row(self, address: int) -> Row | None:
        """Return the row for an address in the file, None if the table has no row for it."""
        callers = callers_at(
            self._image, address=self._address, header=self._header, frames=self._frames,
            processor=self._processor.number, pc=address,
        )  # fmt: skip
        if callers is None:
            return None
        saved = {
            register: offset if offset != PTT_UNWIND_LOST else None
            for register, offset in enumerate(callers.saved)
            if offset != PTT_UNWIND_SAME
        }
        return Row(
            callers.cfa_register, callers.cfa_offset, saved,
            saved.pop(self._processor.returns, None), bool(callers.is_signal), callers.function,
        )  # fmt: skip
