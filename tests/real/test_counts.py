"""Ten million lock operations: counted exactly, none lost, and no lock held by two threads."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.real.holding import LockEvents, lock_events, violations
from tests.real.real import babeltrace_count, need
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

OPERATIONS = int(os.environ.get("PTT_TEST_OPERATIONS", "10_000_000"))


def test_the_check_finds_a_lock_held_by_two_threads() -> None:
    def found(*events: tuple[int, int, int]) -> int:
        kind, thread, lock = (np.array(column) for column in zip(*events, strict=True))
        return violations(LockEvents(kind, thread, lock, {}))

    taken, read, free = 2, 1, 0
    assert found((taken, 1, 8), (taken, 2, 16), (free, 1, 8), (taken, 2, 8)) == 0
    assert found((taken, 1, 8), (taken, 2, 8), (free, 1, 8), (free, 2, 8)) == 1
    assert found((read, 1, 8), (read, 2, 8), (free, 1, 8), (free, 2, 8), (taken, 1, 8)) == 0
    assert found((read, 1, 8), (taken, 2, 8)) == 1
    assert found((taken, 1, 8), (read, 2, 8)) == 1
    assert found((free, 1, 8), (taken, 1, 8)) == 1
    assert found((taken, 1, 8), (free, 2, 8)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 8, 64])
def test_ten_million_lock_operations_are_counted_exactly(
    compile_c: Compiler, ptt: Ptt, trace_dir: Path, threads: int
) -> None:
    need("babeltrace2")
    program = compile_c(ROOT / "tests" / "real" / "many_locks.c")
    done = ptt("record", "-o", trace_dir, "--", program, str(threads), str(OPERATIONS), timeout=200)
    assert "(0 lost," in done.stderr
    expected = {name: int(n) for name, n in (line.split() for line in done.stdout.splitlines())}
    assert sum(expected.values()) * 2 > OPERATIONS * 0.99

    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["lost"] == 0
    expected["MUTEX_FREE"] = expected["MUTEX_TAKEN"]
    expected["SPIN_FREE"] = expected["SPIN_TAKEN"]
    expected["RWLOCK_FREE"] = expected["RWLOCK_TAKEN_READ"] + expected["RWLOCK_TAKEN_WRITE"]
    assert {name: stat["event_types"][name] for name in expected} == expected

    events = lock_events(trace_dir)
    assert events.names == stat["event_types"]
    assert violations(events) == 0
    assert babeltrace_count(trace_dir) == stat["events"]
