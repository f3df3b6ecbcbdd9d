"""`ptt diff` finds real changes, reports them by place, and does not take chance for a change."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.analysis.story import A, Story
from tests.support import ROOT, Compiler, Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Result

_SOURCE = ROOT / "tests" / "analysis" / "holding.c"
_SHORT, _LONG = "10", "300"  # ms; no load makes a short hold look like a long hold
# Runs of the same program have to be alike.
pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path
) -> dict[str, list[Path]]:
    """Four runs each of a program, of the same with longer holds, and of its next version."""
    directory = tmp_path_factory.mktemp("diff")
    compiler = Compiler(directory, native_stage / "include")
    record = Recorder(ptt, tmp_path_factory.mktemp("runs"))
    program = compiler(_SOURCE)
    # Lines move, and so does everything else.
    newer = directory / "newer.c"
    newer.write_text("int version = 2;\n\n" + _SOURCE.read_text())
    found = {
        "short": [record(program, _SHORT) for _ in range(4)],
        "long": [record(program, _LONG) for _ in range(4)],
        "newer": [record(compiler(newer), _LONG)],
    }
    found["moved"] = found["short"][:1]
    return found


def _diff(
    ptt: Ptt, before: list[Path], after: list[Path], *options: str, status: int = 0
) -> Result:
    return ptt("diff", *options, *before, "--against", *after, status=status)


def _json(ptt: Ptt, before: list[Path], after: list[Path], *options: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        _diff(ptt, before, after, "--format", "json", *options).stdout
    )
    return document


def _row(document: dict[str, Any], what: str) -> dict[str, Any]:
    key = "site" if document["by"] == "site" else "name"
    rows = [r["metrics"] for r in document["rows"] if r[key].startswith(what)]
    assert rows, [row[key] for row in document["rows"]]
    return max(rows, key=lambda row: row.get("hold_ns", {}).get("after", 0))


# ---- real programs ----


def test_longer_holds_are_found_where_they_are(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    document = _json(ptt, runs["short"], runs["long"])
    assert document["enough_runs"]
    row = _row(document, "hold (")
    assert row["hold_ns"]["verdict"] == "sure"
    assert row["hold_ns"]["before"] >= 50e6
    assert row["hold_ns"]["after"] >= 500e6
    assert row["holds"]["before"] == row["holds"]["after"] == 5
    assert row["wait_caused_ns"]["verdict"] == "sure"
    waiting = _row(document, "wait_for_it+")
    assert waiting["wait_ns"]["verdict"] == "sure"
    quick = _row(document, "quickly (")
    assert quick["holds"]["change_percent"] == 0
    assert quick["holds"]["verdict"] != "sure"
    assert document["total"]["hold_ns"]["verdict"] == "sure"


@pytest.mark.parametrize(("by", "what"), [("object", "busy"), ("thread", "holding")])
def test_by_object_and_thread(ptt: Ptt, runs: dict[str, list[Path]], by: str, what: str) -> None:
    row = _row(_json(ptt, runs["short"], runs["long"], "--by", by), what)
    assert row["hold_ns"]["verdict"] == "sure"
    assert row["hold_ns"]["change_percent"] > 100


def test_nothing_changed(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    document = _json(ptt, runs["short"], runs["short"])
    metrics = [
        m
        for row in [document["total"], *[r["metrics"] for r in document["rows"]]]
        for m in row.values()
    ]
    assert {metric["verdict"] for metric in metrics} <= {"chance", "unknown"}
    assert all(metric["change_percent"] in {0, None} for metric in metrics)
    limits = "wait>0%,hold>0%,waits>0%,holds<0%"
    _diff(ptt, runs["short"], runs["short"], "--fail-on", limits)


def test_next_version_compares(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    document = _json(ptt, runs["moved"], runs["newer"])
    for function in ("hold (", "wait_for_it (", "quickly ("):
        row = _row(document, function)
        assert row["holds"]["change_percent"] == 0
    assert _row(document, "hold (")["hold_ns"]["change_percent"] > 100


def test_gate(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    done = _diff(ptt, runs["short"], runs["long"], "--fail-on", "hold>100%", status=1)
    assert "failed on hold>100%: hold (" in done.stderr
    assert "failed on hold>100%: total" in done.stderr
    _diff(ptt, runs["short"], runs["long"], "--fail-on", "holds>0%")
    _diff(ptt, runs["short"], runs["long"], "--fail-on", "hold>1h")
    _diff(ptt, runs["short"], runs["long"], "--fail-on", "hold>100ms", status=1)
    _diff(ptt, runs["long"], runs["short"], "--fail-on", "hold>100%")
    _diff(ptt, runs["long"], runs["short"], "--fail-on", "hold<50%", status=1)


def held(
    path: Path, ran_ns: int, ready_ns: int, slept_ns: int, *, readings: bool = True,
    vague_ns: int = 0,
) -> Path:  # fmt: skip
    """Write a trace with a hold; readings of the scheduler divide its time.

    Just before the hold, the thread had no processor for vague_ns; the same reading covers that.
    """
    story = Story().create(1)
    if readings:
        story.do(1, "SCHED_READING", slices=1, ran_ns=0, ready_ns=0)
        story.sleep(vague_ns).do(1, "SCHED_RAN", ran_ns=1000)
    story.lock(1, A, site=5).sleep(ran_ns + ready_ns + slept_ns)
    if readings:
        # Three more microseconds pass between the readings; the thread runs then.
        story.do(1, "SCHED_READING", slices=2, ran_ns=ran_ns + 3000, ready_ns=ready_ns)
    return story.unlock(1, A).ended_and_joined(1).exit().write_to(path)


def test_a_gate_can_leave_out_the_run_delay_of_holders(ptt: Ptt, tmp_path: Path) -> None:
    ms = 1_000_000
    quiet = held(tmp_path / "quiet.ptt", 10 * ms, 0, 5 * ms)
    busy = held(tmp_path / "busy.ptt", 10 * ms, 90 * ms, 5 * ms)
    longer = held(tmp_path / "longer.ptt", 10 * ms, 0, 25 * ms)
    ptt("diff", "--fail-on", "hold>10%", quiet, busy, status=1)
    ptt("diff", "--fail-on", "used>10%", quiet, busy)
    for before in (quiet, busy):
        failed = ptt("diff", "--fail-on", "used>10%", before, longer, status=1)
        assert "failed on used>10%: total: +133 %" in failed.stderr
    used = _json(ptt, [quiet], [busy])["total"]["used_ns"]
    assert used["before"] == used["after"] == pytest.approx(15 * ms, abs=4000)


def test_a_holder_has_no_processor_for_longer_than_it_holds(ptt: Ptt, tmp_path: Path) -> None:
    ms = 1_000_000
    story = Story().create(1).do(1, "SCHED_READING", slices=1, ran_ns=0, ready_ns=0)
    # The thread loses the processor before it locks; only the last reading reports that.
    story.sleep(10 * ms).lock(1, A, site=5)
    story.do(1, "SCHED_READING", slices=2, ran_ns=0, ready_ns=10 * ms).unlock(1, A)
    trace = story.ended_and_joined(1).exit().write_to(tmp_path / "late.ptt")
    ptt("diff", "--fail-on", "used>10%", trace, trace)
    query = "select dur_ns, ran_ns, off_ns, ready_ns from holds"
    [hold] = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert (hold["ran_ns"], hold["off_ns"], hold["ready_ns"]) == (0, hold["dur_ns"], hold["dur_ns"])


def test_a_gate_does_not_guess_the_run_delay(ptt: Ptt, tmp_path: Path) -> None:
    known = held(tmp_path / "known.ptt", 10**6, 0, 0)
    without = held(tmp_path / "without.ptt", 10**6, 0, 0, readings=False)
    failed = ptt("diff", "--fail-on", "used>10%", known, without, status=2)
    assert "error: used>10%: " in failed.stderr
    assert str(without) in failed.stderr
    assert "used_ns" not in _json(ptt, [known], [without])["total"]
    assert "but for run delay" not in ptt("diff", known, without).stdout


def test_a_gate_knows_the_run_delay_to_a_hundredth(ptt: Ptt, tmp_path: Path) -> None:
    ms = 1_000_000
    known = held(tmp_path / "known.ptt", 10 * ms, 5 * ms, 0)
    almost = held(tmp_path / "almost.ptt", 10 * ms, 5 * ms, 0, vague_ns=90_000)
    vague = held(tmp_path / "vague.ptt", 10 * ms, 5 * ms, 0, vague_ns=200_000)
    ptt("diff", "--fail-on", "used>2%", known, almost)
    ptt("diff", "--fail-on", "used>2%", known, vague, status=2)


def test_junit(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    options = ("--format", "junit", "--fail-on", "hold>20%,waits>1000")
    red = _diff(ptt, runs["short"], runs["long"], *options, status=1)
    suite = ET.fromstring(red.stdout)  # noqa: S314 -- our own
    assert suite.attrib == {"tests": "2", "failures": "1", "errors": "0"}
    cases = {case.attrib["name"]: case for case in suite.iter("testcase")}
    failure = cases["hold>20%"].find("failure")
    assert failure is not None
    assert failure.attrib["message"] in red.stderr
    assert "holding.c" in (failure.text or "")
    assert cases["waits>1000"].find("failure") is None
    green = _diff(ptt, runs["short"][:2], runs["short"][2:], *options)
    assert 'failures="0"' in green.stdout


def test_single_traces(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    short, long = runs["short"][0], runs["long"][0]
    done = ptt("diff", short, long)
    assert "may be chance (record 4 of each)" in done.stdout
    assert "hold (" in done.stdout
    ptt("diff", "--fail-on", "hold>100%", short, long, status=1)


def test_too_few_runs_are_reported_to_be_too_few(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    done = _diff(ptt, runs["short"][:3], runs["long"][:3])
    assert "3 and 3 runs are too few for 95% confidence" in done.stdout
    assert not _json(ptt, runs["short"][:3], runs["long"][:3])["enough_runs"]
    document = _json(ptt, runs["short"][:3], runs["long"][:3], "--confidence", "90")
    assert document["enough_runs"]
    assert _row(document, "hold (")["hold_ns"]["verdict"] != "unknown"


def test_divided(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    whole = _json(ptt, runs["short"][:1], runs["long"][:1])
    second = _json(ptt, runs["short"][:1], runs["long"][:1], "--per", "second")
    seconds = whole["runs_before"][0]["elapsed_ns"] / 1e9
    expected = whole["total"]["hold_ns"]["before"] / seconds
    assert second["total"]["hold_ns"]["before"] == pytest.approx(expected)
    event = _json(ptt, runs["short"][:1], runs["long"][:1], "--per", "BARRIER_WAIT_OUT")
    assert event["total"]["holds"]["before"] == pytest.approx(110 / 20)
    _diff(ptt, runs["short"][:1], runs["long"][:1], "--per", "NONSENSE", status=2)
    _diff(ptt, runs["short"][:1], runs["long"][:1], "--per", "USER", status=2)


def test_levels_that_differ_are_reported(
    ptt: Ptt, runs: dict[str, list[Path]], record: Any
) -> None:
    less = record("/bin/true", options=("-l", "1"))
    done = ptt("diff", runs["short"][0], less)
    assert "recorded at different levels (2 and 1)" in done.stderr
    assert "different levels" not in ptt("diff", runs["short"][0], runs["long"][0]).stderr


def test_csv_has_a_line_for_each_metric(ptt: Ptt, runs: dict[str, list[Path]]) -> None:
    out = _diff(ptt, runs["short"][:1], runs["long"][:1], "--format", "csv").stdout.splitlines()
    assert out[0] == "site,kind,metric,before,after,change_percent,chance,verdict"
    assert any(line.startswith("total,,hold_ns,") for line in out)


@pytest.mark.parametrize(
    "arguments",
    [["a"], ["a", "b", "c"], ["a", "b", "--fail-on", "wait"], ["a", "b", "--fail-on", "sleep>1%"],
     ["a", "b", "--fail-on", "waits>1ms"], ["a", "b", "--confidence", "100"], ["a", "b"]],
)  # fmt: skip
def test_usage_errors(ptt: Ptt, arguments: list[str]) -> None:
    done = ptt("diff", *arguments, status=2)
    assert "ptt" in done.stderr
    assert "Traceback" not in done.stderr


# ---- chance ----


def _noise(rng: np.random.Generator, rows: int, runs: int) -> Any:
    """Return rows like the rows of real runs: skewed, by different amounts."""
    level = rng.lognormal(10, 2, (rows, 1))
    return level * rng.lognormal(0, 1, (rows, runs)) ** rng.uniform(0.01, 0.3, (rows, 1))


@pytest.mark.parametrize("runs", [4, 5])
def test_chance_is_rarely_mistaken_for_change(runs: int) -> None:
    from nptltrace.analysis.report.significance import chances

    rng = np.random.default_rng(runs)
    wrong = 0
    for _ in range(200):
        rows = _noise(rng, 30, 2 * runs)
        wrong += chances(rows[:, :runs], rows[:, runs:]).min() <= 0.05
    assert wrong <= 200 * 0.05 + 13  # four standard deviations


@pytest.mark.parametrize(("before", "after"), [(5, 5), (4, 12), (12, 4), (2, 8)])
@pytest.mark.parametrize("rows", [1, 20])
def test_a_change_of_the_spread_is_rarely_mistaken(before: int, after: int, rows: int) -> None:
    from nptltrace.analysis.report.significance import chances

    rng = np.random.default_rng(before)
    wrong = 0
    for _ in range(200):
        values = rng.normal(1, 0.3, (rows, before)), rng.normal(1, 0.02, (rows, after))
        wrong += chances(*values).min() <= 0.05
    assert wrong <= 200 * 0.05 + 13  # four standard deviations


def test_chance_is_rarely_mistaken_for_a_change_in_any_of_many_steps() -> None:
    from nptltrace.analysis.report.significance import chances_of_all

    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(60):
        values = np.split(_noise(rng, 10, 5 * 20), 20, axis=1)
        wrong += min(chance.min() for chance in chances_of_all([*pairwise(values)])) <= 0.05
    assert wrong <= 60 * 0.05 + 7  # four standard deviations


def test_a_change_in_one_of_many_steps_is_found() -> None:
    from nptltrace.analysis.report.significance import chances_of_all

    rng = np.random.default_rng(4)
    values = 1000 * rng.normal(1, 0.03, (10, 50))
    values[7, 30:] *= 2
    steps = [chance <= 0.05 for chance in chances_of_all([*pairwise(np.split(values, 10, axis=1))])]
    assert np.argwhere(steps).tolist() == [[5, 7]]


@pytest.mark.parametrize("runs", [4, 6])
def test_a_change_stands_out_among_many_rows(runs: int) -> None:
    from nptltrace.analysis.report.significance import chances

    rng = np.random.default_rng(runs)
    hits = 0
    for _ in range(40):
        rows = _noise(rng, 50, 2 * runs)
        rows[7] = 1000 * rng.normal(1, 0.03, 2 * runs)
        rows[7, runs:] *= 2
        hits += chances(rows[:, :runs], rows[:, runs:])[7] <= 0.05
    assert hits >= 38


def test_few_runs_limit_the_confidence() -> None:
    from nptltrace.analysis.report.significance import chances, least_chance

    assert least_chance(1, 9) == 1
    assert least_chance(3, 3) == pytest.approx(0.1)
    assert least_chance(4, 4) == pytest.approx(2 / 70)
    assert least_chance(3, 4) == pytest.approx(1 / 35)
    clear = chances(np.array([[1.0, 1, 1]]), np.array([[2.0, 2, 2]]))
    assert clear[0] == pytest.approx(least_chance(3, 3))
    assert chances(np.zeros((2, 4)), np.zeros((2, 4))).tolist() == [1, 1]
    assert chances(np.ones((2, 1)), np.ones((2, 3))).tolist() == [1, 1]
