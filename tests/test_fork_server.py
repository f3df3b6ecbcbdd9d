"""A command that runs as a fork behaves as a command that runs in a new process."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder


@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        (["--version"], None),
        (["stat", "nowhere.ptt"], None),
        (["stat", "run-0.ptt"], None),
        (["sql", "run-0.ptt", "-"], "select 1 as één"),
    ],
)
def test_output_and_status_are_the_same(
    ptt: Ptt, record: Recorder, command: list[str], stdin: str | None
) -> None:
    record("true")
    forked, new = (
        ptt(*command, cwd=record.directory, stdin=stdin, status=None, fork=fork)
        for fork in (True, False)
    )
    assert vars(forked) == vars(new)


def test_each_command_has_an_environment_of_its_own(ptt: Ptt, tmp_path: Path) -> None:
    command = ("record", "-o", tmp_path / "run.ptt", "--", "printenv", "WORD")
    assert ptt(*command, env={"WORD": "first"}).stdout == "first\n"
    ptt(*command[:2], tmp_path / "second.ptt", *command[3:], status=1)


def test_a_command_past_its_time_is_killed_and_others_run(ptt: Ptt, record: Recorder) -> None:
    trace = record("true")
    with pytest.raises(subprocess.TimeoutExpired):
        ptt("record", "-o", trace.with_name("late.ptt"), "--", "sleep", "1", timeout=0.3)
    assert ptt("stat", trace).returncode == 0


def test_a_command_that_a_signal_ends_has_that_status(ptt: Ptt, tmp_path: Path) -> None:
    script = "import os; os.kill(os.getppid(), 9)"
    killed = ptt("record", "-o", tmp_path / "t", "--", "python3", "-c", script, status=None)
    assert killed.returncode == -9
