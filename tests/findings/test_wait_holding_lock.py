"""Threads that wait while they hold a lock that other threads wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import Story, kinds

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

TABLE, QUEUE, READY = 0x1000, 0x2000, 0x3000
CLIENT, READER = 101, 102
KIND = "wait-holding-lock"


def late_answer(tmp_path: Path, wait_ns: int, *, gives_up: bool = False) -> list[Finding]:
    """Check a client that waits on a condition with the table locked, or with the queue alone."""
    story = Story().create(CLIENT, READER)
    if not gives_up:
        story.lock(CLIENT, TABLE)
    story.lock(CLIENT, QUEUE).cond_in(CLIENT, READY, QUEUE)
    story.wait(READER, QUEUE if gives_up else TABLE).sleep(wait_ns)
    if gives_up:
        story.waited(READER, QUEUE, wait_ns=wait_ns).unlock(READER, QUEUE)
    story.signal(READER, READY).cond_out(CLIENT, READY, QUEUE)
    story.unlock(CLIENT, QUEUE)
    if not gives_up:
        story.unlock(CLIENT, TABLE)
        story.waited(READER, TABLE, wait_ns=wait_ns).unlock(READER, TABLE)
    return story.ended_and_joined(CLIENT, READER).exit().findings(tmp_path)


def test_a_reader_waits_for_a_waiter(tmp_path: Path) -> None:
    found = [finding for finding in late_answer(tmp_path, 2_000_000_000) if finding.kind == KIND]
    assert len(found) == 1
    assert found[0].severity == "warning"
    assert set(found[0].threads) == {CLIENT, READER}
    assert "while it waited on condition" in found[0].message
    assert "waited 2 s for it meanwhile" in found[0].message


@pytest.mark.parametrize("wait_ns", [0, 500_000_000])
def test_short_waits_are_nobodys_fault(wait_ns: int, tmp_path: Path) -> None:
    assert KIND not in kinds(late_answer(tmp_path, wait_ns))


def test_the_mutex_of_the_condition_is_given_up(tmp_path: Path) -> None:
    assert KIND not in kinds(late_answer(tmp_path, 2_000_000_000, gives_up=True))
