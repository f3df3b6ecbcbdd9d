"""The notes of a core file: the process, the registers of its threads, the mapped files."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace._files.elf import notes_of
from nptltrace.hang.targets.mapped_modules import Mapping
from nptltrace.hang.targets.registers import SIZE, Registers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CoreNotes", "read_notes"]

_PRSTATUS, _PRPSINFO, _AUXV = 1, 3, 6
_SIGINFO, _FILE = 0x5349_4749, 0x4649_4C45
# `struct elf_prstatus` (linux/elfcore.h): the signal, the blocked signals, the thread, registers.
_SIGNAL, _BLOCKED = struct.Struct("<i"), struct.Struct("<24xQ")
_TID, _REGISTERS = struct.Struct("<32xi"), 112
# `struct elf_prpsinfo`: the process and its name.
_PROCESS = struct.Struct("<24xi12x16s")
_AT_ENTRY = 9


@dataclass(slots=True)
class CoreNotes:
    """The contents of the notes.

    Attributes:
        pid: The process id, in the PID namespace of the writer of the file.
        name: The name of the process.
        signal: The signal that ended the process, or 0.
        entry: The entry point of the program; 0 if it is not known.
        threads: The registers of the threads, by thread id.
        blocked: The blocked signals of the threads as bit masks, by thread id.
        mappings: The mapped parts of files.
    """

    pid: int = 0
    name: str = ""
    signal: int = 0
    entry: int = 0
    threads: dict[int, Registers] = field(default_factory=dict)
    blocked: dict[int, int] = field(default_factory=dict)
    mappings: list[Mapping] = field(default_factory=list)


def read_notes(data: bytes) -> CoreNotes:
    """Read the notes of a core file (core(5), elf(5)).

    Args:
        data: The contents of the PT_NOTE segments.

    Raises:
        ValueError: The notes are cut short, or are not of a core file.
        struct.error: As above.
    """
    notes = CoreNotes()
    for name, kind, content in notes_of(data):
        if name.rstrip(b"\0") != b"CORE":
            continue
        if kind == _PRSTATUS:
            registers = Registers(content[_REGISTERS : _REGISTERS + SIZE])
            (tid,) = _TID.unpack_from(content)
            notes.threads.setdefault(tid, registers)
            notes.blocked.setdefault(tid, *_BLOCKED.unpack_from(content))
            # gcore sends no signal: the first thread has an ordinary stop, or 0.
            notes.signal = notes.signal or _SIGNAL.unpack_from(content)[0]
        elif kind == _PRPSINFO:
            notes.pid, text = _PROCESS.unpack_from(content)
            notes.name = text.partition(b"\0")[0].decode("utf-8", "replace")
        elif kind == _AUXV:
            pairs = struct.iter_unpack("<QQ", content[: len(content) // 16 * 16])
            notes.entry = next((value for key, value in pairs if key == _AT_ENTRY), 0)
        elif kind == _FILE:
            notes.mappings = list(_mappings(content))
    return notes


def _mappings(data: bytes) -> Iterator[Mapping]:
    count, page = struct.unpack_from("<QQ", data)
    if count > len(data) // 24:
        raise ValueError("more mapped files than fit")
    paths = data[16 + 24 * count :].split(b"\0")
    for number, path in zip(range(count), paths, strict=False):
        start, end, offset = struct.unpack_from("<QQQ", data, 16 + 24 * number)
        yield Mapping(start, end, offset * page, os.fsdecode(path))
