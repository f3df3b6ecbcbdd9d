"""Conditions by the events that wait for them or signal them, of processes of Python."""

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
    """A condition.

    Attributes:
        first_ns: When it was first waited for or signalled.
        own: None but the interpreter did so, for functions of Python or for itself.
    """

    first_ns: int
    own: bool


def find_conditions(
    reader: libpttread.Reader, processes: Sequence[Process],
    threads: Sequence[tuple[int, int]], budget: int,
) -> dict[int, dict[int, Condition]]:  # fmt: skip
    """Return the conditions by number of the process and by address.

    Args:
        reader: Of the opened traces.
        processes: The processes by number.
        threads: (process, tid) of each thread that it knows.
        budget: How many bytes of packets to search at most.
    """
    process_of = np.array([process for process, _ in threads], np.int64)
    own: dict[tuple[int, int, int], bool] = {}
    conditions: dict[int, dict[int, Condition]] = {}
    for buffer in reader.find(_IDS, budget):
        if not buffer.count:
            continue
        columns = {name: np.array(buffer.arrays[name])[: buffer.count] for name in _COLUMNS}
        process = process_of[columns["thread"]]
        some = _identities(process, *(columns[name] for name in ("object", "site", "stack")))
        order = np.argsort(some, kind="stable")
        begins = np.flatnonzero(np.diff(some[order], prepend=-1))
        first = np.minimum.reduceat(columns["ts"][order], begins)
        rows = (column[order[begins]].tolist() for column in (process, *columns.values()))
        for (number, _, address, site, stack, _), ts in zip(
            zip(*rows, strict=True), first, strict=True
        ):
            key = (number, site, stack)
            if key not in own:
                own[key] = _is_own(processes[number], site, stack)
            of = conditions.setdefault(number, {})
            known = of.get(address, Condition(int(ts), own=True))
            of[address] = Condition(min(known.first_ns, int(ts)), known.own and own[key])
    return conditions


def _identities(
    process: NDArray[Any], address: NDArray[Any], site: NDArray[Any], stack: NDArray[Any]
) -> NDArray[np.int64]:
    """Return a number for each event, the same for events that agree in all of these."""
    # Where there is a stack, it says more than the call site.
    place = np.unique(np.where(stack > 0, stack, site), return_inverse=True)[1]
    numbers = 2 * place + (stack > 0)
    for column in (address, process):
        values, which = np.unique(column, return_inverse=True)
        numbers = numbers * len(values) + which
    return numbers


def _is_own(process: Process, site: int, stack: int) -> bool:
    """Return whether the innermost function of a call is one of the interpreter, or of Python."""
    innermost = process.stacks.get(stack, (0, 0))[1] or address_of_site(site)
    return is_python(innermost) or process.map.in_interpreter(innermost)
