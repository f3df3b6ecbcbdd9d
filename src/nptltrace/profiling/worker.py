"""The second process of a profile: adds up segments, and writes the profile of each.

`recording.profile` writes a JSON line to standard input for each segment, and reads a JSON line
from standard output when the segment may be removed. The process ends when standard input closes.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.analysis.sql.tables import TraceTables
from nptltrace.errors import PttError, UsageError, one_line
from nptltrace.profiling import pprof_file, table
from nptltrace.profiling.interval import CONTENDED, Interval
from nptltrace.profiling.sampling import Sampler
from nptltrace.profiling.sums import Carry, add_up
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]


class _Profiler:
    """Adds up segments.

    Args:
        settings: The settings that `recording.profile` passes.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._directory = Path(settings["directory"])
        self._min_wait_ns = int(settings["min_wait_ns"])
        self._sampler = Sampler(int(settings["sample_wait_ns"]))
        self._carry = Carry()
        self._symbols: Symbols | None = None
        self._remarks: list[str] = []
        self._told: set[str] = set()
        self._totals = {"waits": 0, "wait_ns": 0, "intervals": 0, "lost": 0}

    def take(self, message: dict[str, Any]) -> dict[str, Any]:
        """Add up a segment, write its profile, and return the answer."""
        interval = Interval(int(message["begin_ns"]), int(message["end_ns"]))
        interval.lost = int(message["lost"]) + int(message["given_up"])
        with closing(Traceset(message["segment"])) as source:
            if self._symbols is None:
                self._symbols = symbols = Symbols(source)
            else:
                symbols = self._symbols.of(source)
            add_up(
                TraceTables(source, symbols), source, interval, self._carry, self._sampler,
                min_wait_ns=self._min_wait_ns, last=bool(message["last"]),
            )  # fmt: skip
        self._totals["lost"] += interval.lost
        if self._write(interval):
            self._count(interval)
        remarks, self._remarks = self._remarks, []
        return {"done": message["segment"], "totals": self._totals, "remarks": remarks}

    def _write(self, interval: Interval) -> bool:
        """Write all files of an interval, and return whether all could be written."""
        written = True
        for write in (pprof_file.write, table.write):
            try:
                write(interval, self._directory)
            except (OSError, UsageError) as error:
                written = False
                why = error.strerror if isinstance(error, OSError) else error
                self._say(f"{self._directory}: {why}; this interval is not written")
        return written

    def _count(self, interval: Interval) -> None:
        contended = [row for row in interval.rows if row.wait_class == CONTENDED]
        self._totals["waits"] += round(sum(row.count for row in contended))
        self._totals["wait_ns"] += round(sum(row.total_ns for row in contended))
        self._totals["intervals"] += 1

    def _say(self, remark: str) -> None:
        """Say a remark once."""
        if remark not in self._told:
            self._told.add(remark)
            self._remarks.append(remark)


def main() -> None:
    """Add up the segments that standard input names."""
    # The recorder blocks this signal. No part of a file stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("a signal ended its second process"))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    profiler = _Profiler(json.loads(sys.argv[1]))
    answers = sys.stdout.buffer
    for line in sys.stdin.buffer:
        try:
            answer = profiler.take(json.loads(line))
        except (PttError, OSError, MemoryError) as error:
            sys.exit(one_line(error))
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
