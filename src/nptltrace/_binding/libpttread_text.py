"""The name tables and the formatter of libpttread; see `pttread.h`."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from nptltrace._binding.handle import Handle
from nptltrace._binding.headers import pttread as c
from nptltrace._binding.libpttread import library
from nptltrace._binding.library import check

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace._binding.libpttread import Buffer, Reader

__all__ = ["CODE", "CSV", "JSONL", "OBJECT", "RAW", "SENTENCE", "SITE", "TEXT", "Names"]

SITE, OBJECT, CODE = c.PTT_NAME_SITE, c.PTT_NAME_OBJECT, c.PTT_NAME_CODE
TEXT, RAW, JSONL, CSV, SENTENCE = c.PTT_TEXT, c.PTT_RAW, c.PTT_JSONL, c.PTT_CSV, c.PTT_SENTENCE


class Names(Handle):
    """Names for addresses and threads, and the formatter that uses them."""

    ROOM = 1 << 20

    def __init__(self, reader: Reader) -> None:
        lib = library()
        self._lib = lib
        self.reader = reader
        address = lib.ptt_names_create(reader.handle)
        self._own("make a name table", address, lib.ptt_names_destroy, reader)
        self._missing = (c.MissingName * 1024)()
        self._text = ctypes.create_string_buffer(self.ROOM)

    def show_process(self, *, on: bool) -> None:
        """Set whether lines of text have the pid."""
        self._lib.ptt_names_show_process(self.handle, on)

    def set_thread(self, thread: int, since_ns: int, text: str) -> None:
        """Set the name of a thread from a time on (-2**63: always); the name may be empty."""
        data = text.encode("utf-8", "replace")
        status = self._lib.ptt_names_set_thread(self.handle, thread, since_ns, data)
        check("name a thread", status)

    def set_pthread(self, process: int, pthread: int, since_ns: int, thread: int) -> None:
        """Set the thread of a pthread_t from a time on, until the next call for the pthread_t."""
        status = self._lib.ptt_names_set_pthread(self.handle, process, pthread, since_ns, thread)
        check("name a thread", status)

    def set(self, kind: int, process: int, address: int, text: str) -> None:
        """Name an address."""
        data = text.encode("utf-8", "replace")
        status = self._lib.ptt_names_set(self.handle, kind, process, address, data)
        check("name an address", status)

    def add_range(self, process: int, start: int, end: int) -> None:
        """Add a range in which objects and code may have names."""
        status = self._lib.ptt_names_add_range(self.handle, process, start, end)
        check("add a range", status)

    def missing(self, buffer: Buffer) -> list[tuple[int, int, int]]:
        """Return (kind, process, address) of addresses without a name; each is returned once."""
        missing: list[tuple[int, int, int]] = []
        while True:
            n = self._lib.ptt_names_missing(
                self.handle, buffer.pointer, buffer.count, self._missing, len(self._missing)
            )
            missing += [(m.kind, m.process, m.address) for m in self._missing[:n]]
            if n < len(self._missing):
                return missing

    def text(self, buffer: Buffer, style: int) -> Iterable[memoryview]:
        """Yield the events of a buffer as lines; each piece is valid until the next piece.

        Args:
            buffer: The events, with all columns.
            style: `TEXT`, `RAW`, `JSONL`, `CSV` or `SENTENCE`.
        """
        done, columns = c.i64(), c.Columns()
        ctypes.pointer(columns)[0] = buffer.columns
        left = buffer.count
        while left > 0:
            size = self._lib.ptt_text(
                self.handle, ctypes.byref(columns), left, style, self._text, self.ROOM,
                ctypes.byref(done),
            )  # fmt: skip
            self.reader.ensure_whole()
            yield memoryview(self._text)[: check("format events", size)]
            left -= done.value
            for name, array in buffer.arrays.items():
                step = done.value * ctypes.sizeof(array._type_)
                setattr(columns, name, getattr(columns, name) + step)
