"""The options of `ptt ui` for the first view: the marked part and the listed events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder, Event
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt


def _about(ptt: Ptt, story: Path) -> tuple[dict[str, int], str]:
    """Return the sums of the trace, and the id of a thread that waits for the lock `hot`."""
    report = json.loads(ptt("report", "--format", "json", story).stdout)
    lines = ptt("view", "--object", "hot", "--format", "jsonl", story).stdout.splitlines()
    return report, str(json.loads(lines[0])["tid"])


def test_the_served_page_begins_with_the_options(browser: Browser, ptt: Ptt, story: Path) -> None:
    report, tid = _about(ptt, story)
    middle = (report["first_ns"] + report["last_ns"]) // 2
    chosen = ("--object", "hot", "--tid", tid)
    reported = ptt("view", *chosen, story).stdout.splitlines()
    with (
        serving(ptt, "--to", f"{middle}ns", *chosen, story) as url,
        opened(browser, url) as look,
    ):
        look.wait_for_events(reported)
        address = look.wait_for_address("mark=")
        assert f"mark={report['first_ns']}-{middle}" in address
        look.panel("contention")
        look.grid("Contention")
        part = json.loads(ptt("report", "--format", "json", "--to", f"{middle}ns", story).stdout)
        totals = look.page.locator("#panel-contention .totals")
        assert totals.get_attribute("data-wait-ns") == str(part["wait_ns"])
        look.panel("events")
        look.page.get_by_role("button", name="No longer only object hot").click()
        look.wait_for("() => !location.hash.includes('f.on=')")
        look.wait_for_events(ptt("view", "--tid", tid, story).stdout.splitlines())


def test_a_page_in_a_file_begins_with_the_options(
    browser: Browser, ptt: Ptt, story: Path, tmp_path: Path
) -> None:
    _, tid = _about(ptt, story)
    chosen = ("--object", "hot", "--tid", tid)
    path = tmp_path / "begins.html"
    ptt("ui", "--export", path, *chosen, story)
    with opened(browser, path.as_uri()) as look:
        look.wait_for_events(ptt("view", *chosen, story).stdout.splitlines())
        look.page.get_by_role("button", name="No longer only object hot").click()
        look.wait_for_events(ptt("view", "--tid", tid, story).stdout.splitlines())


def test_a_page_in_a_file_begins_with_a_numbered_object(
    browser: Browser, ptt: Ptt, tmp_path: Path
) -> None:
    """The page distinguishes the second lock at an address from the first."""
    lock, start = 0x4040, 10**12
    made = Builder(tmp_path / "turns.ptt")
    events = ("MUTEX_INIT", "MUTEX_TAKEN", "MUTEX_FREE", "MUTEX_DESTROY")
    turns = [Event(start + 10 * n, name, lock, 5) for n, name in enumerate(events * 3)]
    made.thread(1, turns)
    trace, path = made.write(), tmp_path / "turns.html"
    second = ptt("view", "--object", f"{lock:#x}#2", trace).stdout.splitlines()
    assert len(second) == len(events)
    ptt("ui", "--export", path, "--object", f"{lock:#x}#2", trace)
    with opened(browser, path.as_uri()) as look:
        look.wait_for_events(second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--object", "no_such"), "no global variable, alias or lock is called no_such"),
        (("--tid", "first"), "--tid takes numbers, not 'first'"),
        (("--pid", "1", "--pid", "2"), "--pid once, with commas between alternatives"),
    ],
)
def test_bad_choices_are_refused(
    ptt: Ptt, story: Path, options: tuple[str, ...], message: str
) -> None:
    done = ptt("ui", "--no-browser", *options, story, status=2)
    assert done.stderr.startswith(f"ptt: error: {message}")
    assert done.stdout == ""
