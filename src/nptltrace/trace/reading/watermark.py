"""The time that bounds the events on disk: a running recording has written all earlier events."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.trace.traceset import Traceset

__all__ = ["Settled"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Settled:
    """Tells the time before which all events of a running recording are on disk.

    Events of different threads reach the disk at different times. The recorder writes half-full
    buffers after a while, so every event is on disk within `LAG_S` seconds.

    Args:
        source: The opened traces. The caller refreshes them.
    """

    LAG_S = 2.0

    def __init__(self, source: Traceset) -> None:
        self._source = source
        self._ends: list[tuple[float, int]] = []
        self._here = all(_recorded_here(trace.metadata.env) for trace in source.traces)

    def until_ns(self) -> int:
        """Return a time, in ns since the traceset's start: no new event comes before it."""
        if self._here:
            return time.time_ns() - self._source.start_unix_ns - int(self.LAG_S * 1e9)
        # Clocks of two machines differ. So take the end that the trace had `LAG_S` seconds ago.
        now, end = time.monotonic(), self._source.end_ns()
        self._ends.append((now, -1 if end is None else end))
        old = [when for when, _ in self._ends if when <= now - self.LAG_S]
        del self._ends[: max(len(old) - 1, 0)]
        return self._ends[0][1] + 1 if old else 0


def _recorded_here(env: dict[str, str | int]) -> bool:
    """Return whether a trace was recorded on this machine since its last boot."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return False
    return str(env.get("boot_id", "")).replace("-", "") == boot.replace("-", "")
