"""`ptt explore`: random delays show a latent deadlock, and change nothing in a correct program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt


@pytest.mark.alone
def test_a_seed_shows_a_deadlock_again(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ["--format", "json", "--kind", "deadlock", "--delay", "200ms"]
    latent = program("latent")
    ran = ptt(
        "explore", *options, "--runs", "3", "--seed", "7", "--", latent, "two", cwd=tmp_path, status=1
    )
    document = json.loads(ran.stdout)
    (finding,) = document["findings"]
    assert finding["kind"] == "deadlock"
    assert document["hung"]
    seed = finding["seeds"][0]
    again = ptt(
        "explore", *options, "--runs", "1", "--seed", str(seed), "--", latent, "two",
        cwd=tmp_path, status=1,
    )  # fmt: skip
    assert json.loads(again.stdout)["findings"][0]["seeds"] == [seed]


@pytest.mark.alone
def test_a_correct_program_behaves_as_always(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    ran = ptt(
        "explore", "--format", "json", "--ignore", "lock-order-inversion", "--runs", "3",
        "--", program("latent"), "counted", cwd=tmp_path,
    )  # fmt: skip
    assert ran.stderr.splitlines().count("done") == 3
    document = json.loads(ran.stdout)
    assert len(document["seeds"]) == 3
    assert document["findings"] == document["hung"] == document["failed"] == []


@pytest.mark.parametrize(
    "words", [[], ["--runs", "0", "--", "true"], ["--seed", "-1", "--", "true"],
              ["--delay", "2m", "--", "true"], ["--kind", "nonsense", "--", "true"]],
)  # fmt: skip
def test_wrong_usage_is_refused(ptt: Ptt, words: list[str]) -> None:
    assert ptt("explore", *words, status=2).stderr.startswith("ptt: error: ")
