"""Signals of the recorder: blocked while it works, and handled between two steps."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from nptltrace._escaping import talk
from nptltrace.recording import launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

__all__ = ["Interrupts"]

_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})


class Interrupts:
    """Blocks the signals that would end the recorder, and passes them on to the program.

    Signals of the terminal reach the whole process group; only signals to the recorder alone are
    passed on. SIGCHLD interrupts a sleep and does nothing else.

    Args:
        more: Further signals to block and to pass on. SIGCHLD ends the patience of `forward`, and
            is not passed on.

    Attributes:
        ended_by: The signal that ended the recording while the program runs, or None: a second
            SIGINT, or a signal that the program ignores. A background job of a script, for example,
            ignores SIGINT.
    """

    def __init__(self, more: Collection[signal.Signals] = ()) -> None:
        self._signals = _FORWARDED.union(more)
        self.ended_by: signal.Signals | None = None
        self._interrupted = False

    def __enter__(self) -> Self:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        self._child = signal.signal(signal.SIGCHLD, lambda *_: None)
        launch.remember_signals(
            {signal.Signals(number) for number in self._before},
            ignored={signal.SIGCHLD} if self._child == signal.SIG_IGN else set(),
        )
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGCHLD, self._child)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def forward(self, pid: int | None, patience_s: float = 0.0) -> set[int]:
        """Pass the pending signals on.

        Args:
            pid: The program, or None if it has ended.
            patience_s: How long to wait for a signal if none is pending, in s.

        Returns:
            The signals that were pending.
        """
        came: set[int] = set()
        while (info := signal.sigtimedwait(self._signals, patience_s)) is not None:
            patience_s = 0.0
            came.add(info.si_signo)
            # Positive codes come from the kernel, so from the terminal; see sigaction(2).
            if pid is not None and info.si_code <= 0 and info.si_signo != signal.SIGCHLD:
                self._judge(pid, signal.Signals(info.si_signo))
                try:
                    os.kill(pid, info.si_signo)
                except ProcessLookupError:
                    pass
                except PermissionError:  # such as sudo, which runs as another user
                    name = signal.Signals(info.si_signo).name
                    talk(f"cannot pass {name} on to process {pid}: it belongs to another user")
        return came

    def is_asked_to_end(self, patience_s: float) -> bool:
        """Wait so long at most, and return whether the user does not want to wait any more."""
        return bool(self.forward(None, patience_s) - {signal.SIGCHLD})

    def _judge(self, pid: int, number: signal.Signals) -> None:
        """Decide whether a signal to the program also ends the recording."""
        if number == signal.SIGINT and self._interrupted:
            self.ended_by = number
        if number in _ENDING and _ignores(pid, number):
            self.ended_by = number
        self._interrupted |= number == signal.SIGINT


def _ignores(pid: int, number: signal.Signals) -> bool:
    """Return whether a process ignores a signal."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return ignored is not None and bool(int(ignored[1], 16) >> (number - 1) & 1)
