"""Conditions by the events that wait for them or signal them, of processes of Python."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nptltrace.catalog import EVENTS
from nptltrace.trace.places.python_code import is_interpreter, is_python
from nptltrace.trace.places.site import address_of_site

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    process_of = np.array([process for process, _ in threads], np.uint64)
    own: dict[tuple[int, int, int], bool] = {}
    found: dict[int, dict[int, Condition]] = {}
    for buffer in reader.find(_IDS, budget):
        columns = {name: np.array(buffer.arrays[name])[: buffer.count] for name in _COLUMNS}
        keys = np.stack([
            process_of[columns["thread"]],
            *(columns[name].astype(np.uint64) for name in ("object", "site", "stack")),
        ])  # fmt: skip
        unique, which = np.unique(keys, axis=1, return_inverse=True)
        first = np.full(unique.shape[1], np.iinfo(np.int64).max)
        np.minimum.at(first, which.reshape(-1), columns["ts"])
        for (process, address, *place), ts in zip(unique.T.tolist(), first.tolist(), strict=True):
            key = (process, *place)
            if key not in own:
                own[key] = _is_own(processes[process], *place)
            of = found.setdefault(process, {})
            known = of.get(address, Condition(ts, own=True))
            of[address] = Condition(min(known.first_ns, ts), known.own and own[key])
    return found


def _is_own(process: Process, site: int, stack: int) -> bool:
    """Return whether the innermost function of a call is one of the interpreter, or of Python."""
    innermost = process.stacks.get(stack, (0, 0))[1] or address_of_site(site)
    if is_python(innermost):
        return True
    module = process.map.only(innermost)
    return module is not None and is_interpreter(PurePath(module.path).name)
