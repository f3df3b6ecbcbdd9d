"""`nptltrace.record()`: recording from Python, as a context manager."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["Recording", "record"]

# The recorder is a process of its own: it must be able to finish the trace whatever happens here.
_START = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from nptltrace.cli import entry
entry()"""


class Recording:
    """A program that runs traced.

    Attributes:
        trace: The trace directory, which can be opened once the recording is over.
        returncode: Exit status of the program, 128 + n for signal n; None while it runs.
    """

    def __init__(self, process: subprocess.Popen[str], trace: Path) -> None:
        self._process = process
        self._said = ""
        self.trace = trace
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Process id of the recorder, which passes signals on to the program."""
        return self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended and the trace is finished.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            The exit status of the program.

        Raises:
            TimeoutError: It still runs.
            PttError: Nothing could be recorded.
        """
        if self.returncode is None:
            try:
                self._said = self._process.communicate(timeout=timeout)[1]
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"still recording after {timeout} s") from None
            self.returncode = self._process.returncode
            if not (self.trace / "metadata").exists():
                lines = [line for line in self._said.splitlines() if line.startswith("ptt: ")]
                raise PttError(
                    lines[-1].removeprefix("ptt: error: ") if lines else "nothing recorded"
                )
        return self.returncode

    def terminate(self) -> None:
        """Ask the program to end; the trace is finished all the same."""
        self._process.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.wait()
            return
        self.terminate()
        self._process.communicate()


def record(
    command: Sequence[str | os.PathLike[str]],
    *,
    level: int | str = 2,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    handler: str = "ring",
    children: bool = True,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Recording:
    """Start a program and record it.

    Args:
        command: The program and its arguments.
        level: Detail level, as `ptt record --level` takes it.
        output: The trace directory; by default `ptt-<program>-<number>` in the current one.
        force: Replace what is in the trace directory.
        handler: The trace handler, one that writes a trace: `ring`, `shared` or `file`.
        children: Follow child processes.
        options: Further options of `ptt record`.
        env: The program's environment; by default that of this process.

    Returns:
        The recording, a context manager that waits for its end.

    Example:
        >>> with nptltrace.record(["./prog"], level=2) as run:  # doctest: +SKIP
        ...     pass
        >>> table = nptltrace.open(run.trace).table("waits")  # doctest: +SKIP
    """
    words = [os.fspath(word) for word in command]
    if not words:
        raise UsageError("no program given")
    trace = Path(output) if output is not None else _new_trace(Path(words[0]).name)
    arguments = ["record", "-o", str(trace), "--level", str(level), "--handler", handler, *options]
    arguments += ["--force"] * force + ["--no-children"] * (not children)
    package = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(package), *arguments, "--", *words],
        env=dict(env) if env is not None else None,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    return Recording(process, trace)


def _new_trace(program: str) -> Path:
    """Return a name of a trace directory that does not exist yet."""
    number = os.getpid()
    while (path := Path(f"ptt-{program}-{number}")).exists():
        number += 1
    return path
