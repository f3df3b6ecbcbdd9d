"""An object in memory that several processes have mapped is one object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder


@pytest.mark.parametrize("how", ["anonymous", "named"])
def test_two_processes_use_one_mutex(
    how: str, compile_c: Compiler, ptt: Ptt, record: Recorder
) -> None:
    trace = record(compile_c(ROOT / "tests" / "analysis" / "two_processes.c"), how, "50")
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    mutexes = [item for item in report["objects"] if item["kind"] == "mutex"]
    assert len(mutexes) == 1
    assert mutexes[0]["threads"] == 2
    assert mutexes[0]["holds"] == 100
    # The holder keeps the mutex until the other process waits.
    assert mutexes[0]["waits"] > 0
    assert mutexes[0]["blamed"][0]["pid"] in {thread["pid"] for thread in report["threads"]}
