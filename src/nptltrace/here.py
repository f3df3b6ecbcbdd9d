"""`nptltrace.record_here()`: records the calling process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nptltrace import _paths
from nptltrace._binding import tracer
from nptltrace.attach.messages import MessageSocket
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from nptltrace.api import Traceset

__all__ = ["RecordingHere", "record_here"]

_STACKS = (0, 8, 16, 64, "all")
# The recorder is another process. The fork makes it an orphan, so that this process has no child
# that it did not start itself.
_START = """\
import json, os, sys
if os.fork():
    os._exit(0)
sys.path.insert(0, sys.argv[1])
from nptltrace.attach.here_recorder import main
main(int(sys.argv[2]), json.loads(sys.argv[3]))"""

_one_at_a_time = threading.Lock()
_current: RecordingHere | None = None


class RecordingHere:
    """A recording of this process.

    Attributes:
        trace: The trace directory. You can open it during the recording, too.
        events: Number of recorded events; None until the recording has ended.
        lost: Number of lost events; None until the recording has ended.
    """

    def __init__(self, trace: Path, line: MessageSocket) -> None:
        self._line = line
        self._pid = os.getpid()
        self.trace = trace
        self.events: int | None = None
        self.lost: int | None = None

    def stop(self) -> None:
        """End the recording; do nothing if it has ended.

        In a child process that was forked during the recording, this method does nothing.

        Raises:
            PttError: The recorder was killed; `ptt recover` finishes the trace.
        """
        global _current  # noqa: PLW0603 -- a process has one tracer
        with _one_at_a_time:
            if _current is not self or os.getpid() != self._pid:
                return
            _current = None
            try:
                self._line.send({})
                result = _answer(self._line, self.trace)
            finally:
                self._line.close()
        self.events, self.lost = result["events"], result["lost"]

    def open(self) -> Traceset:
        """Return the trace, opened for reading."""
        from nptltrace.api import open_traceset

        return open_traceset(self.trace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def record_here(
    output: str | os.PathLike[str],
    *,
    level: int | str = 2,
    stacks: int | str = 16,
    force: bool = False,
) -> RecordingHere:
    """Record this process until the end of a `with` block, `stop()`, or the end of the process.

    All threads are recorded, existing and new. Calls that threads sleep in when the recording
    begins are not recorded, nor are child processes. You need no permission and no other program.
    Recording from within needs x86-64 and glibc 2.35 or newer.

    Args:
        output: The trace directory.
        level: Detail level, as `ptt attach --level` takes it.
        stacks: Frames of call stacks: 0, 8, 16, 64 or `all`, as `ptt attach --stacks` takes it.
        force: Replace a trace that exists in the trace directory.

    Returns:
        The recording. At the end of a `with` block the recording stops.

    Raises:
        UsageError: An argument is wrong, or this process is being recorded already.
        PttError: The process cannot be recorded; the message says why.

    Example:
        >>> with nptltrace.record_here("run.ptt") as run:  # doctest: +SKIP
        ...     work()
        >>> run.open().report()  # doctest: +SKIP
    """
    global _current  # noqa: PLW0603 -- a process has one tracer
    if stacks not in _STACKS:
        raise UsageError(f"stacks must be one of {', '.join(map(str, _STACKS))}, not {stacks!r}")
    trace = Path(output)
    wanted = {
        "pid": os.getpid(), "output": os.fspath(trace.absolute()), "level": str(level),
        "stacks": str(stacks), "force": force,
    }  # fmt: skip
    with _one_at_a_time:
        _refuse()
        line = _recorder(wanted)
        try:
            _begin(line, trace)
        except BaseException:
            line.close()  # the recorder ends with the connection
            raise
        _current = RecordingHere(trace, line)
        return _current


def _refuse() -> None:
    """Raise an error if this process cannot be recorded, as far as the process itself can tell."""
    if _current is not None and tracer.is_enabled():
        raise UsageError(f"this process is being recorded already, into {_current.trace}")
    if tracer.is_enabled():
        raise UsageError("this process is being recorded already, by ptt record or ptt attach")
    if platform.machine() != "x86_64":
        raise PttError("this process cannot be recorded: recording from within is for x86-64")
    if not tracer.can_join():
        raise PttError(
            "this process cannot be recorded: its C library is not glibc 2.35 or newer, shared"
        )


def _recorder(wanted: dict[str, Any]) -> MessageSocket:
    """Start the recorder, and return the connection to it."""
    line, other = MessageSocket.pair()
    package = Path(__file__).parents[1]
    with other:
        # The recorder keeps no file of this process open and gets no signals of the terminal.
        started = subprocess.run(
            [
                sys.executable, "-P", "-c", _START, package, str(other.fileno()),
                json.dumps(wanted),
            ],
            pass_fds=[other.fileno()], start_new_session=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    if started.returncode:
        line.close()
        raise PttError(f"{sys.executable} -c … does not run: exit status {started.returncode}")
    return line


def _begin(line: MessageSocket, trace: Path) -> None:
    """Load the tracer when the recorder is ready, and wait until the recorder records."""
    text = _answer(line, trace)["attach"]
    try:
        tracer.join(_paths.library(_paths.PRELOAD), os.fsencode(text))
    except (PttError, OSError) as error:
        line.send({"failure": f"it cannot load the tracer: {error}"})
    _answer(line, trace)


def _answer(line: MessageSocket, trace: Path) -> dict[str, Any]:
    """Return the next message of the recorder.

    Raises:
        PttError: The message is an error, or the recorder has ended.
    """
    try:
        message = line.receive()
    except EOFError:
        raise PttError(
            f"the recorder has ended too early; ptt recover {trace} finishes the trace"
        ) from None
    assert message is not None  # noqa: S101 -- without a time limit, receive() returns a message
    if "error" in message:
        kind = UsageError if message.get("usage") else PttError
        raise kind(message["error"])
    return message
