"""Several writers of a store at once; killed writers; writers on a full disk."""

from __future__ import annotations

import fcntl
import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import nptltrace
import nptltrace.fleet
from nptltrace.fleet import store as module
from nptltrace.fleet.adding import add_run
from nptltrace.fleet.store import Addition, Store
from nptltrace.fleet.tables import ADDITION

if TYPE_CHECKING:
    from tests.fleet.conftest import Traces
    from tests.support import Ptt

pytestmark = pytest.mark.usefixtures("native_in_process")


def adding(ptt: Ptt, store: str, *traces: object) -> subprocess.Popen[str]:
    """Begin to add runs."""
    return subprocess.Popen(
        ptt.command("fleet", "add", store, *map(str, traces)),
        env=ptt.environment(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def check_whole(store: str, traces: Traces) -> int:
    """Check that each listed run is complete; return the number of runs."""
    with nptltrace.fleet.open(store) as fleet:
        listed = fleet.runs["run_id"].to_pylist()
        assert len(set(listed)) == len(listed)
        counts = "select run_id, count(*) as n from holds group by run_id"
        holds = {row["run_id"]: row["n"] for row in fleet.sql(counts).to_pylist()}
        assert set(holds) == set(listed)
    for path in traces.all:
        with nptltrace.open(path) as traceset:
            run = traceset.table("runs")["run_id"][0].as_py()
            if run in holds:
                assert holds[run] == traceset.table("holds").num_rows
    return len(listed)


def test_writers_at_once_lose_nothing(ptt: Ptt, traces: Traces, store: str) -> None:
    # Each writer begins without a store, and all try to add the first run.
    writers = [adding(ptt, store, traces.all[0], trace) for trace in traces.all[1:]]
    message = [writer.communicate(timeout=300)[1] for writer in writers]
    assert all(writer.returncode == 0 for writer in writers), message
    assert check_whole(store, traces) == len(traces.all)


def test_writers_take_turns(traces: Traces, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write, going, most = Store._write, 0, 0

    def slow(*args: Any) -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        time.sleep(0.02)
        write(*args)
        going -= 1

    monkeypatch.setattr(Store, "_write", staticmethod(slow))
    rows = pa.table({"run_id": ["a"], ADDITION: ["b"]})
    stored = Store(store, create=True)
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(stored.append, "threads", rows) for _ in range(8)]
    assert [future.exception() for future in done] == [None] * 8
    assert most == 1
    assert stored.table("threads").to_pyarrow_table().num_rows == 8
    # A writer that stops during its turn delays the other writers, but not for ever.
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    with Path(store, ".turns", "threads").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert add_run(stored, traces.all[0], {})


def test_a_killed_writer_leaves_no_half_run(ptt: Ptt, traces: Traces, store: str) -> None:
    began = time.monotonic()
    ptt("fleet", "add", store, traces.all[0])
    took = time.monotonic() - began
    for part, trace in zip((0.4, 0.55, 0.7, 0.8, 0.9), traces.all[1:6], strict=True):
        writer = adding(ptt, store, trace)
        time.sleep(took * part)
        writer.kill()
        writer.communicate()
        check_whole(store, traces)
    ptt("fleet", "add", store, *traces.all)
    assert check_whole(store, traces) == len(traces.all)


def test_a_full_disk_leaves_no_half_run(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.all[0])
    failed = 0
    # The limit of the file size leaves room for the rows of some tables only.
    for most in (0, 1_000, 6_000, 9_000, 12_000, 1 << 30):
        done = subprocess.run(
            ptt.command("fleet", "add", store, traces.all[1]),
            env=ptt.environment(), capture_output=True, encoding="utf-8", check=False,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most)),
        )  # fmt: skip
        if done.returncode:
            failed += 1
            assert done.returncode == 2, done.stderr
            # The library that writes the files may print a message of its own before.
            last = done.stderr.splitlines()[-1]
            assert last.startswith(f"ptt: error: {store}: Generic")
            assert "File too large" in last
        assert check_whole(store, traces) == (1 if done.returncode else 2)
    assert 0 < failed < 6


def test_a_run_is_removed_while_it_is_added_anew(
    ptt: Ptt, traces: Traces, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptt("fleet", "add", store, *traces.all[:2])
    (run, *_) = nptltrace.fleet.open(store).runs["run_id"].to_pylist()
    ptt("fleet", "remove", store, run)
    listing = Addition.list_run

    def late(addition: Addition, row: pa.Table) -> bool:
        """Let another writer add the run and remove it before this writer lists it."""
        monkeypatch.setattr(Addition, "list_run", listing)
        ptt("fleet", "add", store, *traces.all[:2])
        ptt("fleet", "remove", store, run)
        return listing(addition, row)

    monkeypatch.setattr(Addition, "list_run", late)
    assert sum(add_run(Store(store), trace, {}) for trace in traces.all[:2]) == 1
    assert check_whole(store, traces) == 2
