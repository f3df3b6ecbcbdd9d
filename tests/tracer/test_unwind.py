"""The tracer reads unwind tables as binutils do: every row of the tables of whole libraries."""

from __future__ import annotations

import platform
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="rules of another processor")

_COMMON = re.compile(r'^([0-9a-f]+) \S+ \S+ CIE "(\w*)"')
_ENTRY = re.compile(r"FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.")
_ROW = re.compile(r"^([0-9a-f]{16}) (\S+) +(.*)")
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15", "ra")
_BY_EXPRESSION = "exp"  # of which readelf does not say what it is


def _library(name: str) -> str:
    """Where the compiler finds it."""
    done = subprocess.run(
        ["g++", f"-print-file-name={name}"], capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def _rows(library: str) -> Iterator[tuple[int, str]]:
    """Offset and rule of the first byte of each row that binutils print."""
    # It ends with 1 where it misses the separate file of debug information.
    done = subprocess.run(
        ["readelf", "--wide", "--debug-dump=frames-interp", library],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    begin, columns, signal, of_signals = 0, [], False, set()
    for line in done.stdout.splitlines():
        if entry := _ENTRY.search(line):
            begin, signal = int(entry[2], 16), entry[1] in of_signals
        elif common := _COMMON.match(line):
            begin = 0
            of_signals |= {common[1]} if "S" in common[2] else set()
        elif line.strip().startswith("LOC"):
            columns = line.split()[2:]
        elif begin and (row := _ROW.match(line)):
            places = re.sub(r"r\d+ \(\w+\)", "register", row[3]).split()
            saved = dict(zip(columns, places, strict=True))
            yield int(row[1], 16), _rule(begin, row[2], saved, signal=signal)


def _rule(begin: int, cfa: str, saved: dict[str, str], *, signal: bool) -> str:
    if signal:
        return f"{begin:x} signal"
    if saved["ra"] == "u":
        return f"{begin:x} outermost"
    places = [saved.get(register, "u") for register in _KEPT]
    if _BY_EXPRESSION in (cfa, *places):
        return _BY_EXPRESSION
    return " ".join(
        (f"{begin:x} {cfa}", *(f"{at}={_place(to)}" for at, to in zip(_KEPT, places, strict=True)))
    )


def _place(message: str) -> str:
    """As unwind_rows prints it; readelf calls what is in its place undefined, or the same."""
    if message in {"u", "s"}:
        return "same"
    return message.replace("register", "r")


def _build(name: str, directory: Path) -> Path:
    """Compile a program of tests/native with what it tests, under sanitizers."""
    program, tracer = directory / name, ROOT / "native" / "tracer"
    subprocess.run(
        [
            "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all", f"-I{tracer}/call_site",
            ROOT / "tests" / "native" / f"{name}.c", tracer / "call_site" / "unwind.c",
            "-o", program,
        ],
        check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize(
    "name", ["libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"]
)
def test_rows_of_a_library(name: str, tmp_path: Path) -> None:
    program = _build("unwind_rows", tmp_path)
    library = _library(name)
    wanted = dict(_rows(library))
    done = subprocess.run(
        [program, library],
        input="\n".join(f"{offset:x}" for offset in wanted),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    lines = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    reported = {int(offset, 16): rule for offset, rule in lines}
    wrong = {
        f"{at:x}": (reported[at], rule)
        for at, rule in wanted.items()
        if reported[at] != rule != _BY_EXPRESSION
    }
    assert not wrong
    assert sum(rule != _BY_EXPRESSION for rule in wanted.values()) > 100


@pytest.mark.parametrize("name", ["libgcc_s.so.1", "libstdc++.so.6"])
def test_damaged_tables(name: str, tmp_path: Path) -> None:
    program = _build("unwind_fuzz", tmp_path)
    done = subprocess.run(
        [program, _library(name), "20000"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    assert int(done.stdout) > 1000
