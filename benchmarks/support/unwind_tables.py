"""Reads which code the unwind table of a file covers, without the tracer's own reader."""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

HEADER = 12


@cache
def covered(path: str) -> tuple[list[int], list[int]]:
    """Return the begins and the ends of code with an entry, in the order of addresses."""
    with Path(path).open("rb") as file:
        elf = ELFFile(file)
        segments = list(elf.iter_segments())
        headers = [segment for segment in segments if segment["p_type"] == "PT_GNU_EH_FRAME"]
        if not headers:
            return [], []
        table = headers[0]["p_vaddr"]
        for segment in segments:
            begin = segment["p_vaddr"]
            if segment["p_type"] == "PT_LOAD" and begin <= table < begin + segment["p_filesz"]:
                data = segment.data()
                break
    (count,) = struct.unpack_from("<I", data, table - begin + 8)
    pairs = struct.iter_unpack("<ii", data[table - begin + HEADER :][: 8 * count])
    begins, ends = [], []
    for location, entry in pairs:
        # length, distance to the CIE, begin of the code, size of the code
        (size,) = struct.unpack_from("<I", data, table + entry - begin + 12)
        begins.append(table + location)
        ends.append(table + location + size)
    return begins, ends


def is_covered(path: str, address: int) -> bool:
    """Return whether an address has an entry; symbols of the file use the same addresses."""
    begins, ends = covered(path)
    at = bisect_right(begins, address) - 1
    return at >= 0 and address < ends[at]
