"""Signals and files as the program sees them; signals to the recorder of a running program."""

from __future__ import annotations

import csv
import errno
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.recording import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Compiler, Ptt

STATUS = "grep -E 'Sig(Blk|Ign)' /proc/self/status"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("ignored", ["", "PIPE", "PIPE CHLD XFSZ USR1", "INT"])
def test_program_finds_signals_as_without_the_recorder(
    shell: str, ignored: str, ptt: Ptt, tmp_path: Path
) -> None:
    trap = f"trap '' {ignored};" if ignored else ""
    recorder = shlex.join(ptt.command("record", "-q", "-o", str(tmp_path / "trace"), "--"))
    outputs = [
        subprocess.run(
            [shell, "-c", f"{trap} {before} {STATUS}; true"],
            env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
        ).stdout
        for before in ("", recorder)
    ]  # fmt: skip
    assert "SigIgn" in outputs[0]
    assert outputs[1] == outputs[0]


class Background:
    """`ptt record` of a program that runs until its file is removed.

    Args:
        ptt: Runner of `ptt`.
        where: Directory of the trace and the file.
        before: Shell commands that set signals up before the recording.
    """

    def __init__(self, ptt: Ptt, where: Path, before: str) -> None:
        self.mark = where / "mark"
        script = f"{before} : >{self.mark}; while [ -e {self.mark} ]; do sleep 0.05; done"
        self.process = subprocess.Popen(
            ptt.command("record", "-o", str(where / "trace"), "--", "sh", "-c", script),
            env=ptt.environment(), stderr=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip
        self.until(self.mark.exists)

    @staticmethod
    def until(what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not what():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self) -> tuple[int, str]:
        """End the program, wait for the recorder, and return the recorder's status and output."""
        try:
            self.process.wait(timeout=60)
        finally:
            # the program holds the pipe open as well
            self.mark.unlink(missing_ok=True)
            self.process.kill()
            message = self.process.communicate(timeout=60)[1]
        return self.process.returncode, message


def test_a_signal_that_the_program_ignores_ends_the_recording(ptt: Ptt, tmp_path: Path) -> None:
    background = Background(ptt, tmp_path, "trap '' INT;")
    background.process.send_signal(signal.SIGINT)
    status, message = background.end()
    assert status == 128 + signal.SIGINT
    assert "ended by SIGINT; the program goes on untraced" in message
    assert "ptt: recorded " in message


def test_a_second_interrupt_ends_the_recording(ptt: Ptt, tmp_path: Path) -> None:
    got = tmp_path / "got"
    background = Background(ptt, tmp_path, f"trap ': >{got}' INT;")
    background.process.send_signal(signal.SIGINT)
    background.until(got.exists)
    assert background.process.poll() is None
    background.process.send_signal(signal.SIGINT)
    status, message = background.end()
    assert status == 128 + signal.SIGINT
    assert "the program goes on untraced" in message


def test_the_search_skips_directories_without_permission(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed, tools = tmp_path / "closed", tmp_path / "tools"
    closed.mkdir()
    tools.mkdir()
    tool = tools / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    stat = Path.stat

    # root may search every directory, so this simulates the kernel's answer to other users
    def refuse(path: Path, **more: bool) -> os.stat_result:
        if path.parent == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setenv("PATH", f"{closed}:{tmp_path / 'nowhere'}:{tools}")
    assert launch.find_program("tool") == tool
    with pytest.raises(launch.CannotRun, match="closed/other: Permission denied") as found:
        launch.find_program("other")
    assert found.value.exit_status == 126


HANGS = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *short_lived(void *arg)
{
    return arg;
}
static void *sleeps(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pause();
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, short_lived, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, sleeps, NULL);
    puts("up");
    fflush(stdout);
    pause();
    return 0;
}
"""


def test_threads_live_until_their_process_is_killed(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    program = compile_c(HANGS)
    with subprocess.Popen(
        ptt.command("record", "-q", "-o", trace, "--", program),
        env=ptt.environment(), stdout=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        time.sleep(0.5)  # which no event reports
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["duration_ns"] >= 500_000_000
    (traced,) = stat["processes"]
    lives = [thread["end_ns"] - thread["start_ns"] for thread in traced["threads"]]
    assert sum(life >= 500_000_000 for life in lives) == 2
    assert min(lives) < 500_000_000
    ends = sorted(thread["end_ns"] for thread in traced["threads"])
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    assert report["elapsed_ns"] >= 500_000_000
    assert sorted(thread["end_ns"] for thread in report["threads"]) == ends
    query = "select last_ns from threads order by last_ns"
    assert ptt("sql", trace, query, "--format", "csv").stdout.split()[1:] == [*map(str, ends)]
    query = "select max(end_ns) from thread_timeline group by tid order by 1"
    assert ptt("sql", trace, query, "--format", "csv").stdout.split()[1:] == [*map(str, ends)]
    exported = tmp_path / "threads.csv"
    ptt("export", trace, "--format", "csv", "--table", "threads", "-o", exported)
    with exported.open() as file:
        assert sorted(int(row["last_ns"]) for row in csv.DictReader(file)) == ends
    until = ends[-1] - 100_000_000
    report = json.loads(ptt("report", "--format", "json", "--to", f"{until}ns", trace).stdout)
    assert sum(thread["end_ns"] == until for thread in report["threads"]) == 2
