"""Damages files: fields of ELF files, packets and segments, values of JSON, text, and length.

A fuzzer imports this module. The same seed does the same damage to the same file.
"""

from __future__ import annotations

import json
import os
import re
import struct
from functools import cache
from typing import TYPE_CHECKING

from tests.fuzz.test_random_input import json_lines, json_mutate, mutate

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Field", "damage"]

Field = tuple[int, int]  # offset and size
# Text that controls a terminal, and lines that look like lines of PTT.
CONTROLS = ("\x1b[2J\x07\r\b\x7f", "\x9b31m\x85", "\u202e\u2066", "\n\nptt: ", "\x1b]0;x\x07")
EHDR = ((16, 2), (18, 2), (24, 8), (32, 8), (40, 8), *((at, 2) for at in range(52, 64, 2)))
PHDR = ((0, 4), (4, 4), *((at, 8) for at in range(8, 56, 8)))
SHDR = ((0, 4), (4, 4), *((at, 8) for at in range(8, 40, 8)), (40, 4), (44, 4), (48, 8), (56, 8))
SYMBOL = ((0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8))
PACKET = 128, 92  # size of its head, offset of its checksum
PACKET_FIELDS = (
    (0, 4), (20, 4), *((at, 8) for at in range(24, 80, 8)), *((at, 4) for at in range(80, 112, 4)),
)  # fmt: skip


def changed(old: int, size: int, dice: random.Random) -> int:
    """Return another number for a field with that number of bytes."""
    bits = 8 * size
    most = (1 << bits) - 1
    one_bit, few = 1 << dice.randrange(bits), dice.randint(1, 4)
    new = dice.choice(
        (0, 1, most, most >> 1, (most >> 1) + 1, most - few, one_bit, one_bit - 1, old + few,
         old - few, old * 2, old // 2, old ^ one_bit, -old, dice.getrandbits(bits))
    )  # fmt: skip
    return new & most


def put(data: bytearray, field: Field, dice: random.Random, others: Sequence[Field] = ()) -> None:
    """Change a field to another number, or to the value of another field."""
    at, size = field
    if others and dice.random() < 0.3:
        source = dice.choice(others)[0]
        data[at : at + size] = data[source : source + size].ljust(size, b"\0")
    elif at + size <= len(data):
        old = int.from_bytes(data[at : at + size], "little")
        data[at : at + size] = changed(old, size, dice).to_bytes(size, "little")


def elf_fields(data: bytes) -> list[list[Field]]:
    """Return the fields of an ELF file, in groups."""
    at, sections_at = struct.unpack_from("<QQ", data, 32)
    count, _, sections, names = struct.unpack_from("<HHHH", data, 56)
    segments = [at + 56 * n for n in range(count)]
    groups = [[*EHDR], [(s + o, n) for s in segments for o, n in PHDR]]
    for segment in segments:
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, segment)
        if kind == 4:
            groups += notes_fields(data, offset, offset + size)
    headers = [sections_at + 64 * n for n in range(sections)]
    groups.append([(h + o, n) for h in headers for o, n in SHDR])
    strings = struct.unpack_from("<Q", data, headers[names] + 24)[0] if headers else 0
    for header in headers:
        name, kind, _, _, offset, size = struct.unpack_from("<IIQQQQ", data, header)
        called = data[strings + name : data.index(b"\0", strings + name)]
        if kind in {2, 11}:
            entries = range(offset, offset + size - 23, 24)
            groups.append([(e + o, n) for e in entries for o, n in SYMBOL])
        elif kind == 6:
            groups.append([(o, 8) for o in range(offset, offset + size - 7, 8)])
        elif kind != 8 and called.startswith(
            (b".debug", b".eh_frame", b".gnu", b".zdebug", b".note")
        ):
            groups.append([(offset + o, n) for o in range(min(size, 48)) for n in (1, 2, 4, 8)])
            groups.append(
                [(offset + o, n) for o in range(0, size, 1 + size // 2000) for n in (1, 4)]
            )
    return [group for group in groups if group]


def notes_fields(data: bytes, at: int, end: int) -> Iterator[list[Field]]:
    while at + 12 <= end:
        name, size, _ = struct.unpack_from("<III", data, at)
        begin = at + 12 + (name + 3 & ~3)
        yield [(at, 4), (at + 4, 4), (at + 8, 4)] * 4 + [
            (o, 8) for o in range(begin, begin + size - 7, 8)
        ]
        at = begin + (size + 3 & ~3)


def elf(data: bytearray, dice: random.Random, groups: list[list[Field]]) -> None:
    """Change an ELF file: change fields, or repeat headers thousands of times."""
    if dice.random() < 0.05:
        repeat_headers(data, dice)
        return
    for _ in range(dice.randint(1, 5)):
        group = dice.choice(groups)
        put(data, dice.choice(group), dice, group)


def repeat_headers(data: bytearray, dice: random.Random) -> None:
    """Append a table of headers that are all the same, or almost the same."""
    size, place, number = dice.choice(((56, 32, 56), (64, 40, 60)))
    (at,), (count,) = struct.unpack_from("<Q", data, place), struct.unpack_from("<H", data, number)
    if not count:
        return
    times = dice.choice((2, 500, 20_000, 65_000))
    begin = at + size * dice.randrange(count)
    table = bytearray(data[begin : begin + size] * times)
    if dice.random() < 0.5:
        field = 8 * dice.randrange(1, 6)
        for n in range(times):
            old = int.from_bytes(table[n * size + field : n * size + field + 8], "little")
            struct.pack_into("<Q", table, n * size + field, (old + 4 * n) % (1 << 64))
    struct.pack_into("<Q", data, place, len(data))
    struct.pack_into("<H", data, number, times)
    data += table


def packets(data: bytearray, dice: random.Random) -> None:
    """Change fields of packets, and repair most checksums."""
    heads, at = [], 0
    while at + PACKET[0] <= len(data):
        heads.append(at)
        at += struct.unpack_from("<Q", data, at + 56)[0] // 8 or PACKET[0]
    for _ in range(dice.randint(1, 6)):
        head = dice.choice(heads)
        fields = (
            PACKET_FIELDS
            if dice.random() < 0.4
            else [(8 * dice.randrange(16, 256), dice.choice((1, 2, 8)))]
        )
        put(data, (head + dice.choice(fields)[0], dice.choice(fields)[1]), dice)
    if dice.random() < 0.2 and len(heads) > 1:
        begin, end = sorted(dice.sample([*heads, len(data)], 2))
        data[begin:begin] = data[begin:end]
    if dice.random() < 0.9:
        repair(data)


def repair(data: bytearray) -> None:
    """Correct the checksums of packets."""
    at, (head, crc) = 0, PACKET
    while at + head <= len(data):
        size = struct.unpack_from("<Q", data, at + 56)[0] // 8
        if not head <= size <= len(data) - at:
            break
        data[at + crc : at + crc + 4] = bytes(4)
        struct.pack_into("<I", data, at + crc, crc32c(data[at : at + size]))
        at += size


@cache
def crc_table() -> list[int]:
    table = []
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
        table.append(rest)
    return table


def crc32c(data: bytes | bytearray) -> int:
    table, rest = crc_table(), 0xFFFFFFFF
    for byte in data:
        rest = table[(rest ^ byte) & 0xFF] ^ rest >> 8
    return rest ^ 0xFFFFFFFF


def segment(data: bytearray, dice: random.Random) -> None:
    """Change words of a segment, most of them at places with data."""
    end = dice.choice((384, 8192, 1 << 20, len(data)))
    for _ in range(dice.randint(1, 8)):
        at = 4 * dice.randrange(min(end, len(data)) // 4)
        for _ in range(50):
            if any(data[at : at + 4]):
                break
            at = 4 * dice.randrange(min(end, len(data)) // 4)
        put(data, (at, dice.choice((4, 8))), dice)


def text(data: bytes, name: str, dice: random.Random) -> bytes:
    """Change a text: values of JSON, or bytes at any place."""
    chance = dice.random()
    if chance < 0.1:
        at = dice.randrange(len(data) + 1)
        deep = dice.choice((b"[", b'{"a":', b"(", b"struct { ")) * dice.choice((500, 100_000))
        return data[:at] + deep + data[at:]
    if name.endswith(".jsonl") and chance < 0.6:
        return numbers(json_lines(data, dice), dice)
    if name.endswith(".json") and chance < 0.6:
        return numbers(json.dumps(json_mutate(json.loads(data), dice)).encode(), dice)
    return numbers(data, dice) if chance < 0.8 else mutate(data, dice)


def numbers(data: bytes, dice: random.Random) -> bytes:
    """Change a number, or put text that controls a terminal into a string."""
    places = [*re.finditer(rb"\b[0-9a-f]+\b|[a-z/]{4,}", data)]
    for match in sorted(dice.sample(places, min(len(places), 2)), key=re.Match.start, reverse=True):
        if match[0].isdigit():
            new = b"%d" % changed(int(match[0]), 8, dice)
        else:
            new = (
                match[0]
                + json.dumps(dice.choice(CONTROLS), ensure_ascii=dice.random() < 0.7)[1:-1].encode()
            )
        data = data[: match.start()] + new + data[match.end() :]
    return data


def controls(data: bytearray, dice: random.Random) -> None:
    """Replace names by text that controls a terminal."""
    names = [*re.finditer(rb"[A-Za-z_/.]{6,}(?=\0)", data)]
    for match in dice.sample(names, min(len(names), 40)):
        new = dice.choice(CONTROLS).encode("utf-8" if dice.random() < 0.5 else "latin-1", "replace")
        data[match.start() : match.end()] = new[: match.end() - match.start()].ljust(
            match.end() - match.start(), b"x"
        )


@cache
def known_fields(path: Path) -> list[list[Field]]:
    """Return the fields of a sound ELF file, and of a core file also the words that PTT reads."""
    fields = elf_fields(path.read_bytes())
    looked_at = path.with_name("looked-at")
    if looked_at.exists():
        words = [tuple(field) for field in json.loads(looked_at.read_text(encoding="utf-8"))]
        fields += [words] * (1 + len(fields))
    return fields


def damage(path: Path, sound: Path, dice: random.Random) -> None:
    """Change one file."""
    data = bytearray(path.read_bytes())
    path.unlink()
    chance = dice.random()
    if path.suffix in {".json", ".jsonl"} or path.name == "metadata":
        data = bytearray(text(bytes(data), path.name, dice))
    elif chance < 0.08:
        data = bytearray(mutate(bytes(data), dice))
    elif chance < 0.13:
        controls(data, dice)
    elif path.name == "segment":
        segment(data, dice)
    elif path.name.startswith("stream-") and data.startswith(b"\xc1\x1f\xfc\xc1"):
        packets(data, dice)
    elif data.startswith(b"\x7fELF"):
        elf(data, dice, known_fields(sound))
    else:
        for _ in range(4):
            put(data, (dice.randrange(max(len(data), 1)), dice.choice((1, 4, 8))), dice)
    path.write_bytes(data)
    if dice.random() < 0.03:
        os.truncate(path, dice.choice((dice.randrange(len(data) + 1), 1 << dice.randrange(31, 43))))
