"""The recorder of `nptltrace.record_here()`, a process beside the program.

The program loads the tracer itself. So the recorder stops no thread of the program, and does not
need the rights of a debugger. The recorder is no child of the program, because the program may wait
for its own children.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nptltrace import _paths
from nptltrace.attach.messages import MessageSocket
from nptltrace.attach.recording import AttachOptions, record
from nptltrace.attach.refusals import why_not_itself
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.interrupts import Interrupts
from nptltrace.recording.settings.levels import parse_levels
from nptltrace.recording.settings.options import BufferOptions, stacks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nptltrace.attach.recording import Recording

__all__ = ["main"]


class _Invitation:
    """An entrance into a program that loads the tracer itself.

    Args:
        line: The socket to the program.
        pid: The process of the program.

    Attributes:
        ended: Whether the program wants the recording to end, or is gone.

    Raises:
        PttError: The process cannot be recorded.
    """

    stopped_ns = 0

    def __init__(self, line: MessageSocket, pid: int) -> None:
        self._line = line
        self._failure = ""
        self.ended = False
        reason = why_not_itself(pid, _paths.library(_paths.PRELOAD))
        if reason is not None:
            raise PttError(f"this process cannot be recorded: {reason}")

    def begin(self, text: str, patience_ns: int, waits: Callable[[], bool]) -> None:
        """Ask the program to load the tracer."""
        del patience_ns, waits
        self._line.send({"attach": text})

    def failure(self) -> str:
        """Return why the program could not load the tracer; empty if it has not said so."""
        self.read_message()
        return self._failure

    def is_over(self) -> bool:
        """Return False: the thread began in memory that the program keeps."""
        return False

    def read_message(self) -> None:
        """Read a message of the program, if there is a message."""
        try:
            message = self._line.receive(wait=False)
        except EOFError:
            message = {}
        if message is not None:
            self._failure = str(message.get("failure", ""))
            self.ended = True


def main(descriptor: int, wanted: Mapping[str, Any]) -> None:
    """Record, and send the result to the program.

    Args:
        descriptor: The socket to the program.
        wanted: `pid`, `output`, `level`, `stacks` and `force`.
    """
    line = MessageSocket(socket.socket(fileno=descriptor))
    try:
        options = AttachOptions(
            pid=wanted["pid"],
            output=Path(os.fsdecode(wanted["output"])),
            levels=parse_levels(wanted["level"]),
            buffers=BufferOptions(**stacks_of(wanted["stacks"])),
            force=wanted["force"],
        )
        line.send(_record(line, options))
    except UsageError as error:
        line.send({"error": str(error), "usage": True})
    except PttError as error:
        line.send({"error": str(error)})
    except Exception as error:
        line.send({"error": f"the recorder has failed: {error!r}"})
        raise


def _record(line: MessageSocket, options: AttachOptions) -> dict[str, Any]:
    invitation = _Invitation(line, options.pid)

    def began(_: Recording) -> None:
        line.send({"records": True})

    with Interrupts() as interrupts:

        def ended() -> bool:
            invitation.read_message()
            return invitation.ended or bool(interrupts.forward(None))

        outcome, recording = record(options, invitation, ended, began, interrupts.is_asked_to_end)
    stats = outcome.stats
    return {"events": stats.events, "lost": stats.lost, "left": recording.has_left}
