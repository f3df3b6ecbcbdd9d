"""`ptt record --profile`: its sums are the sums of a full recording of the same run."""

from __future__ import annotations

import errno
import gzip
import os
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyarrow import dataset

import nptltrace
from nptltrace._dataclasses import replace
from nptltrace.export.writing.pprof_profile import PprofProfile
from nptltrace.profiling import pprof_file
from nptltrace.profiling.interval import Interval, Row
from nptltrace.profiling.sampling import Sampler
from nptltrace.profiling.sums import Carry, _Waiting
from tests.export.pprof_reader import read_profile
from tests.support import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from tests.support import Compiler, Ptt

# Sums of the events of one run: what each lock cost.
SUMS = """
    SELECT o.name AS lock, class, count(*) AS waits, sum(dur_ns)::BIGINT AS ns
    FROM waits w JOIN objects o USING (process, lock_id) GROUP BY ALL
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    from tests.support import Compiler

    place = tmp_path_factory.mktemp("profiled")
    return Compiler(place, native_stage / "include")(PROGRAMS / "profiled.c")


@pytest.fixture(scope="module")
def profiled(
    tmp_path_factory: pytest.TempPathFactory, program: Path, native_stage: Path
) -> tuple[Path, Path, str]:
    """A profile of several intervals, the trace of the same events, and what ptt said."""
    from tests.support import Ptt

    place = tmp_path_factory.mktemp("profile")
    profile, trace = place / "profile", place / "trace"
    done = Ptt(native_stage)(
        "record", "--profile", "--interval", "1s", "-o", profile, "--keep-events", trace, "--",
        program, "80",
    )  # fmt: skip
    return profile, trace, done.stderr


def rows_of(profile: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dataset.dataset(profile / "profile.parquet").to_table().to_pylist()
    return rows


def sums_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    counts: Counter[tuple[str, str]] = Counter()
    times: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row["lock"], row["class"]] += round(row["count"])
        times[row["lock"], row["class"]] += round(row["total_ns"])
    return {key: (counts[key], times[key]) for key in counts}


def test_sums_are_those_of_the_events(profiled: tuple[Path, Path, str]) -> None:
    profile, trace, said = profiled
    rows = rows_of(profile)
    expected = {
        (row["lock"], row["class"]): (row["waits"], row["ns"])
        for row in nptltrace.open(trace).sql(SUMS).to_pylist()
    }
    sums = sums_of(rows)
    assert sums.keys() == expected.keys()
    for key, (waits, ns) in expected.items():
        assert sums[key][0] == waits
        # Each segment measures the speed of the clock anew.
        assert sums[key][1] == pytest.approx(ns, rel=1e-3, abs=1e5)
    assert expected["table_lock", "contended"][0] > 100
    waits = sum(n for (_, kind), (n, _) in expected.items() if kind == "contended")
    assert f"profiled {waits} contended waits of " in said


def test_rows_name_both_sides_of_a_wait(profiled: tuple[Path, Path, str]) -> None:
    rows = [row for row in rows_of(profiled[0]) if row["lock"] == "table_lock"]
    assert {row["thread"] for row in rows} <= {f"worker-{n}" for n in range(4)}
    assert {row["stack"][0].partition("+")[0] for row in rows} <= {"update_table", "read_table"}
    # The holder is known wherever a wait began: its stack shows where it released the lock.
    held = [row for row in rows if row["holder_stack"]]
    assert sum(row["total_ns"] for row in held) > 0.5 * sum(row["total_ns"] for row in rows)
    assert {row["holder_stack"][0].partition("+")[0] for row in held} <= {
        "update_table", "read_table",
    }  # fmt: skip
    for row in held:
        assert row["owner_thread"].startswith("worker-")
        assert row["owner_thread"] != row["thread"]
    names = ["begin_ns", "tid", "class", "owner_tid", "owner_thread", "stack", "holder_stack"]
    assert len({repr([row[name] for name in names]) for row in rows}) == len(rows)
    for row in rows:
        assert sum(row["histogram"]) == row["count"] == row["samples"]
        assert row["max_ns"] <= row["total_ns"]
        assert row["held_ns"] <= row["total_ns"]
        longest = max(n for n, count in enumerate(row["histogram"]) if count)
        assert 2**longest <= row["max_ns"] < 2 ** (longest + 1)


def test_pprof_has_the_labels_and_the_sums(profiled: tuple[Path, Path, str]) -> None:
    profile, _, _ = profiled
    files = sorted(profile.glob("profile-*.pb.gz"))
    assert len(files) == len(list((profile / "profile.parquet").iterdir()))
    assert len(files) > 1
    delay: Counter[str] = Counter()
    for file in files:
        read = read_profile(gzip.decompress(file.read_bytes()))
        assert read.sample_types == [("contentions", "count"), ("delay", "nanoseconds")]
        for sample in read.samples:
            assert {"thread", "pid", "lock", "lock.waiting_on", "class"} <= sample.labels.keys()
            if sample.labels["class"] == "contended":
                delay[sample.labels["lock"]] += sample.values[1]
                assert sample.labels["lock.waiting_on"] == f"mutex {sample.labels['lock']}"
                assert "work" in sample.functions
    sums = {
        lock: ns
        for (lock, kind), (_, ns) in sums_of(rows_of(profile)).items()
        if kind == "contended"
    }
    assert delay == sums


def test_only_profiles_are_left(profiled: tuple[Path, Path, str]) -> None:
    profile, trace, _ = profiled
    names = [path.name for path in profile.iterdir()]
    assert all(re.fullmatch(r"profile(-.*\.pb\.gz|\.parquet)", name) for name in names), names
    beside = [path.name for path in profile.parent.iterdir()]
    assert sorted(beside) == sorted([profile.name, trace.name])


def test_the_kept_trace_accuses_nobody(profiled: tuple[Path, Path, str], ptt: Ptt) -> None:
    assert "nothing found" in ptt("check", profiled[1]).stdout


def test_a_directory_takes_several_profiles(program: Path, ptt: Ptt, tmp_path: Path) -> None:
    for n in (1, 2):
        ptt("record", "--profile", "--to", tmp_path, "--", program, "1")
        assert len(list(tmp_path.glob("profile-*.pb.gz"))) == n


def test_waits_below_the_least_are_left_out(program: Path, ptt: Ptt, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    ptt(
        "record", "--profile", "--min-wait", "2ms", "-o", tmp_path / "p", "--keep-events", trace,
        "--", program, "20",
    )  # fmt: skip
    waits = nptltrace.open(trace).sql("SELECT dur_ns FROM waits").to_pydict()["dur_ns"]
    counted = sum(round(row["count"]) for row in rows_of(tmp_path / "p"))
    assert counted == sum(ns >= 2_000_000 for ns in waits)
    assert 0 < counted < len(waits)


def test_waits_of_several_intervals_are_counted_at_their_end(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    stuck = compile_c("""
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t stuck = PTHREAD_MUTEX_INITIALIZER, slow = PTHREAD_MUTEX_INITIALIZER;
        static void *wait(void *unused) { pthread_mutex_lock(&stuck); return unused; }
        static void *wait_slow(void *unused)
        {
            pthread_mutex_lock(&slow);
            pthread_mutex_unlock(&slow);
            return unused;
        }
        int main(void)
        {
            pthread_t threads[2];
            pthread_mutex_lock(&stuck);
            pthread_mutex_lock(&slow);
            pthread_create(&threads[0], 0, wait, 0);
            pthread_create(&threads[1], 0, wait_slow, 0);
            sleep(2);
            pthread_mutex_unlock(&slow);
            pthread_join(threads[1], 0);
            sleep(1);
            _exit(0);
        }
    """)
    ptt("record", "--profile", "--interval", "1s", "-o", tmp_path / "p", "--", stuck)
    rows = rows_of(tmp_path / "p")
    (never,) = (row for row in rows if row["lock"] == "stuck")
    assert never["count"] == 1
    assert never["total_ns"] > 2e9
    assert never["stack"][0].startswith("wait+")
    (slow,) = (row for row in rows if row["lock"] == "slow")
    assert slow["count"] == 1
    assert slow["total_ns"] > 1e9
    # The first interval knows the waiter and the owner, the last interval knows the release.
    assert slow["stack"][0].startswith("wait_slow+")
    assert slow["owner_tid"] == slow["pid"]
    assert slow["holder_stack"][0].startswith("main+")


def test_a_thread_has_one_wait() -> None:
    """If the end of a wait is lost, the next wait of the thread takes its place."""
    row = Row(
        pid=1, exe="", tid=7, thread="", lock="a", kind="mutex", address=16, wait_class="contended",
        owner_tid=None, owner_thread="", frames=(), holder_frames=(),
    )  # fmt: skip
    carry = Carry()
    carry.add(_Waiting(0, 1000, row))
    carry.add(_Waiting(0, 5000, replace(row, lock="b")))
    assert carry.begins() == {(0, 7): 5000}
    carry.drop([(1, 7)])  # a thread of another process
    assert [(w.row.lock, end) for w, end in carry.ended({0: 9000}, None)] == [("b", 9000)]
    carry.add(_Waiting(0, 9500, row))
    carry.drop([(0, 7)])
    assert not list(carry.ended({}, 10_000))


def test_a_failed_start_leaves_nothing(program: Path, ptt: Ptt, tmp_path: Path) -> None:
    foreign, left = tmp_path / ".kept.001", tmp_path / ".kept.007"
    foreign.mkdir()
    (foreign / "mine").touch()  # so there is no place for the first events
    left.mkdir()
    (left / "stream-1").touch()  # of a recorder that was killed
    done = ptt(
        "record", "--profile", "--keep-events", tmp_path / "kept", "-o", tmp_path / "p", "--",
        program, "1",
    )  # fmt: skip
    assert "the program runs untraced" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kept.001", "p"]
    assert not list((tmp_path / "p").iterdir())


def test_what_is_not_written_is_not_counted(program: Path, ptt: Ptt, tmp_path: Path) -> None:
    (tmp_path / "profile.parquet").touch()
    done = ptt("record", "--profile", "-o", tmp_path, "--", program, "2")
    assert done.stderr.count("this interval is not written") == 1
    assert "profiled 0 contended waits of 0.000 s in 0 intervals" in done.stderr


def test_a_full_disk_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: PprofProfile, file: BinaryIO, **__: object) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(PprofProfile, "write", write)
    with pytest.raises(OSError, match="No space left"):
        pprof_file.write(Interval(0, 1), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["attach"], ["record", "-p"]], ids=" ".join)
def test_a_running_process_is_profiled(
    program: Path, ptt: Ptt, tmp_path: Path, command: list[str]
) -> None:
    trace, profile = tmp_path / "trace", tmp_path / "profile"
    with subprocess.Popen([program, "10000"]) as process:
        try:
            done = ptt(
                *command, str(process.pid), "--profile", "--interval", "1s", "-d", "1s",
                "-o", profile, "--keep-events", trace,
            )  # fmt: skip
            assert process.poll() is None
        finally:
            process.kill()
    assert "contended waits of " in done.stderr
    rows = rows_of(profile)
    waits = nptltrace.open(trace).sql(
        "SELECT class, count(*) AS n FROM waits GROUP BY ALL ORDER BY ALL"
    )
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["class"]] += row["count"]
    assert counts == {row["class"]: row["n"] for row in waits.to_pylist()}
    assert counts["contended"] > 10
    assert {row["pid"] for row in rows} == {process.pid}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--interval", "2s"], "--interval needs --profile"),
        (["--profile", "--interval", "1ms"], "--interval must be 1s or more"),
        (["--profile", "--compact"], "--compact is about the trace"),
        (["--profile", "--ui"], "--ui is about the trace"),
        (["--profile", "--sched", "perf"], "--sched perf"),
        (["--profile", "-o", "a", "--to", "b"], "name one directory"),
        (["--profile", "--black-box"], "--profile is for recordings"),
    ],
)
def test_contradictions_are_refused(
    ptt: Ptt, tmp_path: Path, options: list[str], said: str
) -> None:
    done = ptt("record", *options, "--", "true", status=2, cwd=tmp_path)
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sample_ns", [200_000, 1_000_000, 5_000_000])
def test_samples_are_unbiased(sample_ns: int) -> None:
    """The mean of 200 choices is the truth, within 4 standard errors: for counts and for times."""
    wait_ns = np.array([20_000] * 500 + [300_000] * 100 + [4_000_000] * 20 + [80_000_000])
    weights = np.array([Sampler(sample_ns, seed).weights(wait_ns) for seed in range(200)])
    assert ((weights == 0) | (weights >= 1)).all()
    for truth, sums in (
        (len(wait_ns), weights.sum(axis=1)), (wait_ns.sum(), (weights * wait_ns).sum(axis=1)),
    ):  # fmt: skip
        assert abs(sums.mean() - truth) <= 4 * sums.std(ddof=1) / len(sums) ** 0.5
    # The longest wait is nearly always chosen.
    assert (weights[:, -1] > 0).all()


def test_samples_of_a_run(program: Path, ptt: Ptt, tmp_path: Path) -> None:
    ptt("record", "--profile", "--sample-wait", "1s", "--to", tmp_path, "--", program, "20")
    rows = [row for row in rows_of(tmp_path) if row["class"] == "contended"]
    waits = ptt("record", "--profile", "--to", tmp_path / "all", "--", program, "20")
    assert "profiled" in waits.stderr
    whole = [row for row in rows_of(tmp_path / "all") if row["class"] == "contended"]
    assert sum(row["samples"] for row in rows) < sum(row["samples"] for row in whole)
    assert all(row["count"] >= row["samples"] for row in rows)
    # A pprof file has whole numbers only, but the right sum of them.
    (file,) = tmp_path.glob("profile-*.pb.gz")
    samples = read_profile(gzip.decompress(file.read_bytes())).samples
    for at, name in enumerate(["count", "total_ns"]):
        whole = sum(row[name] for row in rows_of(tmp_path))
        assert sum(sample.values[at] for sample in samples) == pytest.approx(whole, abs=0.6)
