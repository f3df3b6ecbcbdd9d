"""`ptt explore`: random delays show a latent deadlock, and change nothing in a correct program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt


def explored(ptt: Ptt, folder: Path, *words: str | Path, status: int | None = 0) -> Any:
    ran = ptt("explore", "--format", "json", *words, cwd=folder, status=status)
    return json.loads(ran.stdout)


@pytest.mark.alone
def test_delays_show_a_deadlock(ptt: Ptt, program: Callable[[str], Path], tmp_path: Path) -> None:
    # Three pairs of threads: each pair deadlocks if one thread is late by half a millisecond.
    options = ["--kind", "deadlock", "--delay", "1s", "--runs", "2"]
    for seed in range(0, 80, 2):
        words = ("--seed", str(seed), "--", program("latent"), "many", "500")
        document = explored(ptt, tmp_path, *options, *words, status=None)
        if document["findings"]:
            break
    else:
        pytest.fail("80 seeds have shown no deadlock")
    finding = document["findings"][0]
    assert finding["kind"] == "deadlock"
    assert set(finding["seeds"]) <= set(document["hung"])
    ptt("check", "--kind", "deadlock", tmp_path / finding["trace"], status=1)


@pytest.mark.alone
def test_a_seed_decides_about_the_delays_of_a_correct_program(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ["--ignore", "lock-order-inversion", "--delay", "1ms", "--runs", "1", "--seed", "1"]
    words: list[str | Path] = [*options, "--", program("latent"), "counted"]
    first, second = (explored(ptt, tmp_path, *words) for _ in range(2))
    assert first == second
    assert first["seeds"] == [1]
    assert first["findings"] == first["hung"] == first["failed"] == []


@pytest.mark.parametrize(
    "words", [[], ["--runs", "0", "--", "true"], ["--seed", "-1", "--", "true"],
              ["--delay", "2m", "--", "true"], ["--time", "0s", "--", "true"],
              ["--kind", "nonsense", "--", "true"]],
)  # fmt: skip
def test_wrong_usage_is_refused(ptt: Ptt, words: list[str]) -> None:
    assert ptt("explore", *words, status=2).stderr.startswith("ptt: error: ")
