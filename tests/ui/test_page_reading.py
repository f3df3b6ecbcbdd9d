"""The page for a reader: waits of rows, whole cycles, texts that are not cut or mixed."""

from __future__ import annotations

import re
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
    from tests.ui.page import Look

PANELS = (
    "events", "contention", "flame", "findings", "statistics", "order", "critical", "losses",
)  # fmt: skip
# The place of each text that was written on a canvas since the canvas was cleared.
WRITTEN = """() => {
    window.written = new Map();
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        window.written.set(this.canvas, []);
        clearRect.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const all = window.written.get(this.canvas);
        all?.push([text, x, x + this.measureText(text).width]);
        fillText.call(this, text, x, y);
    };
}"""
SHOW = """hash => {
    window.written.clear();
    location.hash = hash;
}"""
RULED = """() => {
    const texts = window.written.get(document.querySelector('.ruler canvas'));
    return texts?.length > 2 && texts;
}"""
# Colours of a line of the overview, without the handles at its ends.
STRIP = """share => {
    const canvas = document.querySelector('#overview canvas');
    const y = Math.round(canvas.height * share);
    const { data } = canvas.getContext('2d').getImageData(8, y, canvas.width - 16, 1);
    const found = new Set();
    for (let at = 0; at < data.length; at += 4) {
        found.add([...data.slice(at, at + 3)].map(v => v.toString(16).padStart(2, '0')).join(''));
    }
    return [...found];
}"""
TOKENS = """names => names.map(name => getComputedStyle(document.documentElement)
    .getPropertyValue('--' + name).trim().slice(1))"""
# The text in the clipboard after all rows of a table were selected and copied.
COPY = """grid => {
    getSelection().selectAllChildren(grid.querySelector('.rows'));
    const copied = new DataTransfer();
    const event = { clipboardData: copied, bubbles: true, cancelable: true };
    grid.dispatchEvent(new ClipboardEvent('copy', event));
    return copied.getData('text/plain');
}"""
SMALL = """() => [...document.querySelectorAll('button:not(.link, .time), input, select')]
    .filter(one => one.offsetParent && !one.closest('.table'))
    .map(one => [one.id || one.className || one.textContent, one.getBoundingClientRect()])
    .filter(([, box]) => box.width < 24 || box.height < 24).map(([name]) => name)"""


@pytest.fixture(scope="module")
def cycle_url(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt) -> Iterator[str]:
    """Viewer of two threads that wait for each other to the end of the trace."""
    made = Builder(tmp_path_factory.mktemp("cycle") / "cycle.ptt")
    made.thread(1, [taken(0, A, 1), waits(20, B, 2, 2)])
    made.thread(2, [taken(5, B, 3), waits(10, A, 1, 4)])
    # This thread makes the trace longer: 1237 ms are not a whole number of pixels.
    made.thread(3, [e for n in range(1237) for e in (taken(n, 0x405000, 5), free(n, 0x405000, 6))])
    made.processes = process(0, {1: "one", 2: "two", 3: "busy"})
    with serving(ptt, made.write()) as url:
        yield url


def test_a_row_leads_to_its_longest_wait(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        details = look.page.locator("#details")
        details.get_by_role("button", name="outer").first.click()
        details.get_by_role("button", name="Show its longest wait").click()
        look.wait_for_address("sel=wait")
        details.get_by_text("Because of").wait_for()
        assert "middle" in details.inner_text()
        assert "story.c:" in details.inner_text()


def test_a_deadlock_is_shown_as_a_cycle(browser: Browser, cycle_url: str) -> None:
    with opened(browser, f"{cycle_url}#tab=findings") as look:
        card = look.page.locator("#panel-findings .card", has_text="deadlock")
        card.get_by_role("button", name="Show me").click()
        details = look.page.locator("#details")
        details.get_by_text("a deadlock").wait_for()
        message = details.inner_text()
        assert "one" in message
        assert "two" in message


def test_cells_are_copied_as_a_table(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#tab=contention") as look:
        rows = look.grid("Contention")
        grid = look.page.get_by_role("grid", name="Contention", exact=True)
        lines = [line.split("\t") for line in str(grid.evaluate(COPY)).split("\n")]
        assert [line[0] for line in lines] == [row["label"] for row in rows]
        assert {len(line) for line in lines} == {grid.get_by_role("columnheader").count()}


@pytest.mark.parametrize("width", [1024, 1600, 3840])
def test_call_sites_are_not_cut(browser: Browser, story_url: str, width: int) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, f"{story_url}#tab=contention", viewport=size) as look:
        look.page.select_option("#contention-by", "site")
        sites = look.page.locator("#panel-contention .rows [data-column=label]")
        sites.filter(has_text="story.c:").first.wait_for()
        cut = sites.evaluate_all(
            """cells => cells.filter(cell => [cell, ...cell.children].some(
                one => one.scrollWidth > one.clientWidth && one.clientWidth)).length"""
        )
        assert cut == 0
        # On a wide screen, the names and their figures are not far apart.
        assert sites.first.bounding_box()["width"] <= 0.4 * width  # type: ignore[index]


def test_the_overview_has_only_colours_of_states(browser: Browser, cycle_url: str) -> None:
    size = {"width": 1333, "height": 800}
    with opened(browser, cycle_url, viewport=size, color_scheme="light") as look:
        look.page.locator(".name.row", has_text="busy").wait_for()
        look.wait_for(f"share => ({STRIP})(share).length > 1", 0.55)
        names = ["state-contended", "state-not-waiting", "state-idle", "bg-sunken"]
        known = set(look.page.evaluate(TOKENS, names))
        for share in (0.4, 0.55, 0.7, 0.9):
            found = set(look.page.evaluate(STRIP, share))
            assert len(found) <= 2, found
            assert found <= known, (share, found)


def test_times_of_the_ruler_are_complete_and_do_not_touch(browser: Browser, cycle_url: str) -> None:
    with opened(browser, f"{cycle_url}#mark=300000000-500000000", reduced_motion="reduce") as look:
        look.page.locator(".name.row", has_text="busy").wait_for()
        look.page.evaluate(WRITTEN)
        for view in (
            "1000-1236000000", "333333333-350000000", "400000000-400090000", "99999999-1200000003",
        ):  # fmt: skip
            look.page.evaluate(SHOW, f"t={view}")
            texts = look.page.wait_for_function(RULED).json_value()
            width = look.page.evaluate("document.querySelector('.ruler canvas').clientWidth")
            ends = -1.0
            for text, begin, end in sorted(texts, key=lambda one: one[1]):
                assert begin >= ends, (view, text, texts)
                assert end <= width, (view, text)
                ends = end
            units = {text.split()[-1] for text, *_ in texts if text.startswith("+")}
            assert len(units - {"+"}) <= 1, texts


def test_words_are_the_same_in_all_panels(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        for panel in PANELS:
            look.panel(panel)
            asking = look.page.locator(f"#panel-{panel} .asking")
            if asking.count():
                asking.first.wait_for(state="hidden")
            message = look.page.locator(f"#panel-{panel}").inner_text()
            assert not re.search(r"\d us\b", message), panel
            assert not re.search(r"0x[0-9a-f]+ \(\d+\)", message), panel
            assert message.count("ends of threads") <= 1, message
        assert look.page.evaluate(SMALL) == []
        chosen = "getComputedStyle(document.querySelector('.name.row .label')).userSelect"
        assert look.page.evaluate(chosen) == "text"


def test_a_panel_without_findings_names_the_kinds(
    browser: Browser, ptt: Ptt, tmp_path: Path
) -> None:
    made = Builder(tmp_path / "two.ptt")
    for index in (0, 1):
        tid = 1 + index
        made.thread(tid, [taken(0, A, 1), free(1, A, 2)], pid=100 + index, process=index)
        made.processes += process(index, {tid: "same"})
    trace = made.write()
    aliases = tmp_path / "aliases"
    aliases.write_text(f"{A:#x} twin\n")
    with serving(ptt, "--alias", aliases, trace) as url, opened(browser, url) as look:
        look.panel("findings")
        look.page.get_by_text("Nothing found of:").wait_for()
        message = look.page.locator("#panel-findings").inner_text()
        for kind in ("deadlock", "lock-order-inversion", "lost-wakeup", "stuck", "long-hold"):
            assert kind in message
        # Two things with the same name can be distinguished.
        for text in ("twin", "same"):
            hits(look, text)


def hits(look: Look, text: str) -> None:
    """Search for the name of two things, and check that each hit shows its kind."""
    look.page.fill("#search-text", text)
    found = look.page.locator("#search-hits .hit", has_text=text)
    found.nth(1).wait_for()
    message = found.all_inner_texts()
    assert len(message) == len(set(message)) == 2, message
    look.press("Escape")
