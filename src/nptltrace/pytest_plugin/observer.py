"""The process that keeps the time of tests for `pytest --ptt-guard`, and looks at their threads.

This is a program of its own, which imports the standard library only. Its parent is the process
that runs the tests. Each line of the input begins a phase of a test (number, limit in seconds, what
is done after the report, and a text in quotes) or is `0` at the end of a phase.
"""

from __future__ import annotations

import ast
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# After the signal, a test has this long to fail. Code in C does not react to the signal.
GRACE_S = 5.0
LOOK_S = 60.0
PROCESSES_MAX = 16
LINES_MAX = 2000
# How often to look whether the tests have been killed or stopped.
ALIVE_S = 1.0
# How often to look whether stopped tests go on.
STOPPED_S = 0.2
# The file with the time in s for which the tests have been stopped so far.
STOPPED = "stopped"
CHUNK = 1 << 16


class Input:
    """The lines of the standard input.

    Args:
        place: The directory for reports.
    """

    def __init__(self, place: str) -> None:
        self._data = b""
        self._place = place
        self._stopped_s = 0.0

    def line(self, limit_s: float) -> str | None:
        """Return the next line, None after a time in which the tests were not stopped.

        Args:
            limit_s: The time in s; 0 asks whether there is a line.

        Raises:
            EOFError: The tests have ended.
        """
        until = time.monotonic() + limit_s
        while b"\n" not in self._data:
            began = time.monotonic()
            wait_s = max(min(until - began, ALIVE_S), 0.0)
            if select.select([0], [], [], wait_s)[0]:
                data = os.read(0, CHUNK)
                if not data:
                    raise EOFError
                self._data += data
            elif os.getppid() != TESTS:  # a child of a test may still have the other end
                raise EOFError
            elif is_stopped():
                until += self._while_stopped(began)
            elif time.monotonic() >= until:
                return None
        line, _, self._data = self._data.partition(b"\n")
        return line.decode()

    def _while_stopped(self, began: float) -> float:
        """Wait until the tests go on, and return how long they were stopped, in s."""
        before_s = self._stopped_s
        while is_stopped():
            time.sleep(STOPPED_S)
            self._stopped_s = before_s + time.monotonic() - began
            put(self._place, STOPPED, str(self._stopped_s))
        return self._stopped_s - before_s


def put(place: str, name: str, text: str) -> None:
    """Write a file in one step: no reader sees half of it."""
    written = Path(place, f"{name}.new")
    written.write_text(text, encoding="utf-8")
    written.rename(Path(place, name))


def is_stopped() -> bool:
    """Return whether a signal or a debugger has stopped the tests."""
    try:
        stat = Path(f"/proc/{TESTS}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] in {b"T", b"t"}  # see proc_pid_stat(5)


def main() -> None:
    """Watch phase after phase, until the input ends."""
    place, *looks = sys.argv[1:]
    lines = Input(place)
    try:
        with contextlib.suppress(EOFError):
            while True:
                line = lines.line(float("inf"))
                if line and line != "0":
                    watch(lines, line, place, looks)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def watch(lines: Input, begin: str, place: str, looks: list[str]) -> None:
    """Wait for the end of a phase, and report a phase that takes too long.

    Args:
        lines: The input.
        begin: The line that begins the phase.
        place: The directory for reports.
        looks: The command that looks at a process.

    Raises:
        EOFError: The tests have ended.
    """
    phase, limit, then, what = begin.split(" ", 3)
    if lines.line(float(limit)) is not None:
        return
    text = f"{ast.literal_eval(what)} takes longer than {float(limit):g} s\n\n{report(looks)}"
    if then == "fail":
        put(place, phase, text)
        os.kill(TESTS, signal.SIGURG)
        if lines.line(GRACE_S) is not None:
            return
        text += "\nit cannot be interrupted: the session ends here\n"
    sys.stderr.write(f"\n{text}")
    sys.stderr.flush()
    if then == "continue":
        lines.line(float("inf"))
    elif os.getppid() == TESTS and lines.line(0.0) is None:
        # Children that live on would keep the output of the tests open.
        for pid in descendants(TESTS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def report(looks: list[str]) -> str:
    """Return what the threads of the tests and of their child processes wait for."""
    texts = []
    pids = descendants(TESTS)
    for pid in pids[:PROCESSES_MAX]:
        try:
            done = subprocess.run(
                [*looks, str(pid)], capture_output=True, stdin=subprocess.DEVNULL,
                encoding="utf-8", errors="replace", timeout=LOOK_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            texts.append(f"process {pid}: a look takes longer than {LOOK_S:g} s\n")
            continue
        lines = (done.stdout or done.stderr).splitlines()
        if len(lines) > LINES_MAX:
            lines[LINES_MAX:] = [f"... and {len(lines) - LINES_MAX} more lines"]
        texts.append("\n".join([*lines, ""]))
    if len(pids) > PROCESSES_MAX:
        texts.append(f"and {len(pids) - PROCESSES_MAX} more processes\n")
    return "\n".join(texts)


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants, without this process."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.scandir(f"/proc/{parent}/task"):
                children = Path(task.path, "children").read_text(encoding="ascii").split()
                found += [int(child) for child in children if int(child) != os.getpid()]
    return found


TESTS = os.getppid()

if __name__ == "__main__":
    main()
