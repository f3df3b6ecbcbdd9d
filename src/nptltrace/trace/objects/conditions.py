"""Finds the condition variables of Python processes by the events that wait or signal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nptltrace.catalog import EVENTS
from nptltrace.trace.code.call_site import address_of_site
from nptltrace.trace.code.python_code import is_python

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace._binding import libpttread
    from nptltrace.trace.info import Process

__all__ = ["Condition", "find_conditions"]

_NAMES = ("COND_SIGNAL", "COND_WAIT_IN", "COND_TIMEDWAIT_IN")
_IDS = [event.id for event in EVENTS if event.name in _NAMES]
_COLUMNS = ("thread", "object", "site", "stack", "ts")


class Condition(NamedTuple):
    """A condition variable.

    Attributes:
        first_ns: Time of its first event, in ns since the traceset's start.
        own: Whether only the interpreter uses it, for itself or for functions of Python.
    """

    first_ns: int
    own: bool


def find_conditions(
    reader: libpttread.Reader, processes: Sequence[Process],
    threads: Sequence[tuple[int, int]], budget: int,
) -> dict[int, dict[int, Condition]]:  # fmt: skip
    """Return the condition variables by number of the process and by address.

    Args:
        reader: The reader of the opened traces.
        processes: The processes by number.
        threads: (process, tid) of the threads by number.
        budget: Search this many bytes of packets at most.
    """
    process_of = np.array([process for process, _ in threads], np.int64)
    by_python: dict[tuple[int, int, int], bool] = {}
    conditions: dict[int, dict[int, Condition]] = {}
    for buffer in reader.find(_IDS, budget):
        if not buffer.count:
            continue
        columns = {name: np.array(buffer.arrays[name])[: buffer.count] for name in _COLUMNS}
        process = process_of[columns["thread"]]
        groups = _groups(process, *(columns[name] for name in ("object", "site", "stack")))
        order = np.argsort(groups, kind="stable")
        begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
        first = np.minimum.reduceat(columns["ts"][order], begins)
        rows = (column[order[begins]].tolist() for column in (process, *columns.values()))
        for (number, _, address, site, stack, _), ts in zip(
            zip(*rows, strict=True), first, strict=True
        ):
            key = (number, site, stack)
            if key not in by_python:
                map_, stacks = processes[number].map, processes[number].stacks
                innermost = stacks.get(stack, (0, 0))[1] or address_of_site(site)
                by_python[key] = is_python(innermost) or map_.in_interpreter(innermost)
            in_process = conditions.setdefault(number, {})
            known = in_process.get(address, Condition(int(ts), own=True))
            in_process[address] = Condition(
                min(known.first_ns, int(ts)), known.own and by_python[key]
            )
    return conditions


def _groups(
    process: NDArray[Any], address: NDArray[Any], site: NDArray[Any], stack: NDArray[Any]
) -> NDArray[np.int64]:
    """Return a number for each event: the same number for events with the same values."""
    # A stack says more than the call site.
    place = np.unique(np.where(stack > 0, stack, site), return_inverse=True)[1]
    numbers = 2 * place + (stack > 0)
    for column in (address, process):
        values, which = np.unique(column, return_inverse=True)
        numbers = numbers * len(values) + which
    return numbers
