"""Runs real programs untraced and traced, and compares the results."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.packets import stack_count
from tests.support import clean_environment

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Ptt

__all__ = ["Done", "Real", "babeltrace_count", "listens", "need", "wait_until"]

_PATIENCE_S = 120.0
_SUMMARY = re.compile(r"ptt: recorded (\d+) events? from .* \((\d+) lost, .*B\)")


def need(*programs: str) -> None:
    """Skip the test unless all the programs are installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed")


def listens(port: int) -> bool:
    """Return whether a server listens on the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(what: Callable[[], bool], why: str, *, limit_s: float = _PATIENCE_S) -> None:
    """Wait for something, with a time limit."""
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end, f"{why}: not within {limit_s} s"
        time.sleep(0.01)


def babeltrace_count(trace: Path, *, lost: bool = False) -> int:
    """Return the number of events that babeltrace2 counts; it must not complain.

    Args:
        trace: The trace.
        lost: Whether the trace must report lost events.
    """
    done = subprocess.run(
        ["babeltrace2", "run", "--component=in:source.ctf.fs", f'--params=inputs=["{trace}"]',
         "--component=mux:filter.utils.muxer", "--component=out:sink.utils.counter",
         "--connect=in:mux", "--connect=mux:out"],
        capture_output=True, encoding="utf-8", timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert not done.stderr, done.stderr[-4000:]
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (.*) messages?\n", done.stdout)}
    assert (counts["Discarded event"] > 0) is lost
    return counts["Event"] - stack_count(trace)


def _own_words(stderr: str) -> list[str]:
    """Return the lines, without remarks about recordings that other tests killed."""
    return [
        line
        for line in stderr.splitlines(keepends=True)
        if not line.startswith("ptt: the recording of ")
    ]


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one run.

    Attributes:
        status: The exit status.
        stdout: The standard output.
        stderr: The standard error, without the last line of `ptt record`.
        files: The files that the program left in its directory.
    """

    status: int
    stdout: bytes
    stderr: str
    files: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Real:
    """Runs one real program in a directory of its own, untraced and traced.

    Attributes:
        ptt: The runner of `ptt`.
        directory: The directory of the runs, their files and the traces.
    """

    ptt: Ptt
    directory: Path

    @property
    def trace(self) -> Path:
        """The trace of the traced run."""
        return self.directory / "run.ptt"

    def run(self, *command: str | os.PathLike[str], traced: bool) -> Done:
        """Run COMMAND in a fresh directory and return the result."""
        place = self.directory / ("traced" if traced else "plain")
        place.mkdir()
        done = subprocess.run(
            [*(self.recorder() if traced else ()), *command],
            cwd=place,
            env=self.ptt.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=280,
            check=False,
        )
        stderr = done.stderr.decode(errors="replace")
        if traced:
            stderr = self.without_summary(stderr)
        files = {
            str(path.relative_to(place)): path.read_bytes()
            for path in sorted(place.rglob("*"))
            if path.is_file()
        }
        return Done(done.returncode, done.stdout, stderr, files)

    def recorder(self) -> list[str]:
        """Return the words that record the command behind them."""
        return self.ptt.command("record", "-o", self.trace, "--")

    @staticmethod
    def without_summary(stderr: str) -> str:
        """Insist on the last line of `ptt record` and on no losses; return the text before."""
        *before, last = _own_words(stderr)
        match = _SUMMARY.fullmatch(last.strip())
        assert match, stderr[-2000:]
        assert match[2] == "0", last
        return "".join(before)

    def same(self, *command: str | os.PathLike[str]) -> Done:
        """Run COMMAND both ways, insist that nothing differs, and check the trace."""
        plain = self.run(*command, traced=False)
        traced = self.run(*command, traced=True)
        assert traced.status == plain.status
        assert traced.stderr == plain.stderr
        assert traced.stdout == plain.stdout
        assert traced.files == plain.files
        return traced

    @contextmanager
    def server(
        self, *command: str | os.PathLike[str], port: int, traced: bool, stop: bool = True
    ) -> Iterator[None]:
        """Run a server around a block; without `stop` the block itself ends it.

        Its output is not compared: it has addresses, times and process ids.
        """
        place = self.directory / ("traced" if traced else "plain")
        place.mkdir(exist_ok=True)
        assert not listens(port)
        errors = self.directory / f"{place.name}.err"
        with errors.open("wb") as err:
            process = subprocess.Popen(
                [*(self.recorder() if traced else ()), *command],
                cwd=place,
                env=self.ptt.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        try:
            wait_until(
                lambda: listens(port) or process.poll() is not None, f"{command[0]} on {port}"
            )
            assert process.poll() is None, errors.read_text(errors="replace")[-4000:]
            yield
            if stop:
                process.send_signal(signal.SIGTERM)
            status = process.wait(_PATIENCE_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        message = errors.read_text(encoding="utf-8", errors="replace")
        assert status == 0, f"status {status}: {message[-4000:]}"
        if traced:
            self.without_summary(message)

    def client(self, *command: str | os.PathLike[str], timeout: float = 200) -> str:
        """Run an untraced client and return its output."""
        done = subprocess.run(
            [str(word) for word in command],
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{command[0]}: {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout

    def check(self, *, at_least: int = 1) -> dict[str, Any]:
        """Insist on a trace without losses that both readers count alike; return the counts."""
        found: dict[str, Any] = json.loads(
            self.ptt("stat", "--format", "json", self.trace, timeout=280).stdout
        )
        assert found["lost"] == 0
        assert found["damage_bytes"] == 0
        assert found["state"] == "complete"
        assert found["events"] == sum(found["event_types"].values())
        assert found["events"] >= at_least
        if shutil.which("babeltrace2"):
            assert babeltrace_count(self.trace) == found["events"]
        return found
