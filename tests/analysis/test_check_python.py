"""`ptt check` on Python programs that hang, and on idle Python programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Ptt

HERE = Path(__file__).resolve().parents[1] / "programs" / "python_hangs.py"
OTHERS = [
    path
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    if path.parts[-3].startswith(("3.8.", "3.13."))
]

# Kind of the finding, and threads by their names.
EXPECTED = {
    "starved_pool": ("stuck", ["ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"]),
    "nested_monitor": ("stuck", ["producer", "consumer"]),
    "lost_notify": ("stuck", ["late"]),
    "full_queue": ("stuck", ["producer"]),
    "module_that_waits": ("stuck", ["imports"]),
    "crosswise_events": ("stuck", ["left", "right"]),
    "lock_taken_twice": ("self-deadlock", ["doubler"]),
    "lock_taken_twice_beside_others": ("self-deadlock", ["doubler"]),
    "two_orders": ("deadlock", ["left", "right"]),
    "absent_at_barrier": ("stuck", ["first", "second"]),
}


@pytest.mark.parametrize(
    "python",
    [
        Path(sys.executable),
        *(pytest.param(path, marks=pytest.mark.slow) for path in OTHERS),
    ],
    ids=lambda p: p.parts[-3],
)
def test_hangs_are_told_from_idleness(python: Path, ptt: Ptt, tmp_path: Path) -> None:
    trace = tmp_path / "run.ptt"
    command = ptt.command("record", "-q", "-o", trace, "--", str(python), str(HERE))
    done = subprocess.run(
        command, env=ptt.environment(), capture_output=True, encoding="utf-8", check=True
    )
    pids = dict(line.split() for line in done.stdout.splitlines())
    assert len(pids) == 17, done.stdout
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in pids}
    name_of = {int(pid): name for name, pid in pids.items()}
    text = ptt("check", "--format", "json", trace, status=1).stdout
    for item in json.loads(text)["findings"]:
        if item["severity"] == "error":
            found[name_of[item["pid"]]].append((item["kind"], item["message"]))
    for name, findings in found.items():
        kind, threads = EXPECTED.get(name, ("", []))
        assert [found_kind for found_kind, _ in findings] == [kind] * bool(kind), (name, findings)
        assert all(thread in findings[0][1] for thread in threads), (name, findings)
    ((_, nested),) = found["nested_monitor"]
    waits = r"\(producer\) waits for semaphore Lock of .*, held by thread \d+ \(consumer\)"
    assert re.search(waits, nested), nested


TURNS = """
import multiprocessing
import time

with multiprocessing.get_context("fork").Pool(3) as pool:
    for _ in range(3):
        pool.map(abs, range(30), 1)
        time.sleep(0.2)
    pool.close()
    pool.join()
"""


def test_workers_wait_for_their_turn_at_a_queue(ptt: Ptt, tmp_path: Path) -> None:
    """A worker sleeps until there is work, and holds a lock that the other workers wait for."""
    (tmp_path / "turns.py").write_text(TURNS)
    program = (sys.executable, tmp_path / "turns.py")
    ptt("record", "-q", "--sched", "auto", "-o", tmp_path / "run.ptt", "--", *program)
    found = json.loads(ptt("check", "--format", "json", tmp_path / "run.ptt", status=None).stdout)
    assert [row["message"] for row in found["findings"] if row["kind"] != "holder-preempted"] == []


SHARED_LOCK = """
import multiprocessing
import pathlib
import sys
import time

mark = pathlib.Path(sys.argv[1])

def sleeps(lock):
    while not mark.exists():
        with lock:
            time.sleep(0.03)
        time.sleep(0.001)

def waits(lock):
    for _ in range(6):
        with lock:
            pass
        time.sleep(0.01)
    mark.touch()

context = multiprocessing.get_context("fork")
lock = context.Lock()
both = [context.Process(target=one, args=(lock,)) for one in (sleeps, waits)]
for one in both:
    one.start()
for one in both:
    one.join()
"""


def test_a_finding_has_the_lines_of_its_own_process(ptt: Ptt, tmp_path: Path) -> None:
    """The first process names a shared lock; each finding has lines of its own process."""
    (tmp_path / "shared.py").write_text(SHARED_LOCK)
    program = (sys.executable, tmp_path / "shared.py", tmp_path / "mark")
    ptt("record", "-q", "--sched", "auto", "-o", tmp_path / "run.ptt", "--", *program)
    found = json.loads(ptt("check", "--format", "json", tmp_path / "run.ptt", status=None).stdout)
    (finding,) = (finding for finding in found["findings"] if finding["kind"] == "sleeping-holder")
    assert any(site.startswith("waits (shared.py:") for site in finding["sites"]), finding
    assert ", taken," not in finding["message"]
