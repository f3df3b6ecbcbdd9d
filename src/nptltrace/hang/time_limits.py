"""The time left until the limits of waits, and limits from another clock."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from nptltrace.hang.thread_picture import Limit

if TYPE_CHECKING:
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["is_of_other_clock", "length", "with_limit"]

_TIMESPEC = struct.Struct("<qq")
_NS = 10**9
# futex(2): FUTEX_CLOCK_REALTIME, and the mask of the operation. FUTEX_WAIT has a relative limit.
# FUTEX_LOCK_PI always uses CLOCK_REALTIME.
_REALTIME, _OPERATION = 256, 127
_WAIT, _LOCK_PI = 0, 6
_DAY_NS = 86_400 * _NS
_YEAR_NS = 31_557_600 * _NS
# A limit this far away is a mistake if it is this near by the other clock.
_FAR_NS, _NEAR_NS = 10 * _YEAR_NS, 7 * _DAY_NS
_UNITS = ((_YEAR_NS, "years"), (_DAY_NS, "days"), (3600 * _NS, "hours"), (_NS, "s"))


def with_limit(process: Target, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the time limit of its wait.

    Args:
        process: The process.
        seen: The thread.
    """
    is_timed = process.has_own_time and seen.wait is not None and seen.wait.timed
    return seen._replace(limit=_limit(process, seen)) if is_timed else seen


def _limit(process: Target, seen: ThreadPicture) -> Limit | None:
    call = seen.thread.call
    data = process.read(call.arguments[3], _TIMESPEC.size) if call is not None else b""
    if call is None or len(data) < _TIMESPEC.size:
        return None
    whole, rest = _TIMESPEC.unpack(data)
    limit, operation = whole * _NS + rest, call.arguments[1]
    if operation & _OPERATION == _WAIT:
        return Limit(limit, is_length=True)
    realtime, monotonic = limit - time.time_ns(), limit - time.monotonic_ns()
    if operation & _REALTIME or operation & _OPERATION == _LOCK_PI:
        return Limit(realtime)
    return Limit(monotonic, as_realtime_ns=realtime)


def is_of_other_clock(limit: Limit) -> bool:
    """Return whether a limit by CLOCK_MONOTONIC was computed from a time of CLOCK_REALTIME."""
    other = limit.as_realtime_ns
    return limit.ns > _FAR_NS and other is not None and abs(other) < _NEAR_NS


def length(ns: int) -> str:
    """Return a length of time as text: `56.9 years`, `12.0 s`."""
    if abs(ns) < _NS:
        return f"{ns / 1e9:.3f} s"
    unit, name = next((u for u in _UNITS if abs(ns) >= 2 * u[0]), _UNITS[-1])
    return f"{ns / unit:.1f} {name}"
