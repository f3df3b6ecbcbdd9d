"""The flame graph: a wrapper with five callers is five ways, which add up to all there is."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.model import Window
from nptltrace.trace.source import Source
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.ui.answers.flame import flame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.analysis.report.stacks.sums import Shown
    from tests.support import Ptt

CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}


@pytest.mark.usefixtures("native_in_process")
def test_a_wrapper_splits_into_its_callers(
    tmp_path: Path, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = tmp_path / "run.ptt"
    ptt("record", "-o", trace, "--", program("five_callers"))
    source = Source([trace])
    symbols = Symbols(source)
    totals: dict[Shown, str] = {"waits": "wait_ns", "holders": "held_ns", "holds": "hold_ns"}
    for show, total in totals.items():
        found = flame([trace], symbols, Window(), show, lambda _: None)
        names = [frame["name"] for frame in found["frames"]]
        by_caller: Counter[str] = Counter()
        for stack in found["stacks"]:
            callee, caller, *_ = *(names[number] for number in stack["frames"]), "", ""
            by_caller[caller if callee == "db_lock" else ""] += stack["ns"]
        split = {caller for caller, ns in by_caller.items() if caller and ns}
        # nobody is left to wait for the thread that takes the lock last
        assert split == CALLERS or (show == "holders" and split < CALLERS), show
        command = ("report", "--by", "stack", "--show", show, "--format", "json")
        document = json.loads(ptt(*command, trace).stdout)
        assert by_caller.total() == found["ns"] == document[total]
