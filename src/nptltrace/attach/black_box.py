"""Switches the black box of a running process on, and leaves the process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nptltrace.attach.agent_file import AgentFile
from nptltrace.attach.recording import await_begin, give_files
from nptltrace.errors import PttError
from nptltrace.recording.files.session import SessionDir, start_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.attach.recording import Entrance
    from nptltrace.recording.settings.levels import Levels

__all__ = ["begin"]

_PAUSE_S = 0.01
# The stopped thread is back in its own code soon; the memory that it used stays mapped otherwise.
_TIDY_S = 2.0
_LEAVING_S = 10.0


def begin(
    pid: int, entrance: Entrance, levels: Levels, arguments: Sequence[str], patience_ns: int
) -> int:
    """Let a process keep its newest events in a black box.

    Args:
        pid: The process.
        entrance: The way for the tracer into the process.
        levels: Detail levels.
        arguments: Arguments of the handler.
        patience_ns: How long to look for a thread that can be stopped.

    Returns:
        The number of calls that lead to the tracer.

    Raises:
        PttError: The process has no black box; the message says why.
    """
    session = SessionDir.create()
    start = start_time(pid)
    try:
        agent = AgentFile(session.path / "attach")
        give_files(pid, session, [session.path / "attach"])
        items = [f"level={levels.argument}"] if levels.argument else []
        variable = f"ring:{','.join(arguments)}:{levels.number}:{';'.join([*items, 'children=0'])}"
        entrance.begin(f"{session.path / 'attach'}\n{variable}", patience_ns, lambda: True)

        def step() -> None:
            agent.beat()
            time.sleep(_PAUSE_S)

        await_begin(pid, entrance, agent, lambda: start_time(pid) != start, step)
        _until(entrance.is_over, _TIDY_S, step)
        agent.leave(tidy=entrance.is_over())
        _until(lambda: agent.has_left or start_time(pid) != start, _LEAVING_S, step)
        if not agent.has_left:
            late = f"the agent of ptt did not leave it within {_LEAVING_S:.0f} s"
            raise PttError(f"process {pid}: {late if start_time(pid) == start else 'it has ended'}")
        return agent.calls[1]
    finally:
        session.remove()


def _until(done: Callable[[], bool], seconds: float, step: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        step()
