"""The tracer in this process: loads it, and sends events of the program to it."""

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
# Arguments of the tracer's threads, which may read them as long as they live.
_texts: list[ctypes.Array[ctypes.c_char]] = []


@cache
def _loaded() -> ctypes.CDLL:
    """Return the global namespace of symbols, which includes libraries that are loaded later."""
    return ctypes.CDLL(None)


def is_enabled() -> bool:
    """Return whether this process is being recorded."""
    try:
        return bool(ctypes.c_int.in_dll(_loaded(), "__nptl_trace_enabled").value)
    except ValueError:
        return False


def can_join() -> bool:
    """Return whether the C library allows a tracer in a running process: glibc 2.35 or newer."""
    return hasattr(_loaded(), "_dl_find_object")


def join(library: Path, text: bytes) -> None:
    """Load the tracer, and start a thread of the tracer that joins a recording.

    Args:
        library: The tracer.
        text: Argument of the thread.

    Raises:
        OSError: The tracer cannot be loaded.
        NativeError: The thread cannot be created.
    """
    # Handlers use functions of the tracer. The functions of the C library still precede the hooks.
    loaded = ctypes.CDLL(os.fspath(library), mode=ctypes.RTLD_GLOBAL)
    _texts.append(ctypes.create_string_buffer(text))
    thread = ctypes.c_ulong()
    # Only threads of the program handle signals.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        error = _loaded().pthread_create(ctypes.byref(thread), None, loaded[_ENTRY], _texts[-1])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if error:
        raise NativeError("cannot create another thread", error)
    _loaded().pthread_detach(thread)


def sender() -> Callable[[int, int, bytes], None] | None:
    """Return a function that sends an event of the program; None if there is no tracer.

    The function takes domain, event and data. A tracer may be loaded at any time, and stays loaded.
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
