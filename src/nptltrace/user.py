"""Events of a Python program: `nptltrace.user_event("text")` puts them into the trace."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers.nptl_trace import (
    FUNCTIONS,
    NPTL_TRACE_SOURCE_PROGRAM,
    NptlTraceEvent,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["is_traced", "user_event"]

_NUMBER_MAX = 127


@cache
def _sender() -> Callable[[NptlTraceEvent], None] | None:
    """Return the tracer's function in this process; None if there is no tracer."""
    try:
        send = ctypes.CDLL(None).nptl_trace_send_user_event
    except (AttributeError, OSError):
        return None
    send.restype, send.argtypes = FUNCTIONS["nptl_trace_send_user_event"]

    def call(event: NptlTraceEvent) -> None:
        send(event)

    return call


def is_traced() -> bool:
    """Return whether a tracer is loaded into this process, so that making up a text is worth it."""
    return _sender() is not None


def user_event(data: str | bytes, *, domain: int = 0, event: int = 0) -> None:
    """Add an event of the program to the trace; do nothing where there is no tracer.

    Args:
        data: What to say, text or bytes. The trace keeps the first 4074 bytes.
        domain: The program's own choice, from 0 to 127.
        event: The program's own choice, from 0 to 127.

    Raises:
        ValueError: `domain` or `event` is out of range.

    Example:
        >>> import nptltrace
        >>> nptltrace.user_event("the cache is warm")
    """
    if not (0 <= domain <= _NUMBER_MAX and 0 <= event <= _NUMBER_MAX):
        raise ValueError(f"domain and event must be from 0 to {_NUMBER_MAX}")
    send = _sender()
    if send is None:
        return
    payload = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
    address = ctypes.cast(ctypes.c_char_p(payload), ctypes.c_void_p)
    send(NptlTraceEvent(NPTL_TRACE_SOURCE_PROGRAM, domain, event, len(payload), address.value))
