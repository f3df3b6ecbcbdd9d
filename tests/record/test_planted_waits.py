"""How long other threads held the lock during waits, compared with the program's own measure."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Ptt

US = 1000


@pytest.fixture(params=[0, 2, 8], ids="beside {}".format)
def _busy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep this many processors busy meanwhile."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(request.param)]
    yield
    for other in others:
        other.kill()
        other.wait()


def near(found: int, planted: int) -> bool:
    """Return whether a time equals the program's own measure within 5 % or 50 us."""
    return abs(found - planted) <= max(planted // 20, 50 * US)


@pytest.mark.usefixtures("native_in_process", "_busy")
def test_waits_are_as_long_as_they_were_planted(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    done = ptt("record", "-o", trace_dir, "--", program("planted"))
    planted = [line.split() for line in done.stdout.splitlines()]
    table = nptltrace.open(trace_dir).table("waits").to_pylist()
    waits = [row for row in table if row["class"] == "contended"]
    waits.sort(key=lambda row: int(row["t_ns"]))
    assert len(waits) == len(planted) == 36
    # A thread may lose the processor between its own clock and the lock, before or after the lock.
    right: dict[str, int] = {}
    for row, (name, held, wake) in zip(waits, planted, strict=True):
        right[name] = right.get(name, 0) + near(row["held_ns"], int(held))
        assert row["wake_ns"] <= int(wake) + 50 * US, (name, row, held, wake)
        assert row["dur_ns"] <= int(held) + int(wake) + 50 * US, (name, row, held, wake)
    assert min(right.values()) >= 4, (right, waits, planted)


@pytest.mark.usefixtures("native_in_process")
def test_a_unit_counts_as_held_only_if_its_taker_returns_it(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    """A lock has a holder; handed-over work and units of a pool have a waker."""
    ptt("record", "-o", trace_dir, "--", program("units"))
    table = nptltrace.open(trace_dir).sql(
        "select object_name, class, held_ns, owner_tid, waker_tid, pid from named_waits "
        "where kind = 'semaphore' and object_name != 'taken'"
    )
    waits = {row["object_name"]: row for row in table.to_pylist()}
    main = waits["lock"]["pid"]
    assert {name: row["class"] for name, row in waits.items()} == {
        "lock": "contended", "work": "idle", "pool": "contended",
    }  # fmt: skip
    assert {row["waker_tid"] for row in waits.values()} == {main}
    assert {name: row["owner_tid"] for name, row in waits.items()} == {
        "lock": main, "work": None, "pool": None,
    }  # fmt: skip
    assert waits["lock"]["held_ns"] >= 15_000 * US
    assert waits["pool"]["held_ns"] >= 15_000 * US
    assert waits["work"]["held_ns"] is None
    blames = nptltrace.open(trace_dir).table("blames").to_pylist()
    assert sorted((blame["tid"], blame["wait_caused_ns"]) for blame in blames) == sorted(
        (main, waits[name]["held_ns"]) for name in ("lock", "pool")
    )
