"""The tracer that is loaded into this process, if there is one."""

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

__all__ = ["sender"]


@cache
def sender() -> Callable[[int, int, bytes], None] | None:
    """Return what sends events of the program: domain, event, data; None if there is no tracer."""
    try:
        send = ctypes.CDLL(None).nptl_trace_send_user_event
    except (AttributeError, OSError):
        return None
    send.restype, send.argtypes = FUNCTIONS["nptl_trace_send_user_event"]

    def call(domain: int, event: int, data: bytes) -> None:
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        send(NptlTraceEvent(NPTL_TRACE_SOURCE_PROGRAM, domain, event, len(data), address.value))

    return call
