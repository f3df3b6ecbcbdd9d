"""`pytest --ptt`: records the session, fails tests that hang, and sums up contention by test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.here import RecordingHere

__all__ = ["begin"]

# User events mark the begin and the end of each test in the trace.
_DOMAIN, _BEGIN, _END = 127, 1, 2
# By default a process ignores SIGURG. With a handler it interrupts a call that sleeps.
_SIGNAL = signal.SIGURG
# The limit without an option.
_LIMIT_S = 60.0
# After the signal, a test has this long to fail. Code in C does not react to the signal.
_GRACE_S = 5.0
# The recorder writes events within this time.
_WRITTEN_S = 2.0
_LOOK_S = 60.0
# The findings that say why a test does not end.
_BLOCKED = "deadlock,self-deadlock,stuck,barrier-stuck"
_SHOWN = 10

_BY_TEST = f"""
    with tests as (
        select data as test, min(ts_ns) filter (user_event = {_BEGIN}) as t_begin,
            coalesce(max(ts_ns) filter (user_event = {_END}), 9e18) as t_end
        from events where event = 'USER' and user_domain = {_DOMAIN} group by data
    )
    select test, count(*) as waits, sum(dur_ns)::bigint as wait_ns,
        arg_max(coalesce(function, ''), dur_ns) as function, arg_max(line, dur_ns) as line
    from tests join named_waits on t_ns >= t_begin and t_ns < t_end
    where class = 'contended' and coalesce(file, '') not like '%/pytest_plugin/%'
    group by test order by wait_ns desc, test limit {_SHOWN}
"""  # noqa: S608 -- numbers of this module


def begin(config: pytest.Config, directory: str) -> None:
    """Begin to record.

    Args:
        config: The configuration of pytest.
        directory: The directory of the trace, which is replaced.

    Raises:
        pytest.UsageError: This process cannot be recorded.
    """
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "--ptt records one process, so it cannot be combined with -n of pytest-xdist"
        )
    from nptltrace.errors import PttError
    from nptltrace.here import record_here

    try:
        recording = record_here(directory, force=True)
    except PttError as error:
        raise pytest.UsageError(f"--ptt: {error}") from None
    config.pluginmanager.register(_Session(config, recording), "ptt-session")


class _Session:
    """A recorded session.

    Args:
        config: The configuration of pytest.
        recording: The running recording.
    """

    def __init__(self, config: pytest.Config, recording: RecordingHere) -> None:
        self._config = config
        self._recording = recording
        limit_s = config.getoption("--ptt-limit")
        self._limit_s = _LIMIT_S if limit_s is None else limit_s
        self._hangs = False
        self._status = 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Mark the begin and the end of the test in the trace."""
        from nptltrace.user import user_event

        user_event(item.nodeid, domain=_DOMAIN, event=_BEGIN)
        try:
            return (yield)
        finally:
            user_event(item.nodeid, domain=_DOMAIN, event=_END)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Fail the test if it takes too long."""
        if (
            not self._limit_s
            or self._config.getoption("usepdb")
            or threading.current_thread() is not threading.main_thread()
        ):
            return (yield)
        watch = _Watch(self._config, item.nodeid, self._limit_s, self._recording)
        before = signal.signal(_SIGNAL, watch.fail)
        watch.start()
        try:
            result = yield
        finally:
            self._hangs = watch.stop() or self._hangs
            signal.signal(_SIGNAL, before)
        watch.fail_if_late()
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Remember the exit status of the session."""
        self._status = int(exitstatus)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """End the recording, and print contention by test."""
        from nptltrace._units import duration, plural
        from nptltrace.errors import PttError

        try:
            self._recording.stop()
            with self._recording.open() as traces:
                rows = traces.sql(_BY_TEST).to_pylist()
        except PttError as error:
            terminalreporter.section("contention by test")
            terminalreporter.line(f"not known: {error}")
            return
        terminalreporter.section("contention by test")
        for row in rows:
            where = f"{row['function']}:{row['line']}" if row["line"] else row["function"]
            terminalreporter.line(
                f"{duration(row['wait_ns']):>11} in {row['waits']} {plural(row['waits'], 'wait')}"
                f"  {row['test']}  longest at {where}"
            )
        if not rows:
            terminalreporter.line("no thread waited for a lock that another thread held")
        terminalreporter.line(f"recorded in {self._recording.trace}")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Exit at once after a test that hangs: Python would wait for the threads of the test."""
        self._recording.stop()
        if self._hangs:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._status)


class _Watch(threading.Thread):
    """Explains a test that takes too long, and makes it fail.

    Args:
        config: The configuration of pytest.
        test: Node id of the test.
        limit_s: How long the test may take.
        recording: The recording of the session.
    """

    def __init__(
        self, config: pytest.Config, test: str, limit_s: float, recording: RecordingHere
    ) -> None:
        super().__init__(name="ptt-watch", daemon=True)
        self._config, self._test, self._limit_s = config, test, limit_s
        self._recording = recording
        self._over = threading.Event()
        self._began_s = time.monotonic()
        self._took_s = 0.0
        self._explanation = ""

    def run(self) -> None:
        """Wait until the test ends; look at its threads when it takes too long."""
        # After `_WRITTEN_S`, the trace holds all events from before the limit.
        if self._over.wait(self._limit_s) or self._over.wait(_WRITTEN_S):
            return
        text = f"{self._test} takes longer than {self._limit_s:g} s\n\n{self._look()}"
        if self._over.is_set():
            return
        self._explanation = text
        signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)
        if self._over.wait(_GRACE_S):
            return
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        print(f"\n{text}\nit cannot be interrupted: the session ends here", file=sys.stderr)
        sys.stderr.flush()
        os._exit(pytest.ExitCode.INTERRUPTED)

    def stop(self) -> bool:
        """Stop watching after the end of the test; return whether the test was interrupted."""
        self._took_s = time.monotonic() - self._began_s
        self._over.set()
        self.join()
        return bool(self._explanation)

    def fail_if_late(self) -> None:
        """Fail a test that took too long but ended before the signal."""
        if self._took_s > self._limit_s:
            pytest.fail(
                f"{self._test} takes longer than {self._limit_s:g} s: "
                f"it ended after {self._took_s:.3g} s",
                pytrace=False,
            )

    def fail(self, *_: object) -> None:
        """Fail the test; this is the signal handler."""
        if self._explanation and not self._over.is_set():
            self._over.set()
            pytest.fail(self._explanation, pytrace=False)

    def _look(self) -> str:
        """Return the findings in the trace so far, and what each thread waits for now."""
        trace = str(self._recording.trace)
        texts = [_ptt("check", "--kind", _BLOCKED, trace), _ptt("hang", str(os.getpid()))]
        return "\n".join(text for text in texts if text)


def _ptt(*arguments: str) -> str:
    """Return what a command prints."""
    from nptltrace import _paths

    try:
        done = subprocess.run(
            _paths.ptt_command(*arguments), capture_output=True, stdin=subprocess.DEVNULL,
            encoding="utf-8", errors="replace", timeout=_LOOK_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"ptt {arguments[0]} takes longer than {_LOOK_S:g} s\n"
    return done.stdout or done.stderr
