"""A core file: a process at the moment when the file was written."""

from __future__ import annotations

import bisect
import mmap
import os
import signal
import struct
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.handle import own
from nptltrace._files.elf import CORE, LOAD, NOTE, Elf, read_elf
from nptltrace.errors import NativeError, PttError, UsageError
from nptltrace.hang.targets.core_notes import read_notes
from nptltrace.hang.targets.mapped_modules import modules_of
from nptltrace.hang.targets.target import TID_AT, Target, Thread
from nptltrace.trace.code.modules import Module

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.hang.targets.core_notes import CoreNotes

__all__ = ["Core"]

_HEADER_SIZE = 64
_X86_64 = 62
_EXECUTABLE = 1
_TIDS = 1 << 22  # the largest thread id of the kernel
# A sparse file may claim more notes than fit into memory.
_NOTES_MAX = 1 << 30
_COMPRESSED = {
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\xfd7zX": "xz -d",
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"\x1f\x8b\x08": "gzip -d",
}


class _Segment(NamedTuple):
    """A piece of memory in the file.

    Attributes:
        start: The address.
        size: The number of bytes in the file.
        offset: The offset in the file.
    """

    start: int
    size: int
    offset: int


class Core(Target):
    """A core file of the kernel or of a debugger.

    Args:
        path: The file.
        program: The program of the process, if it is no longer at its original path.

    Raises:
        PttError: The file cannot be read, is no core file, or is from another architecture.
        UsageError: The program is not the program of the process.
    """

    machine = "x86_64"

    def __init__(self, path: Path, program: Path | None = None) -> None:
        self.path, self._program = path, program
        self.remarks = []
        self._segments: list[_Segment] = []
        self._images: dict[Module, Elf | None] = {}
        self._code: list[range] = []
        if path.exists() and not path.is_file():
            raise PttError(f"{path} is no file")
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                self._data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except ValueError:
            raise PttError(f"{path} is empty, and no core file") from None
        except OSError as error:
            raise NativeError(f"cannot read {path}", error.errno or 0) from None
        own(self, self._data.close)
        self.start_unix_ns = status.st_mtime_ns
        try:
            self._notes = self._parse(status.st_size)
        except (ValueError, struct.error):
            raise PttError(f"{path} is damaged or incomplete: cannot read its notes") from None
        if not self._notes.threads:
            raise PttError(f"{path} is incomplete, or has no threads")
        self.pid = self._notes.pid or next(iter(self._notes.threads))
        self.name = self._notes.name
        if program is not None:
            self._check_program(program)

    @property
    def title(self) -> str:
        """The name of the target in reports."""
        ended = self._notes.signal
        try:
            by = f", ended by {signal.Signals(ended).name}" if ended else ""
        except ValueError:
            by = f", ended by signal {ended}"
        return f"core file of process {self.pid} ({self.name}{by})"

    @cached_property
    def modules(self) -> list[Module]:
        """The mapped files with code."""
        modules = [m for m in modules_of(self._notes.mappings, self._dumped) if self._has_code(m)]
        if self._program is None:
            return modules
        entry, path = self._notes.entry, str(self._program.absolute())
        build_id = elf.build_id if (elf := read_elf(self._program)) is not None else ""
        return [
            Module(path, build_id, m.start, m.end, m.offset, m.bias)
            if m.start <= entry < m.end
            else m
            for m in modules
        ]

    def _has_code(self, module: Module) -> bool:
        """Return whether a module is a program or library: it has a header or executable pages."""
        mapped = any(module.start <= code.start < module.end for code in self._code)
        return mapped or module.bias is not None

    def threads(self) -> list[Thread]:
        """Return the threads in the order of their ids."""
        return list(self._threads.values())

    def thread(self, tid: int) -> Thread | None:
        """Return a thread, None if there is no such thread."""
        return self._threads.get(tid)

    def sharers(self, address: int) -> frozenset[int] | None:
        """Return no processes for private memory, and None for memory that others may have mapped.

        The list of mapped files contains shared memory, with or without a name. The variables of a
        program or library are private.
        """
        mappings = self._notes.mappings
        mapped = any(mapping.start <= address < mapping.end for mapping in mappings)
        private = mappings and (not mapped or self.map.only(address) is not None)
        return frozenset() if private else None

    @cached_property
    def _inner(self) -> dict[int, int]:
        """The ids of the threads in their own PID namespace; empty if the ids are not reliable.

        A debugger outside this PID namespace writes other ids into the file.
        """
        tids: dict[int, int] = {}
        for tid, registers in self._notes.threads.items():
            data = self.read(registers.thread_pointer + TID_AT, 4)
            tids[tid] = int.from_bytes(data, "little")
        valid = all(0 < inner <= _TIDS for inner in tids.values())
        return tids if valid and len({*tids.values()}) == len(tids) else {}

    @cached_property
    def _threads(self) -> dict[int, Thread]:
        return {
            tid: registers.apply(Thread(tid, self._inner.get(tid, tid), "", ""))
            for tid, registers in sorted(self._notes.threads.items())
        }

    def blocked_signals(self, tid: int) -> int:
        """Return the blocked signals of a thread as a bit mask."""
        return self._notes.blocked.get(tid, 0)

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of memory: the bytes before the first missing byte.

        Code that is not in the core file comes from the mapped file, if it still exists.
        """
        return self._dumped(address, size) or self._code_at(address, size)

    def _code_at(self, address: int, size: int) -> bytes:
        """Return code of a module from its file; empty if the file is gone or has changed."""
        code = next((code for code in self._code if address in code), None)
        module = self.map.only(address) if code is not None else None
        if code is None or module is None or not module.build_id:
            return b""
        if module not in self._images:
            self._images[module] = _image(module)
        image, size = self._images[module], min(size, code.stop - address)
        return image.mapped(address - (module.bias or 0), size) if image is not None else b""

    def _dumped(self, address: int, size: int) -> bytes:
        """Return memory from the core file: the bytes before the first missing byte."""
        data = b""
        while len(data) < size:
            begin = address + len(data)
            number = bisect.bisect_right(self._segments, begin, key=lambda s: s.start) - 1
            if number < 0 or begin - self._segments[number].start >= self._segments[number].size:
                break
            segment = self._segments[number]
            skipped = begin - segment.start
            count = min(size - len(data), segment.size - skipped)
            at = segment.offset + skipped
            piece = self._data[at : at + count]
            data += piece
            if len(piece) < count:
                break
        return data

    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not in the file may have been alive."""
        del inner_tid
        return not private or not self._inner

    def _parse(self, size: int) -> CoreNotes:
        """Read the program headers, and return the contents of the notes."""
        self._check_kind()
        elf = Elf(lambda at, size: self._data[at : at + size], size)
        if not elf.program_headers:
            raise ValueError("it has no segments")
        notes: dict[tuple[int, int], bytes] = {}
        missing = noted = 0
        for kind, flags, offset, start, length, extent, _ in elf.program_headers:
            if kind == NOTE:
                if offset + length > size:
                    raise ValueError("notes are cut short")
                noted += length if (offset, length) not in notes else 0
                if noted > min(size, _NOTES_MAX):
                    raise ValueError("more notes than there can be")
                notes[offset, length] = self._data[offset : offset + length]
            if kind == LOAD and flags & _EXECUTABLE:
                self._code.append(range(start, start + extent))
            if kind == LOAD and length:
                self._segments.append(_Segment(start, length, offset))
                missing += max(offset + length - size, 0) > 0
        self._segments.sort()
        if missing:
            self.remarks.append(
                f"{self.path} is cut short: of {missing} of {len(self._segments)} pieces of memory "
                "not all is there (ulimit -c)"
            )
        return read_notes(b"".join(notes.values()))

    def _check_kind(self) -> None:
        """Refuse a file that is no core file of x86-64."""
        head = self._data[:20]
        for magic, command in _COMPRESSED.items():
            if head.startswith(magic):
                raise PttError(f"{self.path} is compressed: unpack it first (`{command}`)")
        if head[:4] != b"\x7fELF" or len(self._data) < _HEADER_SIZE:
            raise PttError(f"{self.path} is no core file")
        if head[4:6] != b"\x02\x01":
            raise PttError(f"{self.path} is of another architecture than x86-64")
        kind, machine = struct.unpack_from("<HH", head, 16)
        if kind != CORE:
            raise PttError(f"{self.path} is a program or a library, and no core file")
        if machine != _X86_64:
            raise PttError(f"{self.path} is of another architecture than x86-64")

    def _check_program(self, program: Path) -> None:
        """Refuse a program with another build-id than the program of the process."""
        try:
            elf = read_elf(program)
        except OSError as error:
            raise NativeError(f"cannot read {program}", error.errno or 0) from None
        if elf is None:
            raise UsageError(f"{program} is no ELF file")
        entry, modules = self._notes.entry, modules_of(self._notes.mappings, self._dumped)
        original = next((module for module in modules if module.start <= entry < module.end), None)
        if original is not None and original.build_id not in {"", elf.build_id}:
            raise UsageError(
                f"{program} is not the program of {self.path}, which is {original.path} "
                f"(build-id {original.build_id})"
            )


def _image(module: Module) -> Elf | None:
    """Return the file of a module, None if the file is gone or has another build-id."""
    try:
        elf = Elf.open(module.path)
    except (OSError, ValueError):
        return None
    return elf if elf.build_id == module.build_id else None
