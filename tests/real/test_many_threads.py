"""More threads than buffers: 64 MiB are enough for all threads, and no event is lost."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real.holding import lock_events, violations
from tests.real.real import babeltrace_count, need
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "count", "pairs"),
    [("after", 10_000, 20), ("once", 2_000, 400), ("once", 6_000, 400)],
)
def test_many_threads_lose_no_event(
    compile_c: Compiler, ptt: Ptt, trace_dir: Path, *, how: str, count: int, pairs: int
) -> None:
    need("babeltrace2")
    program = compile_c(ROOT / "tests" / "real" / "many_threads.c")
    command = [str(program), how, str(count), str(pairs)]
    plain = subprocess.run(
        command, env=clean_environment(), capture_output=True, encoding="utf-8", check=False
    )
    if plain.returncode:
        pytest.skip(f"not even untraced: {plain.stderr}")
    done = ptt("record", "-o", trace_dir, "--buffer-budget", "64M", "--", *command, timeout=250)
    assert done.stdout == plain.stdout
    found = re.search(r"from 1 process, (\d+) threads .*\(0 lost", done.stderr)
    assert found, done.stderr
    assert int(found[1]) == count + 1

    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["lost"] == 0
    # The kernel reuses thread ids. All other threads are in the trace, each with its events.
    threads = stat["processes"][0]["threads"]
    assert len(threads) >= min(count, 8000)
    assert stat["event_types"]["MUTEX_TAKEN"] == stat["event_types"]["MUTEX_FREE"]
    assert stat["event_types"]["MUTEX_TAKEN"] == int(done.stdout)
    assert stat["event_types"]["THREAD_BEGIN"] == count
    assert stat["event_types"]["THREAD_END"] == count
    events = lock_events(trace_dir)
    assert events.names == stat["event_types"]
    assert violations(events) == 0
    if len(list(trace_dir.glob("stream-*"))) < 500:  # babeltrace2 takes minutes to merge more
        assert babeltrace_count(trace_dir) == stat["events"]
