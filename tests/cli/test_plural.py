"""Commands use the singular for a single thing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import A, Story

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

ONE_OF_MANY = re.compile(
    r"(?<![\d.,])1 (events|threads|processes|traces|tables|rows|waits|holds|wake-ups|findings|"
    r"others|times|objects)\b"
)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A trace with a single event of a single thread."""
    return Story(main=False).lock(100, A).write_to(tmp_path / "one.ptt")


@pytest.mark.parametrize(
    "command",
    [
        ("stat", "ONE"), ("report", "ONE"), ("check", "ONE"), ("verify", "ONE"),
        ("report", "--tid", "7", "ONE"), ("report", "--site", "nowhere", "ONE"),
        ("cut", "--from", "0", "-o", "OUT", "ONE"), ("split", "--by", "thread", "-o", "OUT", "ONE"),
        ("split", "-v", "--by", "process", "-o", "OUT", "ONE"),
        ("export", "--format", "csv", "--table", "threads", "-o", "OUT", "ONE"),
        ("export", "--format", "parquet", "-o", "OUT", "ONE"),
        ("export", "--format", "perfetto", "-o", "OUT", "ONE"),
        ("sql", "-o", "OUT.csv", "ONE", "select 1 as n"), ("top", "ONE"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_single_thing_is_in_the_singular(
    command: tuple[str, ...], one: Path, tmp_path: Path, ptt: Ptt
) -> None:
    places = {"ONE": str(one), "OUT": str(tmp_path / "out"), "OUT.csv": str(tmp_path / "o.csv")}
    done = ptt(*(places.get(word, word) for word in command), status=None)
    assert done.returncode in {0, 1}, done.stderr
    assert ONE_OF_MANY.findall(done.stdout + done.stderr) == []
