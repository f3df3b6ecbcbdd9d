"""Rows of unwind tables: equal with and without a sorted header, none from a damaged file."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from nptltrace._files.elf import Elf, text_at
from nptltrace.hang.stack.unwind_table import PROCESSORS, UnwindTable
from tests.processors import Processor

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.hang.stack.unwind_table import Row
    from tests.support import Compiler

_HERE = next(name for name in PROCESSORS if Processor(name).is_here())
_CODE = """
long called(long);
long leaf(long n) { return n + 1; }
long keeps(long a, long b) { long c = called(a); return c + called(b) * called(c); }
long moves(long n) { char room[n]; room[0] = called(n); return called((long)room); }
"""


def _rows(path: Path) -> dict[tuple[str, int], Row | None]:
    """Return the row for each byte of each function, with `begin` relative to the function."""
    table = UnwindTable([path], PROCESSORS[_HERE])
    symbols, strings = Elf.open(path).symbols(".symtab")
    rows: dict[tuple[str, int], Row | None] = {}
    for name, info, _, _, value, size in symbols:
        for at in range(size if info & 15 == 2 else 0):
            row = table.row(value + at)
            rows[text_at(strings, name), at] = row and row._replace(begin=row.begin - value)
    return rows


def test_rows_need_no_sorted_header(compile_c: Compiler) -> None:
    flags = ("-O2", "-shared", "-fPIC", "-fasynchronous-unwind-tables")
    plain = compile_c(_CODE, *flags, "-Wl,--eh-frame-hdr", name="plain")
    without = compile_c(_CODE, *flags, "-Wl,--no-eh-frame-hdr", name="without")
    assert Elf.open(plain).named(".eh_frame_hdr") is not None
    assert Elf.open(without).named(".eh_frame_hdr") is None
    rows = {at: row for at, row in _rows(plain).items() if at[0] in {"leaf", "keeps", "moves"}}
    others = _rows(without)
    assert {at: others[at] for at in rows} == rows
    assert {name for (name, _), row in rows.items() if row} == {"leaf", "keeps", "moves"}
    first = rows["keeps", 0]
    assert first is not None
    assert (first.register, first.signal, first.begin) == (PROCESSORS[_HERE].stack, False, 0)
    assert max(len(row.saved) for row in rows.values() if row) > 1


def test_a_damaged_file_causes_no_error(compile_c: Compiler, tmp_path: Path) -> None:
    whole = compile_c(_CODE, "-O2", "-shared", "-fPIC").read_bytes()
    dice, path = random.Random(42), tmp_path / "damaged"  # noqa: S311 -- repeatable
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(20):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data[: dice.choice([len(data), dice.randrange(len(data))])])
        table = UnwindTable([path], PROCESSORS[dice.choice([*PROCESSORS])])
        for _ in range(20):
            table.row(dice.choice([dice.randrange(1 << 14), dice.randrange(1 << 64)]))
    assert UnwindTable([tmp_path / "none"], PROCESSORS["x86_64"]).row(0) is None
