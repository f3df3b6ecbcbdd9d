"""Conditions by the events that wait for them or signal them, of processes of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace._binding import libpttread

__all__ = ["find_conditions"]

_NAMES = ("COND_SIGNAL", "COND_WAIT_IN", "COND_TIMEDWAIT_IN")
_IDS = [event.id for event in EVENTS if event.name in _NAMES]


def find_conditions(
    reader: libpttread.Reader, threads: Sequence[tuple[int, int]], budget: int
) -> dict[int, set[int]]:
    """Return the addresses of conditions by number of the process.

    Args:
        reader: Of the opened traces.
        threads: (process, tid) of each thread that it knows.
        budget: How many bytes of packets to search at most.
    """
    process_of = np.array([process for process, _ in threads], np.uint64)
    found: dict[int, set[int]] = {}
    for buffer in reader.find(_IDS, budget):
        thread, address = (np.array(buffer.arrays[n])[: buffer.count] for n in ("thread", "object"))
        pairs = np.unique(np.stack([process_of[thread], address]), axis=1)
        for process, one in pairs.T.tolist():
            found.setdefault(process, set()).add(one)
    return found
