"""Java's virtual machine as the program: the agent that knows its monitors is loaded into it.

By an option of its command line, since a machine that finds one in the environment says so on
standard error.
"""

from __future__ import annotations

from nptltrace import _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.recording.settings.options import RecordOptions

__all__ = ["with_agent"]

AGENT = "libpttjava.so"


def with_agent(options: RecordOptions, program: Path) -> tuple[str, ...]:
    """Return the command to run: with the agent, where it starts Java's virtual machine.

    Args:
        options: What was asked for.
        program: The file that the command runs.
    """
    agent = _paths.lib_dir() / AGENT
    if not options.java or not agent.is_file() or not _is_launcher(program):
        return options.command
    option = f"-agentpath:{agent}={options.buffers.stack_depth}"
    return options.command[0], option, *options.command[1:]


def _is_launcher(program: Path) -> bool:
    """Return whether a program is the launcher `java` of a machine of Java 9 or later."""
    real = program.resolve()
    return real.name == "java" and (real.parent.parent / "lib" / "server" / "libjvm.so").is_file()
