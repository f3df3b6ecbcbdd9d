"""Names in files that are larger than the memory: PTT reads only small parts of the files."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace._files.elf import Elf, text_at
from nptltrace.analysis.checking.handlers import _imports
from nptltrace.analysis.checking.static_data import _needed
from nptltrace.trace.symbols.elf.code import CodeTable
from nptltrace.trace.symbols.elf.object_file import ElfFile, checksum
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

HUGE = 1 << 40


@pytest.fixture
def library(compile_c: Callable[..., Path]) -> Path:
    return compile_c(
        "static int kept(int n) { return n + 1; }\nint take(int n) { return kept(n) * 3; }",
        "-g", "-O0", "-shared", "-fPIC",
    )  # fmt: skip


def found(path: Path) -> list[str]:
    """Return the names of the starts of both functions."""
    elf = ElfFile(path)
    addresses = {name: start for start, _, name in _functions(path)}
    table = CodeTable(elf)
    return [str(table.find(addresses[name] + 4)[0][0]) for name in ("kept", "take")]


def _functions(path: Path) -> list[tuple[int, int, str]]:
    symbols, strings = Elf.open(path).symbols(".symtab")
    return [(value, size, text_at(strings, name)) for name, _, _, _, value, size in symbols]


def test_a_file_that_continues_behind_its_sections_has_names(library: Path) -> None:
    before = found(library)
    os.truncate(library, HUGE)
    assert found(library) == before == ["kept (program.c:1)", "take (program.c:2)"]
    assert checksum(library) == -1


@pytest.mark.parametrize(
    ("section", "names"),
    [
        (".debug_info", ["kept", "take"]),
        (".text", ["kept (program.c:1)", "take (program.c:2)"]),
    ],
)
def test_a_section_larger_than_the_memory_is_not_read(
    section: str, names: list[str], library: Path
) -> None:
    data = bytearray(library.read_bytes())
    table, entry, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    wanted = Elf.open(library).named(section)
    assert wanted is not None
    for number in range(count):
        at = table + entry * number
        if struct.unpack_from("<Q", data, at + 24)[0] == wanted.offset:
            struct.pack_into("<Q", data, at + 32, HUGE - wanted.offset)
    library.write_bytes(data)
    os.truncate(library, HUGE)
    assert [item.partition(" ")[0] for item in found(library)] == [
        name.partition(" ")[0] for name in names
    ]
    assert found(library) == names


def test_compressed_sections_with_a_huge_size_are_not_read(library: Path) -> None:
    """The library that makes the table ends the whole process if it gets no memory."""
    packed = library.with_suffix(".packed")
    command: list[str | Path] = ["objcopy", "--compress-debug-sections=zlib", library, packed]
    if shutil.which("objcopy") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("objcopy cannot compress sections")
    assert found(packed) == ["kept (program.c:1)", "take (program.c:2)"]
    data = bytearray(packed.read_bytes())
    table, entry, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    for number in range(count):
        flags, _, offset = struct.unpack_from("<QQQ", data, table + entry * number + 8)
        if flags & 0x800:
            struct.pack_into("<Q", data, offset + 8, 1 << 45)
    packed.write_bytes(data)
    assert found(packed) == ["kept", "take"]


def test_a_trace_with_sparse_files_of_a_terabyte_is_read(ptt: Ptt, small_trace: Path) -> None:
    for name in ("session.json", "processes.jsonl", "symbols.jsonl"):
        (small_trace / "info" / name).touch()
        os.truncate(small_trace / "info" / name, HUGE)
    done = ptt("report", small_trace)
    assert "info/processes.jsonl cannot be read: File too large" in done.stderr
    os.truncate(small_trace / "metadata", HUGE)
    assert "metadata: File too large" in ptt("report", small_trace, status=2).stderr


def test_needed_libraries_of_a_damaged_library(library: Path, tmp_path: Path) -> None:
    data = library.read_bytes()
    plain = _imports(library)
    assert _needed(Path("/bin/sh")) == ("libc.so.6",)
    os.truncate(library, HUGE)
    _imports.cache_clear()
    assert _imports(library) == plain
    table, entry, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    for place in [40, *(table + entry * number + 24 for number in range(count))]:
        for value in (1 << 63, (1 << 64) - 8):
            damaged = bytearray(data)
            struct.pack_into("<Q", damaged, place, value)
            path = tmp_path / f"damaged-{place}-{value}"
            path.write_bytes(damaged)
            assert isinstance(_needed(path), tuple)
            assert isinstance(_imports(path), frozenset | None)


@pytest.mark.parametrize("compact", [False, True])
def test_a_stream_file_with_a_hole_is_read(tmp_path: Path, ptt: Ptt, *, compact: bool) -> None:
    """The search for packets skips holes, and finds the packets behind the holes."""
    built = Builder(tmp_path / "run.ptt")
    built.thread(1, [Event(10**12, "MUTEX_TAKEN", 0x4040, 5)])
    trace = built.write()
    if compact:
        ptt("compact", "-o", tmp_path / "small", trace)
        trace = tmp_path / "small"
    (stream,) = trace.glob("stream*")
    packets = stream.read_bytes()
    with stream.open("r+b") as file:
        file.seek(HUGE // 2)
        file.write(packets)
    os.truncate(stream, HUGE)
    if stream.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("files have no holes here")
    limit = (
        f"ulimit -t 20; exec {shlex.join(map(str, ptt.command('stat', '--format', 'json', trace)))}"
    )
    done = subprocess.run(
        ["sh", "-c", limit], env=ptt.environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["events"] == 2
