"""`ptt record --delay` and `--duration`: recording of a part of a program's life."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.errors import PttError
from nptltrace.recording.control import ControlPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def _wait_for(reached: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.01)


def _has_level(pid: int, level: int) -> bool:
    try:
        return set(ControlPage.of(pid).read().values()) == {level}
    except (PttError, OSError):
        return False  # the process has just begun


def _taken(ptt: Ptt, trace: Path) -> list[str]:
    lines = ptt("view", "--event", "MUTEX_TAKEN", trace).stdout.splitlines()
    return [line.partition(" took mutex ")[2].split()[0] for line in lines]


def _record(ptt: Ptt, trace: Path, program: Path, *options: str) -> subprocess.Popen[str]:
    command = ptt.command("record", "-o", trace, *options, "--", program, trace.parent)
    return subprocess.Popen(command, env=ptt.environment(), text=True)


def test_recording_begins_after_the_delay(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Levels rise in the program, and in programs that it starts later."""
    recorder = _record(ptt, tmp_path / "t", program("staged"), "--delay", "300ms")
    _wait_for(lambda: _children(recorder.pid))
    (pid,) = _children(recorder.pid)
    _wait_for(lambda: _has_level(pid, 2))
    (tmp_path / "second").touch()
    _wait_for(lambda: _children(pid))
    (child,) = _children(pid)
    _wait_for(lambda: _has_level(child, 2))
    (tmp_path / "third").touch()
    assert recorder.wait(60) == 0
    assert _taken(ptt, tmp_path / "t") == ["second", "third"]


def test_recording_ends_after_the_duration(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """The program and its children go on; neither is recorded any more."""
    recorder = _record(ptt, tmp_path / "t", program("staged"), "-d", "2s")
    _wait_for(lambda: _children(recorder.pid))
    (pid,) = _children(recorder.pid)
    _wait_for(lambda: _has_level(pid, 0))
    (tmp_path / "second").touch()
    _wait_for(lambda: _children(pid))
    (child,) = _children(pid)
    _wait_for(lambda: _has_level(child, 0))
    (tmp_path / "third").touch()
    assert recorder.wait(60) == 0
    assert _taken(ptt, tmp_path / "t") == ["first"]
    stat = json.loads(ptt("stat", "--format", "json", tmp_path / "t").stdout)
    assert stat["state"] == "complete"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--handler", "shared"], "--handler is for programs that ptt starts, not --pid"),
        (["--no-children"], "--no-children is for programs that ptt starts, not --pid"),
        (["--", "true"], "give --pid or a program, not both"),
    ],
)
def test_options_need_a_program_that_ptt_starts(ptt: Ptt, options: list[str], message: str) -> None:
    done = ptt("record", "-p", str(os.getpid()), *options, status=2)
    assert done.stderr == f"ptt: error: {message}\n"
