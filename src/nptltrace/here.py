"""`nptltrace.record_here()`: records the process that it is called in, for a while."""

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
    from types import TracebackType

    from nptltrace.api import Traceset

__all__ = ["RecordingHere", "record_here"]

_STACKS = (0, 8, 16, 64, "all")
# The recorder is a process of its own, and no child of this one once its parent has ended.
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
        trace: The trace directory, which can be opened while it is recorded, too.
        events: How many events were recorded; None until it has ended.
        lost: How many were lost; None until it has ended.
    """

    def __init__(self, trace: Path, line: MessageSocket) -> None:
        self._line = line
        self._pid = os.getpid()
        self.trace = trace
        self.events: int | None = None
        self.lost: int | None = None

    def stop(self) -> None:
        """End the recording; do nothing if it has ended.

        In a child of the process that was recorded it does nothing either.

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
                said = _answer(self._line, self.trace)
            finally:
                self._line.close()
        self.events, self.lost = said["events"], said["lost"]

    def open(self) -> Traceset:
        """Return the trace, opened for reading."""
        from nptltrace.api import open_traceset

        return open_traceset(self.trace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def record_here(
    output: str | os.PathLike[str],
    *,
    level: int | str = 2,
    stacks: int | str = 16,
    force: bool = False,
) -> RecordingHere:
    """Record this process from now on, until the end of a `with` block, `stop()`, or its own end.

    All of its threads are recorded, those that are there already and those that come; what they
    are asleep in when it begins, and child processes, are not. Nothing has to be installed or
    allowed for it. It takes x86-64 and glibc 2.35 or newer.

    Args:
        output: The trace directory.
        level: Detail level, as `ptt attach --level` takes it.
        stacks: Frames of call stacks: 0, 8, 16, 64 or `all`, as `ptt attach --stacks` takes it.
        force: Replace the trace that is in the trace directory.

    Returns:
        The recording, a context manager that ends it.

    Raises:
        UsageError: An argument is wrong, or this process is being recorded already.
        PttError: It cannot be recorded; the message says why.

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
            line.close()  # which ends the recorder
            raise
        _current = RecordingHere(trace, line)
        return _current


def _refuse() -> None:
    """Raise where this process cannot be recorded, as far as only itself knows that."""
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
    """Start the recorder, and return the line to it."""
    line, other = MessageSocket.pair()
    package = Path(__file__).parents[1]
    with other:
        # nothing of this process's own is kept open by it, nor does it take what a terminal sends
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
    """Load the tracer when the recorder is ready, and wait until it records."""
    text = _answer(line, trace)["attach"]
    try:
        tracer.join(_paths.library(_paths.PRELOAD), os.fsencode(text))
    except (PttError, OSError) as error:
        line.send({"failure": f"it cannot load the tracer: {error}"})
    _answer(line, trace)


def _answer(line: MessageSocket, trace: Path) -> dict[str, Any]:
    """Return what the recorder has to say, or raise it where that is an error."""
    try:
        said = line.receive()
    except EOFError:
        raise PttError(
            f"the recorder has ended too early; ptt recover {trace} finishes the trace"
        ) from None
    assert said is not None  # noqa: S101 -- it was waited for
    if "error" in said:
        kind = UsageError if said.get("usage") else PttError
        raise kind(said["error"])
    return said
