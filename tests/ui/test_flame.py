"""The flame graph: a wrapper with five callers has five stacks, which add up to all waiting."""

from __future__ import annotations

import gc
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.answers import Answers
from nptltrace.analysis.report.stacks.sums import STACK_MEASURES
from nptltrace.api import Traceset
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.ui.queries.flame import flame
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from tests.support import Ptt

CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}


@pytest.mark.usefixtures("native_in_process")
def test_a_wrapper_splits_into_its_callers(
    tmp_path: Path, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = tmp_path / "run.ptt"
    ptt("record", "-o", trace, "--", program("five_callers"))
    source = Traceset(trace)
    answers = Answers(source, Symbols(source))
    totals: dict[StackMeasure, str] = {"waits": "wait_ns", "holders": "held_ns", "holds": "hold_ns"}
    for show, total in totals.items():
        found = flame(answers, show, lambda _: None)
        names = [frame["name"] for frame in found["frames"]]
        by_caller: Counter[str] = Counter()
        for stack in found["stacks"]:
            callee, caller, *_ = *(names[number] for number in stack["frames"]), "", ""
            by_caller[caller if callee == "db_lock" else ""] += stack["ns"]
        split = {caller for caller, ns in by_caller.items() if caller and ns}
        # no thread is left to wait for the thread that takes the lock last
        assert split == CALLERS or (show == "holders" and split < CALLERS), show
        command = ("report", "--by", "stack", "--show", show, "--format", "json")
        document = json.loads(ptt(*command, trace).stdout)
        assert by_caller.total() == found["ns"] == document[total]


@pytest.mark.usefixtures("native_in_process")
def test_the_flame_graph_leaves_no_file_of_the_trace_open(tmp_path: Path) -> None:
    """The number of mappings of a process is limited, and a trace has a file for each thread."""
    made = Builder(tmp_path / "made.ptt")
    for tid in range(1, 4):
        made.thread(tid, [Event(10**12, "MUTEX_TAKEN", 64 * tid, 5)])
    trace = made.write()
    source = Traceset(trace)
    symbols = Symbols(source)

    def mapped() -> int:
        return Path("/proc/self/maps").read_text(encoding="utf-8").count(f"{trace}/stream-")

    before = mapped()
    assert before == 3
    gc.disable()
    try:
        for show in STACK_MEASURES:
            flame(Answers(source, symbols), show, lambda _: None)
        assert mapped() == before
    finally:
        gc.enable()
