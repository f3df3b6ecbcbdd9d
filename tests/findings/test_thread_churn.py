"""Threads that a program creates one after another for little work each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import MAIN, Story

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

CREATES = 7
US = 1000


@pytest.fixture(autouse=True)
def _fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limit of `many` to a tenth: the test writes a story for each thread."""
    kind = importlib.import_module("nptltrace.findings.time.thread_churn")
    monkeypatch.setattr(kind, "_MANY", 500)


def churn(tmp_path: Path, *lives: tuple[int, int], sites: int = 1) -> list[Finding]:
    """Check a program that creates threads and waits for the end of each.

    Args:
        tmp_path: Where the trace goes.
        lives: Numbers of threads, and how long these threads live.
        sites: Number of call sites that create the threads, by turns.
    """
    story = Story()
    tids = iter(range(MAIN + 1, 10**6))
    for count, ns in lives:
        for n in range(count):
            tid = next(tids)
            story.create(tid, site=CREATES + n % sites).sleep(ns).ended_and_joined(tid)
    findings = story.exit().findings(tmp_path)
    return [finding for finding in findings if finding.kind == "thread-churn"]


def test_a_thread_for_every_entry(tmp_path: Path) -> None:
    [found] = churn(tmp_path, (600, 20 * US))
    assert found.severity == "warning"
    assert found.threads == [MAIN]
    assert "created 600 threads" in found.message
    assert "600 lived for less than 100 us" in found.message
    assert len(found.sites) == len(found.events) == 1


def test_few_threads(tmp_path: Path) -> None:
    assert not churn(tmp_path, (400, 20 * US))


def test_threads_that_work_for_longer(tmp_path: Path) -> None:
    assert not churn(tmp_path, (600, 200 * US))


def test_most_threads_of_a_call_site_work_for_longer(tmp_path: Path) -> None:
    assert not churn(tmp_path, (510, 20 * US), (600, 200 * US))


def test_threads_of_several_call_sites(tmp_path: Path) -> None:
    assert not churn(tmp_path, (900, 20 * US), sites=3)
