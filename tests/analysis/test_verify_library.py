"""`ptt verify` never accuses the system's thread library, and always accuses a broken library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT, Compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder

HERE = ROOT / "tests" / "analysis"

# Rules that a library can break visibly for a tracer in front of it, with the least level.
BREAKABLE = {
    "mutex-exclusion": 2, "mutex-owner": 3, "mutex-robust": 2, "rwlock-exclusion": 2,
    "spin-exclusion": 2, "cond-mutex": 2, "cond-wakeup": 2, "barrier-early": 2,
    "barrier-serial": 2, "sem-value": 2, "once-twice": 2, "join-end": 2, "try-busy": 3,
    "timeout-early": 3, "result": 2,
}  # fmt: skip

PYTHON = """
import concurrent.futures, queue, threading
items = queue.Queue(10)
def put():
    for i in range(300): items.put(i)
    items.put(None)
def get():
    while items.get() is not None: pass
threads = [threading.Thread(target=f) for f in (put, get, put, get)]
for thread in threads: thread.start()
for thread in threads: thread.join()
barrier = threading.Barrier(3)
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    list(pool.map(lambda n: barrier.wait(60), range(3)))
"""


def verdict_of(ptt: Ptt, trace: Path, *options: str, status: int | None = 0) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads(
        ptt("verify", "--format", "json", *options, trace, status=status, timeout=300).stdout
    )
    return verdict


# ---- a library that breaks its promises ----


@pytest.fixture(scope="module", params=["2", "3"])
def found(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    native_stage: Path,
    ptt: Ptt,
) -> dict[str, Any]:
    """The verdict on a run into each broken promise, at a level."""
    directory = tmp_path_factory.mktemp("broken")
    compile_c = Compiler(directory, native_stage / "include")
    library = compile_c(HERE / "broken_library.c", "-shared", "-fPIC", "-ldl", name="libbroken.so")
    program = compile_c(HERE / "broken_program.c", "-rdynamic")
    preload = f"LD_PRELOAD={native_stage / 'lib' / 'libnptltrace.so'}:{library}"
    # One recording costs less than many; each run writes its process id to a file.
    run = f"sh -c 'echo $$ >{directory}/'$rule'; exec env BREAK='$rule' {preload} {program} '$rule"
    loop = f"for rule in {' '.join(BREAKABLE)}; do {run} || exit; done"
    trace = directory / "run.ptt"
    ptt("record", "-l", request.param, "-o", trace, "--", "sh", "-c", loop)
    out = verdict_of(ptt, trace, "--patience", "100ms", status=1)
    pids = {rule: int((directory / rule).read_text()) for rule in BREAKABLE}
    return {"level": int(request.param), "pids": pids, **out}


@pytest.mark.parametrize("rule", BREAKABLE)
def test_a_broken_library_is_caught(rule: str, found: dict[str, Any]) -> None:
    if found["level"] < BREAKABLE[rule]:
        pytest.skip("needs calls and returns")
    assert found["gaps"] == []
    broken = {v["rule"]: v for v in found["violations"] if v["pid"] == found["pids"][rule]}
    # If a once routine runs twice, it is not over when its second run ends.
    assert set(broken) - {"once-early"} == {rule}
    assert broken[rule]["severity"] == "error"
    sites = broken[rule]["sites"]
    assert rule == "mutex-robust" or any("broken_program.c" in site for site in sites)


# ---- the library of the system ----


@pytest.mark.parametrize("level", ["2", "3"])
def test_programs(level: str, program: Callable[[str], Path], record: Recorder, ptt: Ptt) -> None:
    names = ["barrier", "c11", "cancel", "contention", "mix", "once", "rwlock", "sem", "spin"]
    loop = "; ".join(f"'{program(name)}'" for name in names)
    out = verdict_of(ptt, record("sh", "-c", loop, options=("-l", level), status=None))
    assert out["violations"] == []
    assert out["gaps"] == []
    assert out["checked"]["cond-mutex"] > 0
    assert out["checked"]["sem-value"] > 0


def test_a_deadlock_is_not_the_library(
    program: Callable[[str], Path], record: Recorder, ptt: Ptt
) -> None:
    trace = record(program("deadlock"), "end", status=None)
    out = verdict_of(ptt, trace, "--patience", "100ms")
    assert out["violations"] == []


@pytest.mark.parametrize("level", ["2", "3"])
def test_everything_at_once(
    level: str, compile_c: Compiler, record: Recorder, ptt: Ptt, native_stage: Path
) -> None:
    program = compile_c(ROOT / "tests" / "stress" / "mix.c", "-ldl")
    other = native_stage / "lib" / "libpttread.so"
    trace = record(program, "2", "32", str(os.getpid()), other, options=("-l", level))
    out = verdict_of(ptt, trace)
    assert out["violations"] == []
    assert out["gaps"] == []
    assert out["checked"]["mutex-exclusion"] > 1000
    assert out["checked"]["barrier-early"] > 100


def test_every_routine_with_every_error(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    program = tmp_path / "conformance"
    sources = sorted((ROOT / "tests" / "conformance").glob("*.c"))
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-pthread"]
    subprocess.run([*command, *sources, "-o", program], check=True)
    loop = f"cd '{tmp_path}' && for routine in $('{program}'); do '{program}' $routine; done"
    out = verdict_of(ptt, record("sh", "-c", loop, options=("-l", "3"), status=None))
    assert out["violations"] == []
    assert out["gaps"] == []
    assert out["checked"]["result"] > 1000


def test_python(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    script = tmp_path / "threads.py"
    script.write_text(PYTHON)
    out = verdict_of(ptt, record(sys.executable, script, options=("-l", "3")))
    assert out["violations"] == []
    assert sum(out["checked"].values()) > 1000


def test_pigz(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    if not shutil.which("pigz"):
        pytest.skip("there is no pigz")
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20) * 4)
    out = verdict_of(ptt, record("pigz", "-k", "-p", "4", data, options=("-l", "3")))
    assert out["violations"] == []
    assert out["checked"]["mutex-exclusion"] > 100


def test_x264(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    if not shutil.which("x264"):
        pytest.skip("there is no x264")
    data = tmp_path / "data.yuv"
    data.write_bytes(os.urandom(160 * 120 * 3 // 2) * 30)
    trace = record(
        "x264", "--quiet", "--preset", "ultrafast", "--threads", "4", "--input-res", "160x120",
        "--demuxer", "raw", "-o", os.devnull, data, options=("-l", "3"),
    )  # fmt: skip
    out = verdict_of(ptt, trace)
    assert out["violations"] == []
    assert out["checked"]["cond-mutex"] > 0


def test_a_changed_level_is_noticed(
    compile_c: Compiler, tmp_path: Path, ptt: Ptt, native_stage: Path
) -> None:
    """`ptt level` changes the level meanwhile: missing events are not a fault of the library."""
    program = compile_c(
        """
        #include <semaphore.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void)
        {
            char c;
            sem_t s;
            sem_init(&s, 0, 0);
            printf("%d\\n", getpid()), fflush(stdout);
            if (read(0, &c, 1) < 0) return 1;
            sem_post(&s);
            printf("posted\\n"), fflush(stdout);
            if (read(0, &c, 1) < 0) return 1;
            return sem_wait(&s);
        }
        """
    )
    trace = tmp_path / "run.ptt"
    running = subprocess.Popen(
        ptt.command("record", "-q", "-o", trace, "--", program),
        env=ptt.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert running.stdin is not None
    assert running.stdout is not None
    with running:
        pid = running.stdout.readline().strip()
        ptt("level", pid, "0")
        running.stdin.write("x")
        running.stdin.flush()
        assert running.stdout.readline() == "posted\n"
        ptt("level", pid, "2")
        running.stdin.write("x")
        running.stdin.close()
        assert running.wait(60) == 0
    out = verdict_of(ptt, trace)
    assert out["violations"] == []
    assert ["levels were changed" in gap for gap in out["gaps"]] == [True]
