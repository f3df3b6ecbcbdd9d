"""The page for everybody: axe-core finds nothing serious in any panel, in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ui.page import opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

PANELS = (
    "events", "contention", "flame", "findings", "statistics", "order", "critical", "losses",
)  # fmt: skip
# The policy of the page allows no other scripts, so the debugger runs axe-core.
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => one.id + ": " + one.nodes.map(node => node.target.join(" ")).join(", "));
}"""
# Whether the rows are sorted as a column says.
SORTED = """(grid, number) => {
  const head = grid.querySelectorAll("[role=columnheader]")[number];
  const sign = head.ariaSort === "ascending" ? 1 : -1;
  const cells = [...grid.querySelectorAll(".rows .table-row")].map(row => row.children[number]);
  return cells.slice(1).every((cell, at) => {
    const [x, y] = [cells[at].dataset.value, cell.dataset.value];
    const more = cell.classList.contains("number")
      ? y - x
      : y.localeCompare(x, undefined, { numeric: true });
    return sign * more >= 0;
  });
}"""


@pytest.fixture(scope="module")
def axe(node_packages: Path) -> str:
    return (node_packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, story_url: str, axe: str, theme: str) -> None:
    with opened(browser, f"{story_url}#theme={theme}") as look:
        look.page.wait_for_selector(".events-body .table-row")
        look.page.evaluate(axe)
        found = {}
        for panel in PANELS:
            look.panel(panel)
            look.page.locator(f"#panel-{panel} .asking").first.wait_for(state="hidden")
            found[panel] = look.page.evaluate(RUN)
        look.panel("contention")
        look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
        look.wait_for_address("sel=wait")
        found["details"] = look.page.evaluate(RUN)
        look.press("?")
        found["help"] = look.page.evaluate(RUN)
        assert {name: one for name, one in found.items() if one} == {}


@pytest.mark.parametrize("width", [760, 480, 360])
def test_a_narrow_window_shows_all_parts(browser: Browser, story_url: str, width: int) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, f"{story_url}#tab=events", viewport=size) as look:
        for panel in PANELS:
            look.panel(panel)  # its tab can be reached
        # The details are below, so the timeline and the panels have the full width.
        for part in ("#timeline", "#dock", "#details"):
            box = look.page.locator(part).bounding_box()
            assert box is not None
            assert (box["x"], box["width"]) == (0, width)
        for button in look.page.locator(".topbar button").all():
            box = button.bounding_box()
            assert box is None or box["x"] + box["width"] <= width
        look.shot(f"narrow-{width}")


def test_a_small_window_opens_with_its_rows(browser: Browser, story_url: str) -> None:
    context = browser.new_context(viewport={"width": 800, "height": 600})
    try:
        page = context.new_page()
        page.goto(story_url)
        page.locator(".name.row").nth(4).wait_for()
        assert not page.locator("#details").is_visible()
        assert not page.locator(".dock-panels").is_visible()
        page.click("#tab-findings")
        page.locator("#panel-findings").wait_for()
    finally:
        context.close()


def test_the_help_has_keys_gestures_and_words(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        look.press("?")
        text = look.page.locator("dialog#help").inner_text()
        for part in ("Zoom in", "Shift+drag", "Ctrl+wheel", "contended", "idle", "critical path"):
            assert part in text


def test_reduced_motion_is_respected(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url, reduced_motion="reduce") as look:
        look.panel("contention")
        look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
        # The view reaches its goal in one step: no address in between is written.
        first = look.wait_for_address("t=")
        assert first == look.wait_for_address("sel=wait")


def test_screen_readers_get_messages(browser: Browser, story_url: str, tmp_path: Path) -> None:
    with opened(browser, story_url) as look:
        look.page.wait_for_selector(".events-body .table-row")
        look.page.locator(".events-body .table-row").nth(3).click()
        look.wait_for("() => /thread/.test(document.getElementById('live').textContent)")
        look.wait_for(
            """() => {
                const grid = document.querySelector('[role=grid][aria-label=Events]');
                const active = document.getElementById(grid.getAttribute('aria-activedescendant'));
                return active?.getAttribute('aria-selected') === 'true';
            }"""
        )


def test_tables_announce_their_order(browser: Browser, story_url: str) -> None:
    """The order is right for texts, times and lengths, at the first click and the second."""
    with opened(browser, f"{story_url}#tab=critical") as look:
        for label in ("Threads of the critical path", "Pieces of the critical path"):
            grid = look.page.get_by_role("grid", name=label, exact=True)
            look.grid(label)
            heads = grid.get_by_role("columnheader")
            message = heads.evaluate_all("heads => heads.map(head => head.ariaSort)")
            assert sum(one != "none" for one in message) == 1
            for number in range(heads.count()):
                orders = set()
                for _ in range(2):
                    heads.nth(number).get_by_role("button").click()
                    orders.add(heads.nth(number).get_attribute("aria-sort"))
                    assert grid.evaluate(SORTED, number), (label, number, orders)
                assert orders == {"ascending", "descending"}


def test_the_legend_opens_in_a_narrow_window(browser: Browser, story_url: str) -> None:
    """If the legend has no room in a line, a button opens it, and no entry is cut."""
    with opened(browser, story_url) as look:
        look.page.get_by_text("not waiting", exact=True).first.wait_for()
        assert look.page.get_by_role("button", name="Legend").count() == 0
        look.page.set_viewport_size({"width": 700, "height": 700})
        entries = look.page.locator("#legend-threads li:not([hidden])")
        assert not entries.first.is_visible()
        look.page.get_by_role("button", name="Legend").first.click()
        for entry in entries.all():
            box = entry.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 700
            assert box["y"] + box["height"] <= 700
        look.press("Escape")
        entries.first.wait_for(state="hidden")
