"""The unwind table of a module's file: where the registers of a caller are."""

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

# Between two sections that are looked up together there are no more bytes than this.
_SPAN_MAX = 1 << 28


class Processor(NamedTuple):
    """Numbers that DWARF gives to the registers of an architecture.

    Attributes:
        number: The architecture, as the C interpreter of unwind tables knows it.
        stack: The stack pointer.
        frame: The frame pointer.
        returns: The return address.
    """

    number: int
    stack: int
    frame: int
    returns: int


# By the names that `uname -m` has.
PROCESSORS = {
    "x86_64": Processor(PTT_UNWIND_X86_64, 7, 6, 16),
    "aarch64": Processor(PTT_UNWIND_AARCH64, 31, 29, 30),
}


class Row(NamedTuple):
    """Where the caller's registers are, for one place in the code.

    Attributes:
        register: The canonical frame address is this register, by its DWARF number,
        offset: and this many bytes.
        saved: Offsets from the canonical frame address at which registers are saved, by number;
            None for a register whose place is not known.
        returns: The same of the return address; None if nothing called the function, too.
        signal: A signal handler returns to this place.
        begin: The address where the function of the place begins, as the file counts it.
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
        paths: Its files. The first file that has a table counts; without such a file there are no
            rows.
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
        """Copy both sections of the table, as far from each other as in memory."""
        frames, header = elf.named(".eh_frame"), elf.named(".eh_frame_hdr")
        data = elf.data(frames)  # a debug file has the section header alone
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
        """Return what holds at an address as the file counts it, None where nothing is known."""
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
