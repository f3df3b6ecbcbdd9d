"""What an engineer does with a trace: follows a lock, lists and compares waits, arranges rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder
from tests.ui.made import MS, A, B, free, process, taken, waits
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look

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
    made.thread(4, [waits(60, A, 2, 7), taken(80, A, 7, 20), free(85, A, 8)])
    names = {1: "holder", 2: "waiter", 3: "other", 4: "late"}
    made.processes = process(0, names)
    return made.write()


@pytest.fixture(scope="module")
def study_url(ptt: Ptt, study: Path) -> Iterator[str]:
    with serving(ptt, study) as url:
        yield url


def test_a_lock_is_lit_in_the_rows_of_all_threads(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url, color_scheme="light") as look:
        locks = look.page.locator("section[aria-label=Locks] .name.row")
        locks.filter(has_text="404040").click()
        look.wait_for(IS_LIT, ["lit-wanted", "holder,waiter"])
        look.wait_for(IS_LIT, ["lit-held", "late"])
        # Where it was waited for has a frame, and holds that are wide as well.
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,waiter"])
        look.shot("lit")
        # What the pointer is at has frames, beside what is selected.
        locks.filter(has_text="404080").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,other,waiter"])
        look.page.locator("h1").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,waiter"])
        look.press("Escape")
        look.wait_for(IS_LIT, ["lit-wanted", ""])


def lengths(look: Look) -> list[int]:
    return [int(row["dur_ns"]) // MS for row in look.grid("Waits")]


def listed(look: Look, *expected: int) -> None:
    """Wait until waits of these lengths in ms are listed."""
    look.wait_for(
        """expected => [...document.querySelectorAll('#panel-waits [data-column=dur_ns]')]
             .map(cell => Math.floor(cell.dataset.value / 1e6)).join() === expected""",
        ",".join(str(ms) for ms in expected),
    )


def test_waits_are_listed_by_length_range_and_lock(browser: Browser, study_url: str) -> None:
    with opened(browser, f"{study_url}#tab=waits") as look:
        assert lengths(look) == [30, 20]
        look.page.fill("#waits-least", "25 ms")
        listed(look, 30)
        # A number alone is no length, and changes nothing.
        look.page.fill("#waits-least", "25")
        look.page.locator("#waits-least[aria-invalid=true]").wait_for()
        look.page.fill("#waits-least", "")
        listed(look, 30, 20)
        look.shot("waits")
        look.page.get_by_role("button", name="Since").click()
        assert lengths(look) == [30, 20]
        look.page.get_by_role("button", name="Since").click()
        assert lengths(look) == [20, 30]
        look.page.locator("#panel-waits .rows .table-row", has_text="late").click()
        look.wait_for_address("sel=wait")
        look.wait_for_width(20 * MS, 30 * MS)
        # From what is said of a wait to those like it.
        look.page.get_by_role("button", name="Waits of this thread").click()
        listed(look, 20)
        look.wait_for_address("w.thread=")
        look.page.get_by_role("button", name="No longer only late").click()
        listed(look, 20, 30)


def test_waits_of_a_mark_have_their_part_of_it(browser: Browser, study_url: str) -> None:
    mark = f"mark={15 * MS}-{20 * MS}"
    with opened(browser, f"{study_url}#tab=waits&{mark}") as look:
        (row,) = look.grid("Waits")
        assert (int(row["dur_ns"]), int(row["inside_ns"])) == (30 * MS, 5 * MS)
        assert "waiter" in row["thread"]
        assert "holder" in row["owner"]


def test_the_longest_wait_of_a_row_is_a_link(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url) as look:
        look.page.locator("section[aria-label=Locks] .name.row", has_text="404040").click()
        details = look.page.locator("#details")
        details.get_by_role("button", name="30.0 ms at most").click()
        look.wait_for_address("sel=wait")
        details.get_by_text("held by").first.wait_for()
