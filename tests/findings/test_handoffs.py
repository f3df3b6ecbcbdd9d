"""The report of locks that threads hand to one another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.analysis.story import A, B, Story

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


def test_a_lock_that_two_threads_pass_to_and_fro(ptt: Ptt, tmp_path: Path) -> None:
    story = Story().create(1, 2).both(1, A, B).lock(1, A)
    for has, waits in ((1, 2), (2, 1), (1, 2)):
        story.wait(waits, A, owner=has).sleep(4000).unlock(has, A).sleep(2000)
        story.waited(waits, A, wait_ns=8000)
    story.unlock(2, A).ended_and_joined(1, 2).exit()
    trace = story.write_to(tmp_path / "made.ptt")
    rows = json.loads(ptt("report", "--by", "handoffs", "--format", "json", trace).stdout)["rows"]
    assert [(row["lock"], row["from_tid"], row["to_tid"], row["times"]) for row in rows] == [
        (hex(A), 1, 2, 2),
        (hex(A), 2, 1, 1),
    ]
    assert [row["wait_ns"] for row in rows] == [16000, 8000]
    assert [row["wake_ns"] for row in rows] == [6000, 3000]
