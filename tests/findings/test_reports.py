"""Reports that users write: text, JSON, CSV, and their mistakes."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import A, B, Story
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

REPORT = '''
from nptltrace.reports import report

@report("long-first", title="Holds, the longest first")
def long_first(trace):
    """List holds."""
    query = "select object_name as lock, dur_ns, tid from named_holds order by dur_ns desc"
    return trace.sql(query)
'''
ROWS = '''
@report("threads-of", title="Threads")
def threads_of(trace):
    """List threads."""
    for tid in trace.table("threads", ["tid"])["tid"].to_pylist():
        yield {"tid": tid, "life_ns": None}
'''


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    story = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).lock(1, B).unlock(1, B)
    return story.write_to(tmp_path / "made.ptt")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my_report.py"
    path.write_text(REPORT)
    return path


def test_text(ptt: Ptt, trace: Path, script: Path) -> None:
    out = ptt("report", "--script", script, trace).stdout.splitlines()
    assert out[0] == "Holds, the longest first"
    assert out[2].split() == ["lock", "dur", "tid"]
    assert out[3].split() == [hex(A), "21.000", "us", "1"]
    assert len(out) == 5
    shorter = ptt("report", "--script", script, "-n", "1", trace).stdout
    assert shorter.endswith("\nand 1 more (-n 0 shows all)\n")
    assert hex(B) not in shorter


def test_json_and_csv(ptt: Ptt, trace: Path, script: Path) -> None:
    document = json.loads(ptt("report", "--script", script, "--format", "json", trace).stdout)
    assert document["report"] == "long-first"
    assert document["rows"][0] == {"lock": hex(A), "dur_ns": 21000, "tid": 1}
    text = ptt("report", "--script", script, "--format", "csv", trace).stdout
    assert [row["dur_ns"] for row in csv.DictReader(io.StringIO(text))] == ["21000", "1000"]


def test_a_window(ptt: Ptt, trace: Path, script: Path) -> None:
    """A wait or hold that reaches into the window counts with its part inside."""
    args = ("report", "--script", script, "--format", "json", "--to", "13us", trace)
    (row,) = json.loads(ptt(*args).stdout)["rows"]
    assert row["lock"] == hex(A)
    assert row["dur_ns"] < 21000


def test_several_reports(ptt: Ptt, trace: Path, script: Path) -> None:
    script.write_text(REPORT + ROWS)
    done = ptt("report", "--script", script, trace, status=2)
    assert "choose with --by: long-first, threads-of" in done.stderr
    args = ("report", "--script", script, "--by", "threads-of", "--format", "json", trace)
    rows = json.loads(ptt(*args).stdout)["rows"]
    assert [row["tid"] for row in rows] == [100, 1]


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        ("x = (\n", (), "line 1: "),
        ("x = 1\n", (), "has no function with the decorator @report"),
        ("1 / 0\n", (), "line 1: ZeroDivisionError: division by zero"),
        (REPORT.replace("long-first", "object"), (), "not the name of a report of PTT"),
        (REPORT.replace("named_holds", "nothing"), (), "line 8): "),
        (REPORT.replace("trace.sql(query)", "5"), (), "TypeError"),
        (REPORT, ("--by", "other"), "there is no 'other'"),
    ],
)
def test_mistakes(
    ptt: Ptt, trace: Path, script: Path, *, text: str, options: tuple[str, ...], error: str
) -> None:
    script.write_text(text)
    done = ptt("report", "--script", script, *options, trace, status=2)
    assert done.stderr.startswith("ptt: error: ")
    assert error in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_no_such_report(ptt: Ptt, trace: Path) -> None:
    done = ptt("report", "--by", "long-first", trace, status=2)
    assert "--by: there is no 'long-first': object, thread, site, thread,object" in done.stderr


def test_entry_points(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    place = tmp_path / "site"
    info = place / "plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nptltrace.reports]\nmine = plugin_of_mine\n")
    (place / "plugin_of_mine.py").write_text(REPORT)
    env = {"PYTHONPATH": f"{place}:{ROOT / 'src'}"}
    done = ptt("report", "--by", "long-first", trace, env=env)
    assert done.stdout.startswith("Holds, the longest first\n")
