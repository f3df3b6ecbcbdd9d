"""Stops the running threads of a process for a moment by ptrace, and leaves sleeping threads alone.

A stop would end the system call of a sleeping thread, and some calls then fail with EINTR. A
sleeping thread cannot change a lock unless a running thread wakes it. So it need not be stopped.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Self

from nptltrace._binding.libc import ptrace, register_set
from nptltrace.errors import NativeError, PttError
from nptltrace.hang.targets.registers import SIZE, Registers

if TYPE_CHECKING:
    from nptltrace.hang.targets.process import Process

__all__ = ["Stopped"]

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_PRSTATUS = 1
_WALL = 0x4000_0000
_EVENT_STOP = 128
# A thread in an uninterruptible call does not stop, and the other threads must not wait for it. A
# runnable thread stops when it gets a processor, which takes time on a busy machine.
_PATIENCE_S = 0.02
_PATIENCE_RUNNABLE_S = 1.0
_LOOK_S = 0.0001
_PASSES = 8
_MACHINE = "x86_64"


class Stopped:
    """A context that stops the running threads of a process.

    If our process ends for any reason, the kernel lets all threads continue.

    Args:
        process: The process.

    Raises:
        PttError: The process has a tracer, or we may not stop it.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        # The stopped threads, each with the signal that it was about to take, or 0.
        self._signals: dict[int, int] = {}
        if process.machine != _MACHINE:
            raise PttError(f"--stop is for x86-64, and this is {process.machine}")
        tracer = process.tracer()
        if tracer:
            raise PttError(
                f"cannot stop process {process.pid}: process {tracer} traces it; end that, "
                "or leave --stop out"
            )

    def __enter__(self) -> Self:
        """Stop the running threads, and the threads that they create or wake meanwhile."""
        try:
            for _ in range(_PASSES):
                running = [t for t in self._process.running() if t not in self._signals]
                if not running:
                    break
                self._stop(running)
        except BaseException:
            self._let_go()
            raise
        self._process.stopped = {
            tid: Registers(data)
            for tid in self._signals
            if (data := register_set(tid, _PRSTATUS, SIZE)) is not None
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Let all threads continue."""
        self._let_go()

    def _stop(self, tids: list[int]) -> None:
        waited: list[int] = []
        for tid in tids:
            seized = ptrace(_SEIZE, tid)
            if seized == 0:
                waited.append(tid)
                self._signals[tid] = 0
                ptrace(_INTERRUPT, tid)
            elif seized == -errno.EPERM and self._process.thread(tid) is not None:
                raise NativeError(f"cannot stop process {self._process.pid}", errno.EPERM)
        begin = time.monotonic()
        while waited := [tid for tid in waited if not self._has_stopped(tid)]:
            passed = time.monotonic() - begin
            if passed > _PATIENCE_S:
                waited = [tid for tid in waited if self._is_runnable(tid)]
            if passed > _PATIENCE_RUNNABLE_S:
                break
            time.sleep(_LOOK_S)

    def _has_stopped(self, tid: int) -> bool:
        """Return whether a thread has stopped or is gone."""
        try:
            done, status = os.waitpid(tid, _WALL | os.WNOHANG)
        except ChildProcessError:
            done, status = tid, 0
        if done == 0:
            return False
        if not os.WIFSTOPPED(status):
            self._signals.pop(tid, None)
        elif status >> 16 != _EVENT_STOP:
            self._signals[tid] = os.WSTOPSIG(status)
        return True

    def _let_go(self) -> None:
        self._process.stopped = {}
        until = time.monotonic() + _PATIENCE_S
        for tid in list(self._signals):
            # PTRACE_DETACH fails for a thread that has not stopped yet.
            while (
                ptrace(_DETACH, tid, None, self._signals.get(tid)) != 0
                and tid in self._signals
                and self._process.thread(tid) is not None
                and time.monotonic() < until
            ):
                self._has_stopped(tid)
        self._signals.clear()

    def _is_runnable(self, tid: int) -> bool:
        thread = self._process.thread(tid)
        return thread is not None and thread.state == "R"
