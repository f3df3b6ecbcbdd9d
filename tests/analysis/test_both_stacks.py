"""Call stacks of waiters and holders: in entries of a report, in a comparison, and in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.analysis.report.contention import contention
from nptltrace.api import Traceset
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}


@pytest.fixture(scope="module")
def trace(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Callable[[str], Path]
) -> Path:
    out = tmp_path_factory.mktemp("both") / "run.ptt"
    ptt("record", "-o", out, "--", program("five_callers"))
    return out


def functions(frames: Any) -> list[str]:
    """Return the names of functions in a stack."""
    return [frame.partition("+")[0] for frame in frames]


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize(
    ("by", "entries"),
    [("object", "objects"), ("thread", "threads"), ("site", "sites"), ("thread,object", "pairs")],
)
def test_stacks_add_up_to_their_entry(trace: Path, by: str, entries: str) -> None:
    source = Traceset(trace)
    report = contention(source, Symbols(source), pairs=by == "thread,object", stacks=by)
    contended = [item for item in getattr(report, entries) if item.figures.waits]
    assert contended
    for item in contended:
        assert sum(both.waits for both in item.stacks) == item.figures.waits
        assert sum(both.wait_ns for both in item.stacks) == item.figures.wait_ns
        assert sum(both.held_ns for both in item.stacks) == item.figures.held_ns
    others = {"objects", "threads", "sites", "pairs"} - {entries}
    assert not any(item.stacks for name in others for item in getattr(report, name))


def test_report_prints_both_stacks(ptt: Ptt, trace: Path) -> None:
    lines = ptt("report", "-v", "--object", "g_lock", trace).stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.lstrip().startswith("waited "))
    waiter, caller = functions(line.split()[-2] for line in lines[at : at + 2])
    assert waiter == "db_lock"
    assert caller in CALLERS
    assert any(line.lstrip().startswith("held ") for line in lines)
    assert any(line.endswith("other stacks") for line in lines)
    assert "        waited " not in ptt("report", "--object", "g_lock", trace).stdout


def test_diff_by_stack(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "cut.ptt"
    ptt("cut", "--from", "0s", "-o", other, trace)
    command = ("diff", "--by", "stack", "--object", "g_lock")
    document = json.loads(ptt(*command, "--format", "json", trace, other).stdout)
    rows = [row for row in document["rows"] if "wait_ns" in row["metrics"]]
    assert {functions(row["stack"])[1] for row in rows} >= CALLERS
    for side in ("before", "after"):
        for metric in ("wait_ns", "held_ns", "waits", "holds", "hold_ns", "wait_caused_ns"):
            parts = [row["metrics"].get(metric, {side: 0})[side] for row in document["rows"]]
            assert sum(parts) == document["total"][metric][side], (side, metric)
    text = ptt(*command, trace, other).stdout
    assert any(
        line.startswith("    < ") and line.split()[1][:8] in text for line in text.split("\n")
    )
    assert ptt(*command, "--format", "csv", trace, other).stdout.startswith("stack,kind,")


@pytest.mark.usefixtures("native_in_process")
def test_python_stacks_leave_out_wrappers(trace: Path, tmp_path: Path) -> None:
    with nptltrace.open(trace) as ts:

        def sites(**options: Any) -> set[str]:
            rows = ts.report(by="site", object="g_lock", **options).get("sites", [])
            return set(functions(site["site"] for site in rows if site["waits"]))

        assert sites() == {"db_lock"}
        for skip in ("db_*,libother*", ["db_lock"], ("libother*", "db_lock")):
            assert sites(skip=skip) == CALLERS
            assert sites() == {"db_lock"}
        changes = ts.diff(nptltrace.open(trace), skip="db_lock")["rows"]
        assert {row["site"].partition("+")[0] for row in changes} >= CALLERS
        out = ts.export("folded", tmp_path / "out.folded", skip="db_lock")
        assert "db_lock" not in out.read_text()
        with pytest.raises(nptltrace.UsageError, match="empty pattern"):
            ts.check(skip="a,,b")
