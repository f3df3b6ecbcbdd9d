"""Runs inside gdb: stops a process again and again, and writes the stacks of threads in hooks.

    PTT_OUT=FILE PTT_STOPS=N gdb -batch -p PID -x benchmarks/support/stacks_gdb.py

Each line is a thread at a stop: the time (CLOCK_MONOTONIC), the thread id, and the places in the
frames behind the tracer's frames. The place of a frame that a signal interrupted is one byte
further, as in a trace.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import gdb

TRACER, LIBRARY = ("libnptltrace.so", "/handlers/lib"), "libc.so"
FRAMES = 80


def callers(thread: Any) -> list[int]:
    """Return the places behind the hook in which a thread waits; none outside of hooks."""
    thread.switch()
    frame, places, inside = gdb.newest_frame(), [], False
    while frame is not None and len(places) < FRAMES:
        # inlined frames, and frames left by a jump, have no place of their own
        if frame.type() not in {gdb.INLINE_FRAME, gdb.TAILCALL_FRAME}:
            library = gdb.solib_name(frame.pc()) or ""
            if not places and any(part in library for part in TRACER):
                inside = True
            elif inside:
                after_signal = frame.newer().type() == gdb.SIGTRAMP_FRAME
                places.append(frame.pc() + after_signal)
            elif LIBRARY not in library:
                return []
        try:
            frame = frame.older()
        except gdb.error:
            break
    return places


def stop_soon(pid: int) -> subprocess.Popen[bytes]:
    """Stop the process a little later, from a new process: gdb's threads stop while gdb waits."""
    after = random.uniform(0.001, 0.02)  # noqa: S311 -- no secret
    return subprocess.Popen(["sh", "-c", f"sleep {after:.4f}; kill -STOP {pid}"])


def main() -> None:
    """Stop, look, go on."""
    for command in (
        "set pagination off",
        "set print thread-events off",
        "handle all nostop noprint pass",
        "handle SIGSTOP stop print nopass",
        "set backtrace past-main on",
    ):
        gdb.execute(command, to_string=True)
    pid = gdb.selected_inferior().pid
    with Path(os.environ["PTT_OUT"]).open("w") as out:
        for _ in range(int(os.environ["PTT_STOPS"])):
            stopper = stop_soon(pid)
            gdb.execute("continue", to_string=True)
            stopper.wait()
            if not gdb.selected_inferior().pid:
                break
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            for thread in gdb.selected_inferior().threads():
                frames = callers(thread)
                if frames:
                    out.write(json.dumps([now, thread.ptid[1], frames]) + "\n")
        else:
            gdb.execute("detach", to_string=True)


main()
