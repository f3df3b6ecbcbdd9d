"""Signals of the recorder: held back while it works, and looked at between two steps."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Self

from nptltrace.record import launch

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Interrupts"]

_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


class Interrupts:
    """Blocks the signals that would end the recorder, and passes them on to the program.

    What the terminal sends reaches the whole process group by itself; only what was sent to the
    recorder alone is passed on. The end of a child interrupts a sleep and does nothing else.
    """

    def __enter__(self) -> Self:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        self._child = signal.signal(signal.SIGCHLD, lambda *_: None)
        launch.remember_mask({signal.Signals(number) for number in self._before})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGCHLD, self._child)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def forward(self, pid: int | None) -> set[int]:
        """Pass on what has come.

        Args:
            pid: The program, or None if it has ended.

        Returns:
            The signals that have come.
        """
        came: set[int] = set()
        while (info := signal.sigtimedwait(_FORWARDED, 0)) is not None:
            came.add(info.si_signo)
            # Positive codes come from the kernel, that is, from the terminal.
            if pid is not None and info.si_code <= 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, info.si_signo)
        return came
