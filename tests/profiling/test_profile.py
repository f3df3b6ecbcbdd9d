"""`ptt record --profile`: its sums are the sums of a full recording of the same run."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyarrow import dataset

import nptltrace
from nptltrace.profiling.sampling import Sampler
from tests.export.pprof_reader import read_profile
from tests.support import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

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
        program, "60",
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


def test_a_wait_that_never_ends_is_counted_at_the_end(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    stuck = compile_c("""
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t stuck = PTHREAD_MUTEX_INITIALIZER;
        static void *wait(void *unused) { pthread_mutex_lock(&stuck); return unused; }
        int main(void)
        {
            pthread_t thread;
            pthread_mutex_lock(&stuck);
            pthread_create(&thread, 0, wait, 0);
            sleep(3);
            _exit(0);
        }
    """)
    ptt("record", "--profile", "--interval", "1s", "-o", tmp_path / "p", "--", stuck)
    rows = [row for row in rows_of(tmp_path / "p") if row["lock"] == "stuck"]
    assert [row["count"] for row in rows] == [1]
    assert rows[0]["total_ns"] > 2e9
    assert rows[0]["stack"][0].startswith("wait+")


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
