"""Semaphores known by the functions that wait for them: PostgreSQL's locks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = ROOT / "tests" / "programs" / "lwlock.c"


@pytest.mark.parametrize(
    "flags", [("-rdynamic",), ("-s", "-rdynamic")], ids=["symbols", "stripped"]
)
def test_a_wait_for_a_postgresql_lock_has_its_waker(
    flags: tuple[str, ...], compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    """The wait counts as a wait for a lock, and the waker's own function names the waker."""
    trace = record(compile_c(PROGRAM, *flags, name="postgres"))
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    [lock] = [row for row in report["objects"] if row["kind"] == "lwlock"]
    assert (lock["waits"], lock["idle_waits"], lock["unknown_waits"]) == (1, 0, 0)
    assert lock["first_site"].startswith("insert_record")
    [blamed] = lock["blamed"]
    assert blamed["site"].startswith("write_log")
    [waiter] = [thread["pid"] for thread in report["threads"] if thread["waits"]]
    assert blamed["pid"] != waiter
    assert report["unknown_waits"] == report["idle_waits"] == 0
    # and the server's other waits do not count as lock waits
    [rest] = report["uncovered"]
    assert "latches" in rest["why"]
