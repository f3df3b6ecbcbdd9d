"""The benchmarks run, keep their figures and make a page, on a machine of any speed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

BENCHMARKS = ROOT / "benchmarks"


def script(ptt: Ptt, work: Path, name: str, *arguments: str) -> str:
    env = {**ptt.environment(), "PTT_BENCH_KEPT": str(work / "kept"), "PTT_BENCH_DIR": str(work)}
    done = subprocess.run(
        [sys.executable, BENCHMARKS / name, *arguments],
        env={**os.environ, **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Status 1 means that a figure exceeded its bound, which can happen on a busy machine.
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture
def measured(ptt: Ptt, tmp_path: Path) -> Path:
    if not shutil.which("cc"):
        pytest.skip("needs a compiler")
    message = script(ptt, tmp_path, "micro.py", "--quick", "--no-peers", "-k", "sem_wait")
    assert "PTT, level 2" in message
    return tmp_path


def test_figures_are_kept_and_become_a_page(ptt: Ptt, measured: Path) -> None:
    kept = json.loads((measured / "kept" / "micro.json").read_text(encoding="utf-8"))
    figure = kept["figures"]["sem_wait + sem_post/PTT, level 2"]
    assert len(figure["values"]) == kept["rounds"] == 3
    assert figure["min"] <= figure["median"] <= figure["max"]
    assert not kept["lost"]
    page = measured / "benchmarks.md"
    script(ptt, measured, "page.py", "--kept", str(measured / "kept"), "--output", str(page))
    text = page.read_text(encoding="utf-8")
    assert "### Sem_wait + sem_post" in text
    assert "| PTT, level 2 |" in text
    pictures = list(measured.glob("benchmarks-*.svg"))
    assert [path.name in text for path in pictures] == [True]


def test_every_peer_runs_or_gives_a_reason(ptt: Ptt, tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("needs a compiler")
    lines = script(ptt, tmp_path, "peers.py").splitlines()
    assert len(lines) == 11
    assert all("cannot run here: " in line or line.split()[1:] for line in lines)
