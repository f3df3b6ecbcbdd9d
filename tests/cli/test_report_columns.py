"""`ptt report --sort` and `--columns` print a table with the figures of the report."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.analysis.story import A, B, C, Story

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three locks: B is held longest, C most often."""
    story = Story().create(1, 2)
    story.lock(1, A).unlock(1, A).lock(1, B).sleep(9000).unlock(1, B)
    for _ in range(3):
        story.lock(2, C).unlock(2, C)
    return story.write_to(tmp_path / "run.ptt")


def rows(ptt: Ptt, *args: str | Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ptt("report", "--format", "csv", *args).stdout)))


def test_rows_are_sorted_and_have_the_columns(ptt: Ptt, trace: Path) -> None:
    by_length = rows(ptt, "--sort", "hold_max_ns", "--columns", "object,holds,hold_max_ns", trace)
    assert [list(row) for row in by_length] == [["object", "holds", "hold_max_ns"]] * 3
    assert int(by_length[0]["object"], 16) == B
    by_count = rows(ptt, "--sort", "holds", trace)
    assert int(by_count[0]["object"], 16) == C
    assert sorted(by_count, key=str) == sorted(rows(ptt, trace), key=str)


@pytest.mark.parametrize("by", ["object", "thread", "site", "thread,object", "stack"])
def test_figures_equal_the_figures_of_the_report(ptt: Ptt, trace: Path, by: str) -> None:
    args = ["--by", by, *(["--show", "holds"] if by == "stack" else [])]
    plain = rows(ptt, *args, trace)
    name = "hold_ns"
    table: dict[str, Any] = json.loads(
        ptt("report", "--format", "json", *args, "--sort", name, trace).stdout
    )
    lengths = [row[name] for row in table["rows"]]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(map(str, lengths)) == sorted(row[name] for row in plain)
    text = ptt("report", *args, "--columns", name, trace).stdout.splitlines()
    assert text[2].split() == ["hold"]
    assert len(text) == len(plain) + 3


def test_wrong_columns_are_refused(ptt: Ptt, trace: Path) -> None:
    wrong = ptt("report", "--sort", "hold_nss", trace, status=2).stderr
    assert "no column 'hold_nss'; did you mean hold_ns" in wrong
    assert "choose from object, pid" in ptt("report", "--columns", "q", trace, status=2).stderr
    for option in ("--gil", "--by=handoffs"):
        assert "--sort" in ptt("report", option, "--sort", "waits", trace, status=2).stderr


def test_options_and_parts_mean_the_same_as_without_a_table(ptt: Ptt, trace: Path) -> None:
    for options in (("--show", "holds"), ("--bottom-up",), ("--by", "stack", "--bottom-up")):
        for table in (("--sort", "hold_ns"), ("--columns", "hold_ns")):
            refused = ptt("report", *options, *table, trace, status=2).stderr
            assert "needs --by stack" in refused or "cannot be combined" in refused
    part = ("--tid", "4711", trace)
    assert ptt("report", "--sort", "waits", *part).stderr == ptt("report", *part).stderr != ""
