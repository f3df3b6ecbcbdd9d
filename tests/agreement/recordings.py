"""Recordings of many kinds of programs, for the comparison of figures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import PROGRAMS as TINY
from tests.support import ROOT, small_file_system

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

__all__ = ["FEW", "RECORDINGS", "Missing", "Place"]

_HERE = Path(__file__).parent / "programs"
_CORPUS = ROOT / "tests" / "corpus"
_PATIENCE_S = 60
_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread"]
# The recordings that the tests compare by default, each in about a second.
FEW = ("busy", "reused", "full-disk")


class Missing(Exception):  # noqa: N818 -- no error: a recording cannot be made here
    """The machine lacks something that a recording needs."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs are built and recorded.

    Attributes:
        ptt: The runner to record with.
        directory: An empty directory.
    """

    ptt: Ptt
    directory: Path

    @property
    def trace(self) -> Path:
        """The path of the trace."""
        return self.directory / "run.ptt"

    def built(self, source: Path, *more: str) -> Path:
        """Return a compiled program."""
        compiler = {".c": ["gcc", "-std=gnu11"], ".cc": ["g++", "-std=c++20"]}[source.suffix]
        out = self.directory / source.stem
        include = [f"-I{TINY}", f"-I{_CORPUS}", f"-I{self.ptt.native / 'include'}"]
        subprocess.run([*compiler, *_FLAGS, *include, source, "-o", out, *more], check=True)
        return out

    def record(self, *command: str | Path, options: tuple[str, ...] = (), stdin: str = "") -> Path:
        """Return the trace of a command."""
        done = self.ptt("record", "-q", "-o", self.trace, *options, "--", *command, status=None,
                        stdin=stdin)  # fmt: skip
        assert self.trace.exists(), done.stderr
        return self.trace

    def start(self, *command: str | Path, options: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start to record a command that reads its input."""
        line = self.ptt.command("record", "-q", "-o", self.trace, *options, "--", *command)
        return subprocess.Popen(line, env=self.ptt.environment(), stdin=subprocess.PIPE)

    def start_open(self) -> subprocess.Popen[bytes]:
        """Start to record threads that wait until the program's input ends."""
        return self.start(self.built(_HERE / "open.c"))

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something."""
        end = time.monotonic() + _PATIENCE_S
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.05)


def _needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"there is no {program}")


def _tiny(name: str, *args: str, options: tuple[str, ...] = ()) -> Callable[[Place], Path]:
    return lambda at: at.record(at.built(TINY / f"{name}.c"), *args, options=options)


def _corpus(name: str) -> Callable[[Place], Path]:
    return lambda at: at.record("timeout", "-s", "KILL", "0.5", at.built(_CORPUS / name))


def _own(name: str, *args: str, options: tuple[str, ...] = ()) -> Callable[[Place], Path]:
    return lambda at: at.record(at.built(_HERE / name), *args, options=options)


def _rust(at: Place) -> Path:
    _needs("rustc")
    out = at.directory / "rusty"
    subprocess.run(["rustc", "-g", "-O", "-o", out, _HERE / "rusty.rs"], check=True)
    return at.record(out)


def _glib(at: Place) -> Path:
    _needs("pkg-config")
    ask = ["pkg-config", "--cflags", "--libs", "glib-2.0"]
    found = subprocess.run(ask, capture_output=True, encoding="utf-8", check=False)
    if found.returncode:
        raise Missing("there is no GLib to compile with")
    return at.record(at.built(_HERE / "gtasks.c", *found.stdout.split()))


def _java(name: str) -> Callable[[Place], Path]:
    def record(at: Place) -> Path:
        _needs("java", "javac")
        source = TINY / "java" / f"{name}.java"
        subprocess.run(["javac", "-d", at.directory, source], check=True)
        return at.record("java", "-cp", at.directory, name)

    return record


def _python(minor: int, *args: str) -> Callable[[Place], Path]:
    def record(at: Place) -> Path:
        kept = Path.home() / ".pyenv" / "versions"
        found = [str(path) for path in kept.glob(f"3.{minor}.*/bin/python")]
        found += filter(None, [shutil.which(f"python3.{minor}")])
        if not found:
            raise Missing(f"there is no Python 3.{minor}")
        return at.record(found[0], _HERE / "pool.py", *args)

    return record


def _open(at: Place) -> Path:
    return at.record(at.built(_HERE / "open.c"))


def _attached(at: Place) -> Path:
    with subprocess.Popen([at.built(_HERE / "busy.c")]) as program:
        try:
            at.ptt("attach", "-q", "--for", "0.2s", "-o", at.trace, str(program.pid))
        except AssertionError as error:
            raise Missing(str(error)) from None
        finally:
            program.kill()
    return at.trace


def _killed(at: Place) -> Path:
    """The recorder is killed, and the program after it."""
    with at.start(at.built(_HERE / "open.c")) as recorder:
        at.until((at.trace / "info" / "session.json").exists)
        at.until(lambda: any(item.stat().st_size for item in at.trace.glob("stream*")))
        recorder.send_signal(signal.SIGKILL)
    at.ptt("recover", at.trace, status=None)
    return at.trace


def _cut(at: Place) -> Path:
    """Files of a trace end in the middle of a packet."""
    trace = at.record(at.built(_HERE / "busy.c"), "60")
    largest = max(trace.rglob("*"), key=lambda one: one.stat().st_size if one.is_file() else 0)
    os.truncate(largest, largest.stat().st_size * 2 // 3)
    return trace


def _full_disk(at: Place) -> Path:
    """The trace has the events that fit on the disk; the others are lost."""
    program = at.built(_HERE / "events.c")
    kept = at.directory / "kept.ptt"
    with small_file_system(at.directory / "small", "300k") as place:
        at.ptt("record", "-q", "-o", place / "run.ptt", "--", program, status=None)
        shutil.copytree(place / "run.ptt", kept)
    return kept


def _part(at: Place) -> Path:
    """A part of a trace, as `ptt cut` or the viewer writes it."""
    trace = at.record(at.built(_HERE / "busy.c"), "40")
    part = at.directory / "part.ptt"
    at.ptt("cut", "--from", "20ms", "--to", "40ms", "-o", part, trace)
    return part


RECORDINGS: dict[str, Callable[[Place], Path]] = {
    "mix": _tiny("mix", "3", "40", options=("-l", "3")),
    "everything": _tiny("mix", "4", "40", options=("-l", "4", "--sched", "none")),
    "switches": _own("busy.c", "30", options=("--sched", "perf")),
    "busy": _own("busy.c", "12"),
    "rwlocks": _tiny("rwlock"),
    "barriers": _tiny("barrier"),
    "semaphores": _tiny("sem"),
    "once": _tiny("once"),
    "futexes": _tiny("futex"),
    "c11": _tiny("c11"),
    "cancelled": _tiny("cancel"),
    "standard": _own("standard.cc"),
    "latches": _corpus("correct/latches.cc"),
    "rust": _rust,
    "glib": _glib,
    "java": _java("Waits"),
    "java-parks": _java("Parks"),
    "python-3.11": _python(11),
    "python-3.13": _python(13),
    "python-processes": _python(11, "processes"),
    "forks": _own("forks.c"),
    "shared": _corpus("correct/process_shared.c"),
    "exec": _corpus("correct/exec_at_work.c"),
    "robust": _corpus("correct/robust_process.c"),
    "short-threads": _tiny("detach_many", "posix", "200"),
    "many-threads": _corpus("correct/many_threads.c"),
    "reused": _own("reused.c"),
    "heap": _corpus("correct/heap_reuse.c"),
    "stacks": _corpus("correct/thread_stack_reuse.c"),
    "mapped": _corpus("correct/mmap_reuse.c"),
    "open": _open,
    "deadlock": _corpus("planted/deadlock/philosophers.c"),
    "deadlock-processes": _corpus("planted/deadlock/processes.c"),
    "lost-wakeup": _corpus("planted/lost-wakeup/second_round.c"),
    "barrier-stuck": _corpus("planted/barrier-stuck/one_too_many.c"),
    "inversion": _corpus("planted/lock-order-inversion/two_gates.c"),
    "wrong-clock": _corpus("planted/wrong-clock/too_late.c"),
    "lost": _own("events.c", options=("--buffer-size", "8K", "--buffer-budget", "1M",
                                      "--when-full", "drop")),
    "ring": _own("events.c", options=("--buffer-size", "8K", "--buffer-budget", "1M",
                                      "--stream-full-policy", "loop")),
    "until-full": _own("events.c", options=("--buffer-size", "8K", "--buffer-budget", "1M",
                                            "--stream-full-policy", "until-full")),
    "files": _own("events.c", options=("-m", "64K", "-f", "2")),
    "full-disk": _full_disk,
    "attached": _attached,
    "killed": _killed,
    "truncated": _cut,
    "part": _part,
}  # fmt: skip
