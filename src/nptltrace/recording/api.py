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

# The recorder is another process, so that it finishes the trace whatever happens to this process.
# The program has the standard error; messages of the recorder go to a file, which cannot block it.
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
        trace: The trace directory. You can open it when the recording is over.
        stdin: A file that writes to the program's standard input if that is `PIPE`, else None.
        stdout: A file that reads the program's standard output if that is `PIPE`, else None.
        stderr: A file that reads the program's standard error if that is `PIPE`, else None.
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
        """Messages of the recorder so far, one line each."""
        size = os.fstat(self._messages.fileno()).st_size
        text = os.pread(self._messages.fileno(), size, 0).decode("utf-8", "replace")
        return [line.removeprefix(_PREFIX) for line in text.splitlines()]

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended and the trace is finished.

        If the program cannot be traced, it runs untraced and you get a `RuntimeWarning`.

        Args:
            timeout: Seconds to wait at most; None: no limit.

        Returns:
            The exit status of the program.

        Raises:
            TimeoutError: The program still runs.
            PttError: The program did not run; `exit_status` is the exit status of `ptt record`.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"still recording after {timeout} s") from None
        self._judge(status)
        return status

    def terminate(self) -> None:
        """Send SIGTERM to the program; the recorder still finishes the trace."""
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
        """Raise an error if the program did not run; warn if it ran untraced."""
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
        """Return whether this recorder wrote the trace."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts: Any = json_of(read_whole(self.trace / "info" / "session.json"))
            return bool(facts["recorder"]["pid"] == self.pid)
        return False

    def _remove_empty(self) -> None:
        """Remove the trace directory if it is empty."""
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

    The program inherits environment, working directory, input and output of this process, unless
    you pass others, like for `subprocess.Popen`.

    Args:
        command: The program and its arguments, or a program alone.
        level: Detail level, as `ptt record --level` takes it.
        output: The trace directory; by default a new `ptt-<program>-<number>` in the current
            directory.
        force: Replace a trace that exists in the trace directory.
        handler: A trace handler that writes a trace: `ring`, `shared` or `file`.
        children: Follow child processes.
        options: Further options of `ptt record`.
        env: The environment of the program.
        cwd: The working directory of the program.
        stdin: The standard input of the program: a file, a descriptor, `PIPE` or `DEVNULL`.
        stdout: The standard output of the program, likewise.
        stderr: The standard error of the program, likewise, or `STDOUT`.

    Returns:
        The recording. At the end of a `with` block, it waits for the end of the program.

    Raises:
        UsageError: No program is given.
        PttError: The trace directory cannot be created.

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
    """Create a trace directory with a new name."""
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
