"""The model agrees with the slow reference on recorded programs, event for event."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis import model
from nptltrace.analysis.model import Window
from nptltrace.api import Traceset
from nptltrace.trace.objects.python_objects import PythonObjects
from nptltrace.trace.reading import prefetch
from tests.analysis.compare import assert_same
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Compiler, Recorder

pytestmark = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")

PROGRAMS = ["barrier", "c11", "cancel", "children", "contention", "futex", "once", "rwlock", "sem",
            "signal_storm", "spin"]  # fmt: skip
# Their processes share locks; the reference cannot follow these: see test_shared_memory.py.
SHARING = {"pthread_barrier_wait", "pthread_cond_wait", "pthread_mutex_lock"}
BATCH = 'for routine do "$PROGRAM" "$routine" >/dev/null 2>&1 </dev/null; done'
QUEUE = """
import concurrent.futures, queue, threading

places, lock = queue.Queue(2), threading.Lock()

def work():
    while places.get() is not None:
        with lock:
            pass

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for n in range(60):
    places.put(n)
for thread in threads:
    places.put(None)
for thread in threads:
    thread.join()
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    assert sum(pool.map(abs, range(40))) == 780
"""
REDIS = """
redis-server --port 0 --unixsocket ./socket --save '' --io-threads 3 --io-threads-do-reads yes &
until redis-cli -s ./socket ping; do :; done
redis-cli -s ./socket set key value
redis-cli -s ./socket shutdown nosave
wait
"""

CLIP = "testsrc2=size=160x120:rate=10:duration=1"
REAL = {
    "pigz": ("pigz -p3 -b128 -kc text >out", "-l3"),
    "pigz shared": ("pigz -p3 -b128 -kc text >out", "-l2 --handler=shared"),
    "xz": ("xz -T3 -1 --block-size=256KiB -kc text >out", "-l3"),
    "zstd": ("zstd -q -T3 -3 -c text >out", "-l1"),
    "ffmpeg": (f"ffmpeg -v error -f lavfi -i {CLIP} -threads 3 -c:v libx264 -f null -", "-l2"),
}


@pytest.mark.parametrize("level", ["1", "2", "3"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, level: str, program: Callable[[str], Path], record: Recorder) -> None:
    assert_same(record(program(name), options=("-l", level), status=None))


@pytest.mark.parametrize("name", ["barrier", "c11", "contention", "futex", "rwlock", "sem"])
def test_one_buffer_for_all(name: str, program: Callable[[str], Path], record: Recorder) -> None:
    options = ("-l", "3", "--handler", "shared")
    assert assert_same(record(program(name), options=options, status=None))


@pytest.mark.parametrize("seed", range(1, 10))
def test_a_bit_of_everything(seed: int, program: Callable[[str], Path], record: Recorder) -> None:
    options = ("-l", str(1 + seed % 3), *(("--handler", "shared") if seed > 6 else ()))
    trace = record(program("mix"), str(seed), "300", options=options)
    assert "contended" in assert_same(trace)


@pytest.mark.parametrize("seed", range(1, 4))
def test_windows(
    seed: int, program: Callable[[str], Path], record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits and holds that begin before a window or end after it are known."""
    monkeypatch.setattr(prefetch, "_BATCH", 64)  # not all later events are read
    trace = record(program("mix"), str(seed), "200", options=("-l", str(seed)))
    end = Traceset(trace).end_ns()
    assert end is not None
    for _, cuts in zip(range(4), random_cuts(seed, end), strict=False):
        for begin_ns, end_ns in pairwise([None, *cuts, None]):
            assert_same(trace, Window(begin_ns, end_ns))


def random_cuts(seed: int, end: int) -> Iterator[list[int]]:
    """Yield places where to cut a trace."""
    choose = random.Random(seed)  # noqa: S311
    while True:
        yield sorted(choose.sample(range(end), 2))


def test_killed_while_hung(program: Callable[[str], Path], record: Recorder) -> None:
    trace = record(program("deadlock"), "end", options=("-l", "2"), status=None)
    assert (
        assert_same(trace)["contended"] == 5
    )  # two threads wait at locks, three at a barrier before


@pytest.mark.parametrize("level", ["1", "3"])
def test_every_routine_with_every_error(
    level: str, compile_c: Compiler, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [str(path) for path in sorted((ROOT / "tests" / "conformance").glob("*.c"))]
    program = compile_c.directory / "conformance"
    subprocess.run(["gcc", "-std=gnu11", "-pthread", *sources, "-o", program], check=True)
    listed = subprocess.run([program], capture_output=True, encoding="utf-8", check=True).stdout
    routines = sorted(set(listed.split()) - SHARING)
    monkeypatch.setenv("PROGRAM", str(program))
    trace = record("sh", "-c", BATCH, "sh", *routines, options=("-l", level))
    assert {"contended", "idle", "join", "timeout", "cancelled"} <= set(assert_same(trace))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a file to compress."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(os.urandom(1 << 19) + b"abc def " * 100_000)
    return tmp_path


@pytest.mark.parametrize("name", REAL)
def test_real_program(name: str, record: Recorder, place: Path) -> None:
    command, options = REAL[name]
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command.split()[0]}: not installed")
    assert assert_same(record("sh", "-c", command, options=tuple(options.split())))


@pytest.mark.parametrize("level", ["2", "3"])
def test_python(level: str, record: Recorder, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The reference knows only events: no lock of an interpreter, and no stacks.
    monkeypatch.setattr(PythonObjects, "gils", lambda _source, _process: ())
    (place / "queues.py").write_text(QUEUE)
    assert assert_same(record(sys.executable, "queues.py", options=("-l", level, "--stacks", "0")))[
        "idle"
    ]


@pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server: not installed")
def test_redis(record: Recorder, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The reference does not know the locks at which Redis parks its threads.
    monkeypatch.setattr(model, "gates_of", lambda _program: [])
    trace = record("sh", "-c", REDIS, options=("-l", "3"))
    assert assert_same(trace)["idle"]
