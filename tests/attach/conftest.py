"""A running program, and permission to attach to it."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Ptt

    Start = Callable[..., subprocess.Popen[str]]

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="for x86-64")


@pytest.fixture(scope="session", autouse=True)
def _attaching_is_allowed(ptt: Ptt) -> None:
    """Skip the tests if even the user's own processes are closed to inspection."""
    if os.uname().machine != "x86_64":
        pytest.skip("attaching is for x86-64")
    with subprocess.Popen(["sleep", "60"]) as process:
        message = ptt("hang", str(process.pid), status=None).stderr
        process.kill()
    if "cannot look into" in message:
        pytest.skip(message)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program that says when it is ready; the fixture kills it at the end."""
    with _started(tmp_path) as get:
        yield get


@contextmanager
def _started(cwd: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def get(*command: str | Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [os.fspath(word) for word in command], cwd=cwd, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # the first thread has printed the line, and is about to sleep or to end
        until = time.monotonic() + 10
        while _state(process.pid) not in "SZ" and time.monotonic() < until:
            time.sleep(0.01)
        return process

    try:
        yield get
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
