"""The tracer that is loaded into this process, or can be."""

from __future__ import annotations

import ctypes
import os
import signal
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers.nptl_trace import (
    FUNCTIONS,
    NPTL_TRACE_SOURCE_PROGRAM,
    NptlTraceEvent,
)
from nptltrace.errors import NativeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["can_join", "is_enabled", "join", "sender"]

_ENTRY = "__nptl_trace_attach"
# What threads of the tracer were given, which they may look at as long as they live.
_texts: list[ctypes.Array[ctypes.c_char]] = []


@cache
def _loaded() -> ctypes.CDLL:
    """Return all libraries of this process, those included that come to be loaded."""
    return ctypes.CDLL(None)


def is_enabled() -> bool:
    """Return whether this process is being recorded."""
    try:
        return bool(ctypes.c_int.in_dll(_loaded(), "__nptl_trace_enabled").value)
    except ValueError:
        return False


def can_join() -> bool:
    """Return whether the C library has what it takes to load the tracer into what runs."""
    return hasattr(_loaded(), "_dl_find_object")


def join(library: Path, text: bytes) -> None:
    """Load the tracer, and have a thread of its own join a recording.

    Args:
        library: The tracer.
        text: What it is given.

    Raises:
        OSError: It cannot be loaded.
        NativeError: There cannot be another thread.
    """
    # Handlers use functions of the tracer's; the C library's come before its hooks all the same.
    loaded = ctypes.CDLL(os.fspath(library), mode=ctypes.RTLD_GLOBAL)
    _texts.append(ctypes.create_string_buffer(text))
    thread = ctypes.c_ulong()
    # Signals are for threads of the program.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        error = _loaded().pthread_create(ctypes.byref(thread), None, loaded[_ENTRY], _texts[-1])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if error:
        raise NativeError("cannot create another thread", error)
    _loaded().pthread_detach(thread)


def sender() -> Callable[[int, int, bytes], None] | None:
    """Return what sends events of the program: domain, event, data; None if there is no tracer.

    A tracer may come at any time, and stays.
    """
    return _sender() if hasattr(_loaded(), "nptl_trace_send_user_event") else None


@cache
def _sender() -> Callable[[int, int, bytes], None]:
    send = _loaded().nptl_trace_send_user_event
    send.restype, send.argtypes = FUNCTIONS["nptl_trace_send_user_event"]

    def call(domain: int, event: int, data: bytes) -> None:
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        send(NptlTraceEvent(NPTL_TRACE_SOURCE_PROGRAM, domain, event, len(data), address.value))

    return call
