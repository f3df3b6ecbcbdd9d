"""`pytest --ptt-guard`: fails tests that take too long, with what all threads wait for.

A process beside pytest (`observer.py`) keeps the time and looks at the threads. So a test that
never releases the GIL is reported, too, and no thread of PTT's own is among the threads.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Guarded"]

# By default a process ignores SIGURG. With a handler it interrupts a call that sleeps.
_SIGNAL = signal.SIGURG
# The observer gets this time to end.
_PATIENCE_S = 5.0


class Guarded:
    """A session with a time limit for each test, its set-up and its tear-down.

    Args:
        config: The configuration of pytest.
        limit_s: The limit.
    """

    def __init__(self, config: pytest.Config, limit_s: float) -> None:
        self._config, self._limit_s = config, limit_s
        self._then = config.getoption("--ptt-guard-then") or "fail"
        self._pid = os.getpid()
        self._observer: _Observer | None = None
        # The number of the watched phase of a test; 0 while there is none.
        self._phases = self._phase = 0
        self._hangs = False
        self._status = 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Watch the set-up of a test."""
        return (yield from self._watched(f"the set-up of {item.nodeid}"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch a test."""
        return (yield from self._watched(item.nodeid))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Watch the tear-down of a test."""
        return (yield from self._watched(f"the tear-down of {item.nodeid}"))

    def fail(self, *_: object) -> None:
        """Fail the test; this is the signal handler."""
        if os.getpid() != self._pid:
            return
        report = self._observer.report(self._phase) if self._observer and self._phase else ""
        if report:
            self._hangs = True
            self._end()
            pytest.fail(report, pytrace=False)

    def pytest_enter_pdb(self) -> None:
        """Stop watching while the user debugs the test."""
        self._end()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Remember the exit status of the session."""
        self._status = int(exitstatus)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Exit at once after a test that hangs: Python would wait for the threads of the test."""
        if os.getpid() != self._pid:
            return
        if self._observer is not None:
            self._observer.stop()
        if self._hangs:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._status)

    def _watched(self, what: str) -> Iterator[None]:
        # A child of a test may run tests itself, but the observer looks at this process.
        if os.getpid() != self._pid:
            return (yield)
        if self._observer is None:
            self._observer = _Observer(self._config)
        # Python runs signal handlers in the main thread. A test in another thread cannot fail.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(_SIGNAL, self.fail) if is_main else None
        then = self._then if is_main or self._then == "continue" else "kill"
        self._phases += 1
        self._phase = self._phases
        began_s = time.monotonic() - self._observer.stopped_s()
        self._observer.begin(self._phase, self._limit_s, then, what)
        try:
            result = yield
        finally:
            is_guarded = bool(self._phase) and os.getpid() == self._pid
            self._end()
            if is_main:
                signal.signal(_SIGNAL, before or signal.SIG_DFL)
        took_s = time.monotonic() - self._observer.stopped_s() - began_s
        if is_guarded and then == "fail" and took_s > self._limit_s:
            pytest.fail(
                f"{what} takes longer than {self._limit_s:g} s: it ended after {took_s:.3g} s",
                pytrace=False,
            )
        return result

    def _end(self) -> None:
        # A child of a test must not end the phase of its parent.
        if self._phase and self._observer is not None and os.getpid() == self._pid:
            self._phase = 0
            self._observer.end()


class _Observer:
    """The process that keeps the time and looks at the threads.

    Args:
        config: The configuration of pytest.
    """

    def __init__(self, config: pytest.Config) -> None:
        from nptltrace import _paths
        from nptltrace._binding.libc import let_look

        # A child of a test must not remove the directory at its end, as `TemporaryDirectory` would.
        self._place = Path(tempfile.mkdtemp(prefix="ptt-guard-"))
        observer = Path(__file__).with_name("observer.py")
        looks = _paths.ptt_command("hang", "--stacks")
        # The observer prints to the terminal, not to the output of a test.
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-PS", str(observer), str(self._place), *looks],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        finally:
            if capture is not None:
                capture.resume_global_capture()
        let_look(self._process.pid)

    def begin(self, phase: int, limit_s: float, then: str, what: str) -> None:
        """Begin to keep the time.

        Args:
            phase: The number of the phase.
            limit_s: How long the phase may take.
            then: What is done after the report: `fail`, `continue` or `kill`.
            what: The phase in words.
        """
        self._tell(f"{phase} {limit_s} {then} {what!a}\n")

    def end(self) -> None:
        """Stop keeping the time."""
        self._tell("0\n")

    def report(self, phase: int) -> str:
        """Return the report about a phase, or the empty string if there is none."""
        try:
            return (self._place / str(phase)).read_text(encoding="utf-8")
        except OSError:
            return ""

    def stopped_s(self) -> float:
        """Return for how long the tests have been stopped so far, in s."""
        try:
            return float((self._place / "stopped").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0.0

    def stop(self) -> None:
        """End the observer, also in the middle of a look."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def _tell(self, line: str) -> None:
        stream = self._process.stdin
        try:
            if stream is not None:
                os.write(stream.fileno(), line.encode())
        except BrokenPipeError:
            pytest.exit("--ptt-guard: the process that watches the tests has ended")
