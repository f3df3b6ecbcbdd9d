"""`nptltrace.record()`: recording from Python, as a context manager."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from nptltrace._files.whole import json_of, read_whole
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["Recording", "record"]

# The recorder is a process of its own: it must be able to finish the trace whatever happens here.
# Its standard error is the program's; what it says itself goes to a file, which never fills up.
_START = """\
import os, sys
sys.path.insert(0, sys.argv.pop(1))
messages = int(sys.argv.pop(1))
os.set_inheritable(messages, False)
sys.stderr = os.fdopen(messages, "w", 1, "utf-8", "surrogateescape")
from nptltrace.__main__ import entry
entry()"""
_PREFIX = "ptt: "
_ERRORS = ("error: ", "internal error: ")


class Recording:
    """A program that runs traced.

    Attributes:
        trace: The trace directory, which can be opened once the recording is over.
        stdin: What writes to the program's standard input, if that was asked for by `PIPE`.
        stdout: What reads its standard output, likewise.
        stderr: What reads its standard error, likewise.
    """

    def __init__(self, process: subprocess.Popen[bytes], trace: Path, messages: IO[bytes]) -> None:
        self._process = process
        self._messages = messages
        weakref.finalize(self, messages.close)
        self._judged = False
        self.trace = trace
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    @property
    def pid(self) -> int:
        """Process id of the recorder, which passes signals on to the program."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit status of the program, 128 + n for signal n; None while it runs."""
        return self._process.poll()

    @property
    def messages(self) -> list[str]:
        """What the recorder has said so far, a line each."""
        size = os.fstat(self._messages.fileno()).st_size
        text = os.pread(self._messages.fileno(), size, 0).decode("utf-8", "replace")
        return [line.removeprefix(_PREFIX) for line in text.splitlines()]

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended and the trace is finished.

        Warns where the program could not be traced: then it ran all the same, without a trace.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            The exit status of the program.

        Raises:
            TimeoutError: It still runs.
            PttError: It was not run; `exit_status` is what `ptt record` exits with.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"still recording after {timeout} s") from None
        self._judge(status)
        return status

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
        self._process.wait()

    def _judge(self, status: int) -> None:
        """Raise where nothing was run, warn where that was not traced."""
        messages = self.messages
        for message in messages:
            for mark in _ERRORS:
                if message.startswith(mark):
                    self._remove_empty()
                    failed = PttError(message.removeprefix(mark))
                    failed.exit_status = status
                    raise failed
        if self._judged or self._is_of_this_recording():
            return
        self._remove_empty()
        why = messages[-1] if messages else "the recorder has said nothing"
        if (self.trace / "metadata").exists():
            raise PttError(f"{why}; {self.trace} holds an older trace")
        self._judged = True
        warnings.warn(f"nothing was recorded: {why}", RuntimeWarning, stacklevel=3)

    def _is_of_this_recording(self) -> bool:
        """Return whether the trace is the one that this recorder wrote."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts: Any = json_of(read_whole(self.trace / "info" / "session.json"))
            return bool(facts["recorder"]["pid"] == self.pid)
        return False

    def _remove_empty(self) -> None:
        """Remove the directory that was made for a trace."""
        with suppress(OSError):
            self.trace.rmdir()


def record(
    command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    level: int | str = 2,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    handler: str = "ring",
    children: bool = True,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
) -> Recording:
    """Start a program and record it.

    Input and output of the program are those of this process, or what is asked for as with
    `subprocess.Popen`.

    Args:
        command: The program and its arguments, or a program alone.
        level: Detail level, as `ptt record --level` takes it.
        output: The trace directory; by default a new `ptt-<program>-<number>` in the current one.
        force: Replace the trace that is in the trace directory.
        handler: The trace handler, one that writes a trace: `ring`, `shared` or `file`.
        children: Follow child processes.
        options: Further options of `ptt record`.
        env: The program's environment; by default that of this process.
        cwd: The program's working directory; by default that of this process.
        stdin: The program's standard input: a file, a descriptor, `PIPE` or `DEVNULL`.
        stdout: Its standard output, likewise.
        stderr: Its standard error, likewise, or `STDOUT`.

    Returns:
        The recording, a context manager that waits for its end.

    Raises:
        UsageError: No program is given.
        PttError: The trace directory cannot be made.

    Example:
        >>> with nptltrace.record(["./prog"], level=2) as run:  # doctest: +SKIP
        ...     pass
        >>> table = nptltrace.open(run.trace).table("waits")  # doctest: +SKIP
    """
    whole = [command] if isinstance(command, str | os.PathLike) else command
    words = [os.fsdecode(word) for word in whole]
    if not words:
        raise UsageError("no program given")
    trace = Path(output) if output is not None else _new_trace(Path(words[0]).name)
    trace = trace if cwd is None else trace.absolute()
    arguments = ["record", "-o", str(trace), "--level", str(level), "--handler", handler, *options]
    arguments += ["--force"] * force + ["--no-children"] * (not children)
    package = Path(__file__).parents[2]
    messages = tempfile.TemporaryFile(prefix="ptt-record-")  # noqa: SIM115 -- the recording's
    number = messages.fileno()
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(package), str(number), *arguments, "--", *words],
        env=dict(env) if env is not None else None,
        cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[number],
    )  # fmt: skip
    return Recording(process, trace, messages)


def _new_trace(program: str) -> Path:
    """Make a trace directory of a name that nobody has."""
    number = os.getpid()
    while True:
        path = Path(f"ptt-{program}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise PttError(f"cannot make the trace directory {path}: {error.strerror}") from None
        else:
            return path
