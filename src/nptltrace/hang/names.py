"""Names for what lies in a running process: functions with their lines, and global variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.hang.process import Process
    from nptltrace.hang.stacks import Frame
    from nptltrace.trace.symbols.lookup import Location, Symbols

__all__ = ["Names", "OneProcess"]


class OneProcess:
    """A running process in the place of the processes of a traceset, for `Symbols`.

    Args:
        process: The process.

    Attributes:
        notes: Why names are missing, a sentence each.
    """

    traces = ()

    def __init__(self, process: Process) -> None:
        self._processes = [process]
        self.notes: list[str] = []

    def processes(self) -> list[Process]:
        """Return the process alone."""
        return self._processes


class Names:
    """Names addresses of one process.

    Args:
        symbols: The names of a `OneProcess`.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def location(self, frame: Frame, *, innermost: bool) -> Location:
        """Return what is known of a frame.

        Args:
            frame: The frame.
            innermost: It is where the thread is, not where a call returns to.
        """
        return self._symbols.location(0, frame.address + innermost)

    def object(self, address: int) -> str:
        """Return the name of the global variable at an address, or the empty string."""
        return self._symbols.object_name(0, address)
