"""The tracer reads unwind tables as binutils do: every row of whole libraries' tables.

aarch64 tables are also read on other processors with its cross compiler and qemu-user.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.processors import Processor
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COMMON = re.compile(r'^([0-9a-f]+) \S+ \S+ CIE "(\w*)".* ra=(\d+)')
_ENTRY = re.compile(r"FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.")
_ROW = re.compile(r"^([0-9a-f]{16}) (\S+) +(.*)")
_BY_EXPRESSION = "exp"  # readelf does not print the expression itself


@dataclass(frozen=True)
class _Processor(Processor):
    """A processor, with readelf's names of its registers.

    Attributes:
        kept: readelf's names of the call-preserved registers and the return address.
        return_register: Number of the return address's column.
    """

    kept: tuple[str, ...]
    return_register: str


_X86 = _Processor("x86_64", ("rbx", "rbp", "r12", "r13", "r14", "r15", "ra"), "16")
_ARM = _Processor("aarch64", (*(f"x{number}" for number in range(19, 30)), "ra"), "30")
_HERE = _ARM if _ARM.is_here() else _X86
_LIBRARIES = (
    (_X86, "libc.so.6"),
    (_X86, "libstdc++.so.6"),
    (_X86, "libgcc_s.so.1"),
    (_X86, "ld-linux-x86-64.so.2"),
    (_ARM, "libc.so.6"),
    (_ARM, "libgcc_s.so.1"),
    (_ARM, "ld-linux-aarch64.so.1"),
)


def _rows(processor: _Processor, library: str) -> Iterator[tuple[int, str]]:
    """Offset and rule of the first byte of each row that binutils print."""
    # It exits with 1 if the separate file of debug information is missing.
    done = subprocess.run(
        [processor.tool("readelf"), "--wide", "--debug-dump=frames-interp", library],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    begin, columns, signal, of_signals = 0, [], False, set()
    elsewhere, strange = set(), False  # calls with an unusual place of the return address
    for line in done.stdout.splitlines():
        if entry := _ENTRY.search(line):
            begin, signal = int(entry[2], 16), entry[1] in of_signals
            strange = entry[1] in elsewhere
        elif common := _COMMON.match(line):
            begin = 0
            of_signals |= {common[1]} if "S" in common[2] else set()
            elsewhere |= {common[1]} if common[3] != processor.return_register else set()
        elif line.strip().startswith("LOC"):
            columns = line.split()[2:]
        elif begin and (row := _ROW.match(line)):
            places = re.sub(r"r\d+ \(\w+\)", "register", row[3]).split()
            saved = dict(zip(columns, places, strict=True))
            rule = _rule(processor.kept, begin, row[2], saved, signal=signal)
            yield int(row[1], 16), "none" if strange else rule


def _rule(
    kept: tuple[str, ...], begin: int, cfa: str, saved: dict[str, str], *, signal: bool
) -> str:
    if signal:
        return f"{begin:x} signal"
    if saved.get("ra", "u") == "u":
        return f"{begin:x} outermost"
    places = [saved.get(register, "u") for register in kept]
    if _BY_EXPRESSION in (cfa, *places):
        return _BY_EXPRESSION
    return " ".join(
        (f"{begin:x} {cfa}", *(f"{at}={_place(to)}" for at, to in zip(kept, places, strict=True)))
    )


def _place(message: str) -> str:
    """Return a rule as unwind_rows prints it; readelf calls an unchanged register `u` or `s`."""
    if message in {"u", "s"}:
        return "same"
    return message.replace("register", "r")


def _build(processor: _Processor, name: str, directory: Path) -> Path:
    """Compile a program of tests/native with the code it tests, under sanitizers if they run."""
    program, native = directory / name, ROOT / "native"
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    subprocess.run(
        [
            processor.tool("gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g",
            *(sanitizers if processor.is_here() else ()), f"-I{native}/unwind", f"-I{native}/tasks",
            ROOT / "tests" / "native" / f"{name}.c", native / "unwind" / "unwind.c",
            native / "tasks" / "unwind_image.c", "-o", program,
        ],
        check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize(
    ("processor", "name"), _LIBRARIES, ids=lambda value: getattr(value, "machine", value)
)
def test_rows_equal_those_of_readelf(processor: _Processor, name: str, tmp_path: Path) -> None:
    emulator = processor.emulator()
    program = _build(processor, "unwind_rows", tmp_path)
    library = processor.library(name)
    wanted = dict(_rows(processor, library))
    done = subprocess.run(
        [*emulator, program, library],
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
def test_damaged_tables_do_no_harm(name: str, tmp_path: Path) -> None:
    program = _build(_HERE, "unwind_fuzz", tmp_path)
    done = subprocess.run(
        [program, _HERE.library(name), "20000"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    assert int(done.stdout) > 1000
