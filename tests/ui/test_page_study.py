"""What an engineer does with a trace: follows a lock, lists and compares waits, arranges rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder
from tests.ui.made import A, B, free, process, taken, waits
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt

# Names of the threads in whose rows a colour lies over the spans.
LIT = """token => {
    const text = getComputedStyle(document.documentElement).getPropertyValue('--' + token).trim();
    const colour = [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
    const pane = document.querySelector('section[aria-label=Threads]');
    const canvas = pane.querySelector('canvas.over');
    return [...pane.querySelectorAll('.name.row')].filter(row => {
        const box = new DOMMatrix(getComputedStyle(row).transform);
        const { data } = canvas.getContext('2d')
            .getImageData(0, box.m42, canvas.width, row.offsetHeight - 2);
        for (let at = 0; at < data.length; at += 4)
            if (data[at + 3] === 255 && colour.every((v, n) => data[at + n] === v)) return true;
        return false;
    }).map(row => row.querySelector('.label').textContent.replace(/ .*/, '')).sort();
}"""
IS_LIT = f"([token, names]) => ({LIT})(token).join() === names"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trace of a lock that is wanted while it is held, and of one that nobody wants."""
    made = Builder(tmp_path_factory.mktemp("study") / "study.ptt")
    made.thread(1, [taken(0, A, 1), free(40, A, 2)])
    made.thread(2, [waits(10, A, 1, 3), taken(40, A, 3, 30), free(80, A, 4)])
    made.thread(3, [taken(0, B, 5), free(90, B, 6), taken(95, B, 5), free(100, B, 6)])
    made.processes = process(0, {1: "holder", 2: "waiter", 3: "other"})
    return made.write()


@pytest.fixture(scope="module")
def study_url(ptt: Ptt, study: Path) -> Iterator[str]:
    with serving(ptt, study) as url:
        yield url


def test_a_lock_is_lit_in_the_rows_of_all_threads(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url, color_scheme="light") as look:
        locks = look.page.locator("section[aria-label=Locks] .name.row")
        locks.filter(has_text="404040").click()
        look.wait_for(IS_LIT, ["lit-wanted", "holder"])
        look.wait_for(IS_LIT, ["lit-held", "waiter"])
        # Where it was waited for has a frame, and holds that are wide as well.
        look.wait_for(IS_LIT, ["lit-frame", "holder,waiter"])
        look.shot("lit")
        # What the pointer is at has frames, beside what is selected.
        locks.filter(has_text="404080").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,other,waiter"])
        look.page.locator("h1").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,waiter"])
        look.press("Escape")
        look.wait_for(IS_LIT, ["lit-wanted", ""])
