"""Java's virtual machine as the program: the agent that knows its monitors is loaded into it.

By an option of its command line, since a machine that finds one in the environment says so on
standard error.
"""

from __future__ import annotations

import os

from nptltrace import _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nptltrace.recording.settings.options import RecordOptions

__all__ = ["with_agent"]

AGENT = "libpttjava.so"
# A machine that is to write an archive of its classes refuses to run with an agent.
_ARCHIVES = (
    "-Xshare:dump",
    "-XX:ArchiveClassesAtExit",
    "-XX:+AutoCreateSharedArchive",
    "-XX:AOTMode=record",
    "-XX:AOTMode=create",
    "-XX:AOTCacheOutput",
)
_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


def with_agent(options: RecordOptions, program: Path) -> tuple[str, ...]:
    """Return the command to run: with the agent, where it starts Java's virtual machine.

    Args:
        options: What was asked for.
        program: The file that the command runs.
    """
    agent = _paths.lib_dir() / AGENT
    if not options.java or not agent.is_file() or not _is_launcher(program):
        return options.command
    given = " ".join(os.environ.get(name, "") for name in _OPTIONS).split()
    if _archives(options.command[1:]) or _archives(given):
        return options.command
    option = f"-agentpath:{agent}={options.buffers.stack_depth}"
    return options.command[0], option, *options.command[1:]


def _is_launcher(program: Path) -> bool:
    """Return whether a program is the launcher `java` of a machine of Java 9 or later."""
    real = program.resolve()
    return real.name == "java" and (real.parent.parent / "lib" / "server" / "libjvm.so").is_file()


def _archives(words: Iterable[str]) -> bool:
    """Return whether there is an option by which the machine writes an archive of its classes."""
    return any(word.startswith(_ARCHIVES) for word in words)
