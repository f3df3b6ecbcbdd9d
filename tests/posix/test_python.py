"""nptltrace.posix: the functions of C in Python's form."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from nptltrace.errors import PttError
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from nptltrace.posix import Stream
    from tests.support import Ptt


@pytest.fixture
def posix(native_stage: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
    from nptltrace import posix

    return posix


def test_one_process_can_be_traced_controller_and_analyzer(posix: ModuleType) -> None:
    order = posix.event_type("order")
    assert posix.event_type("order") == order
    with posix.create() as stream:
        posix.event(order, b"too early")
        stream.start()
        assert stream.status().running
        posix.event(order, b"17")
        posix.event(order)
        stream.stop()
        assert not stream.status().running
        events = list(stream.pending())
    assert [event.name for event in events] == [
        "posix_trace_start", "order", "order", "posix_trace_stop",
    ]  # fmt: skip
    assert [event.data for event in events if event.is_user] == [b"17", b""]
    assert events[1].type == order
    assert events[1].pid == os.getpid()
    assert events[1].thread_id == threading.get_ident()
    assert events[1].truncation == posix.Truncation.NOT_TRUNCATED
    assert events[1].time_ns <= events[2].time_ns
    assert not events[0].is_user


def test_logs_open_by_path_and_by_descriptor(posix: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    order = posix.event_type("order")
    attributes = posix.Attributes(
        name="orders", max_data_size=32, log_full_policy=posix.LogFullPolicy.APPEND
    )
    with posix.create(0, attributes, log=path) as stream:
        stream.start()
        for number in range(10):
            posix.event(order, number.to_bytes(4, "little"))
        posix.event(order, bytes(40))
    with posix.open_log(path) as log:
        kept = log.attributes()
        assert (kept.name, kept.max_data_size) == ("orders", 32)
        assert kept.stream_full_policy == posix.StreamFullPolicy.FLUSH
        assert kept.log_full_policy == posix.LogFullPolicy.APPEND
        assert kept.generation_version
        assert kept.create_time_ns > 10**18
        assert kept.clock_resolution_ns > 0
        assert "order" in {each.name for each in log.types()}
        users = [event for event in log if event.is_user]
        assert [int.from_bytes(event.data, "little") for event in users[:10]] == list(range(10))
        assert users[10].truncation == posix.Truncation.TRUNCATED_RECORD
        assert log.read() is None
        log.rewind()
        assert [event for event in log if event.is_user] == users
        assert not log.status().overrun
    with path.open("rb") as file, posix.open_log(file.fileno()) as log:
        assert sum(event.is_user for event in log) == 11


def test_a_filter_drops_its_events(posix: ModuleType) -> None:
    tick, tock = posix.event_type("tick"), posix.event_type("tock")
    with posix.create() as stream:
        stream.start()
        stream.set_filter([tick])
        assert stream.event_type("tick") == tick
        assert tick in stream.filter()
        assert tock not in stream.filter()
        posix.event(tick)
        posix.event(tock)
        stream.set_filter(posix.EventSet([tick]), posix.FilterChange.SUB_EVENTSET)
        assert stream.filter() == posix.EventSet()
        posix.event(tick)
        assert [event.name for event in stream.pending() if event.is_user] == ["tock", "tick"]


def test_event_sets_work_like_sets(posix: ModuleType) -> None:
    tick = posix.event_type("tick")
    everything = posix.EventSet.all()
    assert tick in everything
    everything.discard(tick)
    assert tick not in everything
    assert everything != posix.EventSet.all()
    assert tick not in posix.EventSet.system()
    assert tick not in posix.EventSet.process_independent()
    with pytest.raises(TypeError):
        hash(everything)


def test_errors_say_what_failed(posix: ModuleType, tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(posix.PosixTraceError) as gone:
        posix.create(child.pid)
    assert gone.value.errno == errno.ESRCH
    assert str(gone.value) == "create: No such process (ESRCH)"
    assert isinstance(gone.value, OSError)
    assert isinstance(gone.value, PttError)
    flush = posix.Attributes(stream_full_policy=posix.StreamFullPolicy.FLUSH)
    with pytest.raises(posix.PosixTraceError) as wrong:
        posix.create(attributes=flush)
    assert wrong.value.errno == errno.EINVAL
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(posix.PosixTraceError) as broken:
        posix.open_log(empty)
    assert broken.value.errno == errno.EINVAL
    with pytest.raises(FileNotFoundError):
        posix.open_log(tmp_path / "nothing")
    with pytest.raises(posix.PosixTraceError) as long:
        posix.event_type("n" * 1000)
    assert long.value.errno == errno.ENAMETOOLONG


def test_shutdown_is_final(posix: ModuleType) -> None:
    stream = posix.create()
    stream.shutdown()
    stream.shutdown()
    with pytest.raises(posix.PosixTraceError):
        stream.start()


def test_other_threads_run_during_a_read(posix: ModuleType) -> None:
    order = posix.event_type("order")
    with posix.create() as stream:
        stream.start()
        seen: list[bytes] = []

        def read() -> None:
            seen.extend(event.data for event in stream if event.is_user)

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(100):
            posix.event(order, b"%d" % number)
        while len(seen) < 100:
            assert stream.status().running
        stream.shutdown()
        reader.join(60)
        assert not reader.is_alive()
    assert seen == [b"%d" % number for number in range(100)]


def test_a_wait_ends_at_its_limit(posix: ModuleType) -> None:
    with posix.create() as stream:
        assert stream.read(0) is None
        assert stream.read(0.01) is None
        stream.start()
        assert stream.read(60).name == "posix_trace_start"


class Alarm(Exception):  # noqa: N818 -- a signal, not an error
    pass


def test_signal_handlers_run_while_a_read_waits(posix: ModuleType) -> None:
    calls = []

    def ring(number: int, frame: object) -> None:
        calls.append(number)
        if len(calls) == 3:
            raise Alarm

    def wait(stream: Stream) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        stream.read()

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with posix.create() as stream, pytest.raises(Alarm):
            wait(stream)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(calls) >= 3


def test_children_do_not_end_the_stream(ptt: Ptt) -> None:
    code = """
import os
from nptltrace import posix
order = posix.event_type("order")
with posix.create() as stream:
    stream.start()
    if os.fork() == 0:
        try:
            stream.status()
        except posix.PosixTraceError:
            stream.shutdown()  # does nothing
            os._exit(0)
        os._exit(1)
    assert os.wait()[1] == 0
    posix.event(order, b"still there")
    assert [event.data for event in stream.pending() if event.is_user] == [b"still there"]
"""
    subprocess.run([sys.executable, "-c", code], env=ptt.environment(), check=True, timeout=60)


def test_the_import_loads_no_heavy_modules(ptt: Ptt) -> None:
    code = """
import sys
import nptltrace.posix
assert not {"numpy", "pyarrow", "rich", "argparse"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], env=ptt.environment(), check=True, cwd=ROOT)
