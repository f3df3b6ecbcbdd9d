"""The tracer makes no system call in a thread between its set-up and its end."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.real.real import need
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

THREADS = 5
PAIRS = 100_000
_LINE = re.compile(r"(?P<tid>\d+) +(?P<call>\w+)\((?P<argument>-?\w*)")


def calls_between_marks(text: str) -> dict[str, list[str]]:
    """Return the system calls of each thread between its two marks, in strace's words."""
    found: dict[str, list[str]] = defaultdict(list)
    inside: set[str] = set()
    ended: set[str] = set()
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        tid, call, argument = match["tid"], match["call"], match["argument"]
        if call == "close" and argument == "-1111":
            inside.add(tid)
            found[tid] = []
        elif call == "close" and argument == "-2222":
            inside.remove(tid)
            ended.add(tid)
        elif tid in inside:
            found[tid].append(line)
    assert not inside
    assert ended == set(found)
    return dict(found)


def strace_works() -> bool:
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_tracer_makes_no_system_call(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path, trace_dir: Path, level: int
) -> None:
    need("strace")
    if not strace_works():
        pytest.skip("strace is not allowed to trace")
    program = compile_c(ROOT / "tests" / "real" / "quiet.c")
    log = tmp_path / "strace"
    strace = ["strace", "-f", "-o", str(log)]
    command = [str(program), str(THREADS), str(PAIRS)]
    subprocess.run([*strace, *command], env=clean_environment(), check=True)
    plain = calls_between_marks(log.read_text())
    assert list(map(len, plain.values())) == [0] * THREADS

    # No buffer may become full. At level 3, a pair has two events of 2 slots and two of 1 slot.
    options = ("--force", "--buffer-budget", "256M", "--level", str(level))
    # A busy machine may delay the recorder, so the recorder needs a head start.
    for head_start_ms in (500, 2000, 8000):
        ptt("record", "-o", trace_dir, *options, "--", *strace, *command, str(head_start_ms))
        traced = calls_between_marks(log.read_text())
        assert len(traced) == THREADS
        calls = Counter(line for lines in traced.values() for line in lines)
        if not calls:
            break
    assert not calls, list(calls)[:20]
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    if level > 1:
        assert stat["event_types"]["MUTEX_TAKEN"] >= THREADS * PAIRS
        assert stat["events"] > 1_000_000
    assert stat["lost"] == 0
