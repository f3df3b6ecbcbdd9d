"""Events on a narrow terminal: no line is wider, and call sites stay together."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from nptltrace.cli.output.text.folding import Folder, folded
from tests.cli.test_top import trace_of
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


def test_a_site_moves_to_the_next_line_as_a_whole() -> None:
    assert folded("1 s  ", "took mutex m", "main (a b.c:3)", width=24, indent=2) == [
        "1 s  took mutex m",
        "  at main (a b.c:3)",
    ]
    assert folded("1 s  ", "took m", "f (b.c:3)", width=25, indent=2) == [
        "1 s  took m  at f (b.c:3)"
    ]


def test_lines_that_fit_do_not_change() -> None:
    found: list[bytes] = []
    line = b"   0.000000020  2 x  thread 2 took mutex \xff     at f\n"
    Folder(found.append, 80).write(memoryview(line))
    assert found == [line]


def test_bytes_that_are_not_utf8_stay() -> None:
    found: list[bytes] = []
    Folder(found.append, 40).write(memoryview(b"   1.0  thread \xff " + b"w" * 50 + b"  at f\n"))
    assert b"\xff" in found[0]


def test_view_fits_the_terminal(ptt: Ptt, trace_dir: Path) -> None:
    trace_of(trace_dir)
    master, terminal = pty.openpty()
    subprocess.run(
        ptt.command("view", trace_dir), env=ptt.environment({"COLUMNS": "50"}), stdout=terminal,
        check=True,
    )  # fmt: skip
    os.close(terminal)
    with os.fdopen(master, "rb") as file:
        shown = file.read1().decode()
    assert max(map(len, shown.splitlines())) <= 50
    assert " ".join(shown.split()).count("took mutex") == 2


@pytest.mark.parametrize("command", ["report", "check"])
def test_sentences_fit_the_terminal(ptt: Ptt, trace_dir: Path, command: str) -> None:
    made = Builder(trace_dir)
    for number in range(5):
        thread, owner = (10**9 + each % 5 for each in (number, number + 1))
        made.thread(
            thread,
            [
                Event(10**12, "MUTEX_TAKEN", 64 * thread, 5),
                Event(10**12 + 20, "MUTEX_WAIT", 64 * owner, 6, fields={"owner": owner}),
            ],
        )
    made.write()

    def widest(columns: str) -> int:
        master, terminal = pty.openpty()
        subprocess.run(
            ptt.command(command, trace_dir), env=ptt.environment({"COLUMNS": columns}),
            stdout=terminal, check=False,
        )  # fmt: skip
        os.close(terminal)
        with os.fdopen(master, "rb") as file:
            lines = file.read1().decode().splitlines()
        return longest(lines)

    def longest(lines: list[str]) -> int:
        return max(len(line) for line in lines if re.search(" waits? for ", line))

    assert widest("60") <= 60
    assert widest("200") > 80
    piped = ptt(command, trace_dir, status=None).stdout.splitlines()
    assert longest(piped) <= 80
