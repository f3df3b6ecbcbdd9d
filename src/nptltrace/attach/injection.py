"""Puts the tracer into a process: a thread is stopped and makes a new thread, which loads it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nptltrace._binding import libpttinject
from nptltrace._binding.headers import inject as c
from nptltrace.attach.refusals import c_library, why_not
from nptltrace.attach.threads import Sleepers
from nptltrace.errors import PttError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.process import Process

__all__ = ["Injection"]

_ENTRY = b"__nptl_trace_attach"
_FUNCTIONS = {
    "create": "pthread_create", "detach": "pthread_detach", "dlopen": "dlopen", "dlsym": "dlsym",
    "dlerror": "dlerror", "munmap": "munmap",
}  # fmt: skip
_PAUSE_S = 0.02


class Injection:
    """An entrance into a process: stops a thread, which makes a thread for the tracer.

    Args:
        process: The process.
        names: The names of its functions.
        library: Path of the tracer.

    Raises:
        PttError: It is not safe to attach to the process; the message says why.
    """

    def __init__(self, process: Process, names: Names, library: Path) -> None:
        reason = why_not(process, names, library)
        if reason is not None:
            raise PttError(f"process {process.pid} is left alone: {reason}")
        self._process = process
        self._sleepers = Sleepers(process, names)
        self._library = library
        self._addresses: dict[str, int] = {}
        self._tid = 0
        self._done: libpttinject.Injected | None = None
        module = c_library(process)
        for field, function in _FUNCTIONS.items():
            exported = names.exported(module, function) if module is not None else range(0)
            if not exported:
                raise PttError(
                    f"cannot attach to process {process.pid}: its C library has no {function}"
                )
            self._addresses[field] = exported.start

    @property
    def stopped_ns(self) -> int:
        """How long the thread was stopped, in nanoseconds."""
        return int(self._done.stopped_ns) if self._done is not None else 0

    def begin(self, text: str, patience_ns: int, waits: Callable[[], bool]) -> None:
        """Stop a thread, and let it make the new thread.

        Args:
            text: The text for the tracer.
            patience_ns: How long to look for a thread that can be stopped.
            waits: Called between two looks; returns whether to continue.

        Raises:
            PttError: No thread can be stopped, or the kernel does not allow it.
        """
        until = time.monotonic_ns() + patience_ns
        while True:
            for request in self._sleepers.find():
                request.library, request.function = os.fsencode(self._library), _ENTRY
                request.text = os.fsencode(text)
                for field, address in self._addresses.items():
                    setattr(request, field, address)
                self._done = libpttinject.inject(request)
                if self._done is not None:
                    self._tid = request.tid
                    return
            if time.monotonic_ns() > until or not waits():
                raise PttError(
                    f"cannot attach to process {self._process.pid}: no thread slept in a call of "
                    "the program's own code, outside of all locks of the C library"
                )
            time.sleep(_PAUSE_S)

    def failure(self) -> str:
        """Return why the new thread does not run; empty while it may still run."""
        done = self._done
        if done is None or not libpttinject.look(self._process.entry, done):
            return ""
        if done.error:
            return f"it cannot create another thread: {os.strerror(done.error)}"
        if done.status == c.PTT_INJECT_REFUSED:
            return f"it cannot load the tracer: {bytes(done.text).decode(errors='replace')}"
        if done.status == c.PTT_INJECT_RETURNED:
            return "its new thread cannot open the files of the recording"
        return ""

    def is_over(self) -> bool:
        """Return whether the stopped thread is back in its own code."""
        done, thread = self._done, self._process.thread(self._tid)
        if done is None:
            return False
        if thread is None:
            return True
        inside = range(done.memory, done.memory + done.size)
        return bool(thread.pc) and thread.pc not in inside and thread.sp not in inside
