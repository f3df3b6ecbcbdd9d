"""Every lock-free protocol has a model, and spin finds no way through it that breaks it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MODELS = sorted(Path(__file__).parent.glob("*.pml"))

needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="spin is not installed")


@needs_spin
@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_exhaustive_search_finds_no_error(model: Path, tmp_path: Path) -> None:
    subprocess.run(["spin", "-a", str(model)], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    cc = ["cc", "-O2", "-w", "-DCOLLAPSE", "-DSAFETY", "-o", "pan", "pan.c"]
    subprocess.run(cc, cwd=tmp_path, check=True)
    done = subprocess.run(
        ["./pan", "-m200000"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "errors: 0" in done.stdout, done.stdout
    assert "max search depth too small" not in done.stdout
    assert "Search not completed" not in done.stdout
