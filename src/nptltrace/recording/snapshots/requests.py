"""How `ptt snapshot` asks a flight recorder for a snapshot, and gets the answer.

A request is a file in the session directory, which belongs to the user of the recorder. SIGCHLD
wakes the recorder and does nothing else: SIGUSR1 would count as a reason for a snapshot. The
recorder leaves an answer and removes the request.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from nptltrace._files.directories import Directory
from nptltrace._files.whole import json_of, read_whole
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.control import session_of
from nptltrace.recording.files.session import (
    SNAPSHOT_FILES,
    names_in,
    recorder_of,
    trace_of_session,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Request", "ask", "requests"]

_REQUEST, _ANSWER = ".request", ".answer"
_MOST = 1 << 16
_POLL_S = 0.005
# A recorder looks for requests at least once in this time, whether SIGCHLD reaches it or not.
_PATIENCE_S = 120.0


class Request:
    """A request in a session directory.

    Args:
        directory: The session directory.
        name: Name of the file.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name

    def output(self) -> tuple[Path | None, bool]:
        """Return the wanted trace directory, and whether to replace the trace in it.

        The directory is None if the recorder chooses it.

        Raises:
            PttError: The file is no request.
        """
        try:
            request = json_of(read_whole(self._directory / self._name, most=_MOST, follow=False))
            output, force = request["output"], request["force"] is True
        except (OSError, ValueError, KeyError, TypeError):
            raise PttError("the request is damaged") from None
        if output is None:
            return None, False
        if not isinstance(output, str) or not output.startswith("/") or "\0" in output:
            raise PttError("the request names no trace directory")
        return Path(output), force

    def answer(self, **values: str) -> None:
        """Answer the request, and remove it."""
        name = self._name.removesuffix(_REQUEST) + _ANSWER
        with suppress(OSError), Directory.open(self._directory) as directory:
            try:
                directory.replace(name, json.dumps(values))
                directory.unlink(self._name)
            except OSError:
                # An answer that needs no room, and says no more than that there is none.
                os.rename(self._name, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)


def requests(directory: Path) -> list[Request]:
    """Return the requests in a session directory."""
    return [
        Request(directory, name)
        for name in sorted(names_in(directory))
        if name.startswith(SNAPSHOT_FILES) and name.endswith(_REQUEST)
    ]


def ask(pid: int, output: Path | None, *, force: bool = False) -> tuple[Path, str]:
    """Have a snapshot made, and wait for it.

    Args:
        pid: A recorded process, or its recorder.
        output: The trace directory of the snapshot; None: the recorder chooses it.
        force: Whether to replace a trace in that directory.

    Returns:
        The trace directory, and a sentence about its contents.

    Raises:
        UsageError: The process is not recorded by a flight recorder.
        PttError: There is no snapshot.
    """
    session = session_of(pid)
    trace = trace_of_session(session)
    if trace is None or _policy(trace) != "loop":
        raise UsageError(
            f"process {pid} is not recorded by a flight recorder "
            "(ptt record --stream-full-policy loop)"
        )
    name = f"{SNAPSHOT_FILES}{os.getpid()}-{os.urandom(4).hex()}"
    wanted = None if output is None else str(output.absolute())
    try:
        with Directory.open(session) as directory:
            directory.replace(name + _REQUEST, json.dumps({"output": wanted, "force": force}))
    except OSError as error:
        raise PttError(f"{session}: {error.strerror}") from None
    try:
        answer = _answer(session, name, trace)
    finally:
        with suppress(OSError), Directory.open(session) as directory:
            directory.unlink(name + _REQUEST)
            directory.unlink(name + _ANSWER)
    if "error" in answer:
        raise PttError(f"no snapshot: {answer['error']}")
    if "trace" not in answer:
        raise PttError(f"the recorder of {trace} has no room in {session} to answer")
    return Path(str(answer.get("trace"))), str(answer.get("text"))


def _answer(session: Path, name: str, trace: Path) -> dict[str, Any]:
    """Wake the recorder, and wait for its answer."""
    recorder = recorder_of(session)
    if recorder is not None:
        with suppress(OSError):
            os.kill(recorder, signal.SIGCHLD)
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        # The recorder answers before its end, so look for the end first.
        there = session.is_dir() and (recorder is None or recorder_of(session) == recorder)
        with suppress(OSError, ValueError):
            answer = json_of(read_whole(session / (name + _ANSWER), most=_MOST, follow=False))
            if isinstance(answer, dict):
                return answer
        if not there:
            raise PttError(f"no snapshot: the recording into {trace} has ended")
        time.sleep(_POLL_S)
    raise PttError(f"no snapshot: the recorder of {trace} has not answered for {_PATIENCE_S:.0f} s")


def _policy(trace: Path) -> object:
    """Return the full policy of a recording, as its trace says it."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return json_of(read_whole(trace / "info" / "session.json")).get("policy")
    return None
