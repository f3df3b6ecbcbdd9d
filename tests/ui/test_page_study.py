"""Work with a trace: follow a lock, list and compare waits, arrange rows."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder, Event
from tests.ui.made import MS, T0, A, B, free, process, taken, waits
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look

# Names of the threads with a highlight colour over the spans of their rows.
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
    """Trace of a lock with waiters during its holds, and of a lock without waiters."""
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


def test_a_lock_is_highlighted_in_the_rows_of_all_threads(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url, color_scheme="light") as look:
        locks = look.page.locator("section[aria-label=Locks] .name.row")
        locks.filter(has_text="404040").click()
        look.wait_for(IS_LIT, ["lit-wanted", "holder,waiter"])
        look.wait_for(IS_LIT, ["lit-held", "late"])
        # Waits for the lock have frames, and so do wide holds.
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,waiter"])
        look.shot("lit")
        # The lock under the pointer gets frames, beside the selected lock.
        locks.filter(has_text="404080").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,other,waiter"])
        look.page.locator("h1").hover()
        look.wait_for(IS_LIT, ["lit-frame", "holder,late,waiter"])
        look.press("Escape")
        look.wait_for(IS_LIT, ["lit-wanted", ""])


def ended(ms: int) -> Event:
    return Event(T0 + ms * MS, "THREAD_END")


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
        # A number alone is not a length, and changes nothing.
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
        # From the details of a wait to similar waits.
        look.page.get_by_role("button", name="Waits of this thread").click()
        listed(look, 20)
        look.wait_for_address("w.thread=")
        look.page.get_by_role("button", name="No longer only late").click()
        listed(look, 20, 30)


def test_waits_have_their_part_inside_the_mark(browser: Browser, study_url: str) -> None:
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


def test_two_marks_are_compared(browser: Browser, ptt: Ptt, study: Path, study_url: str) -> None:
    first, second = (0, 20 * MS), (60 * MS, 100 * MS)
    reported = [
        json.loads(
            ptt("report", "--format", "json", "--from", f"{a}ns", "--to", f"{b}ns", study).stdout
        )
        for a, b in (first, second)
    ]
    with opened(browser, f"{study_url}#mark={first[0]}-{first[1]}&tab=compare") as look:
        look.page.get_by_text("their sums appear here").wait_for()
        look.press("n")
        look.wait_for_address(f"other={first[0]}-{first[1]}")
        look.page.evaluate(
            "range => { location.hash += `&mark=${range}`; }", "-".join(map(str, second))
        )
        look.wait_for(
            "() => document.querySelectorAll('#panel-compare .part b')[1]?.textContent === 'B'"
        )
        rows = {row["label"]: row for row in look.grid("Compare")}
        for side, report in zip("ab", reported, strict=True):
            for item in report["objects"]:
                row = rows[f"{item['kind']} {item['name'] or item['object']}"]
                assert int(row[f"{side}_wait_ns"]) == item["wait_ns"]
                assert int(row[f"{side}_hold_ns"]) == item["hold_ns"]
        for row in rows.values():
            assert int(row["more_wait_ns"]) == int(row["b_wait_ns"]) - int(row["a_wait_ns"])
        look.shot("compare")
        look.page.get_by_role("button", name="Swap A and B").click()
        look.wait_for_address(f"other={second[0]}-{second[1]}")


def test_views_go_back_and_forward(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url) as look:
        before = look.page.url
        look.page.locator("section[aria-label=Locks] .name.row", has_text="404040").click()
        look.wait_for_address("sel=object")
        look.panel("waits")
        # At once: a change that is not in the address yet is a step, too.
        look.press("Control+z")
        look.wait_for("() => !location.hash.includes('tab=') && location.hash.includes('sel=')")
        look.press("Control+z")
        look.wait_for("() => !location.hash.includes('sel=')")
        # There is no earlier view to go back to: the page stays.
        look.press("Control+z", "Control+z")
        look.press("Control+Shift+Z")
        look.wait_for_address("sel=object")
        look.press("Control+Shift+Z")
        look.wait_for_address("tab=waits")
        assert look.page.url.startswith(before)


def test_the_timeline_is_saved_as_a_picture_and_tables_as_csv(
    browser: Browser, study_url: str
) -> None:
    with opened(browser, f"{study_url}#tab=waits&sel=object:1") as look:
        look.grid("Waits")
        with look.page.expect_download() as saved:
            look.press("p")
        assert saved.value.suggested_filename == "study.ptt.png"
        picture = saved.value.path().read_bytes()
        assert picture.startswith(b"\x89PNG")
        width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
        box = look.page.locator("#timeline").bounding_box()
        assert box
        assert width == pytest.approx(box["width"], abs=2)
        assert height > box["height"]
        with look.page.expect_download() as saved:
            look.page.locator("#panel-waits").get_by_role("button", name="Save as CSV").click()
        with saved.value.path().open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [int(row["dur_ns"]) for row in rows] == [30 * MS, 20 * MS]
        assert rows[0]["thread"] == "waiter (2)"


ROWS = """title => {
    const pane = document.querySelector(`section[aria-label=${title}]`);
    const top = row => new DOMMatrix(getComputedStyle(row).transform).m42;
    return [...pane.querySelectorAll('.name')].sort((a, b) => top(a) - top(b))
        .map(row => row.querySelector('.label').textContent.replace(/ .*/, '')).join();
}"""
ARE_ROWS = f"([title, names]) => ({ROWS})(title) === names"


def test_rows_are_shown_alone_pinned_hidden_and_moved(browser: Browser, study_url: str) -> None:
    with opened(browser, study_url) as look:

        def do(name: str, what: str) -> None:
            label = look.page.locator("section[aria-label=Threads] .label", has_text=name)
            label.click(button="right")
            look.page.get_by_role("menuitem", name=what, exact=True).click()

        shown = "Threads"
        look.wait_for(ARE_ROWS, [shown, "waiter,late,other,holder"])
        do("late", "Pin to the top")
        look.wait_for(ARE_ROWS, [shown, "late,waiter,other,holder"])
        do("holder", "Pin to the top")
        do("holder", "Move up")
        look.wait_for(ARE_ROWS, [shown, "holder,late,waiter,other"])
        look.wait_for_address("pinned=")
        do("other", "Hide")
        look.wait_for(ARE_ROWS, [shown, "holder,late,waiter"])
        do("holder", "Unpin")
        do("waiter", "Only this")
        look.wait_for(ARE_ROWS, [shown, "late,waiter"])
        look.shot("arranged")
        look.page.get_by_role("button", name="2 hidden: show").click()
        look.wait_for(ARE_ROWS, [shown, "late,waiter,other,holder"])
        # The keyboard opens the menu, too. After the menu, the focus is where it was.
        look.page.locator("section[aria-label=Locks] [role=tree]").focus()
        look.press("ArrowDown", "Shift+F10", "ArrowDown", "Enter")
        look.wait_for("() => location.hash.includes('object%3A2')")
        tree = "document.activeElement.getAttribute('role') === 'tree'"
        look.wait_for(f"() => {tree}")
        look.press("ContextMenu")
        look.page.get_by_role("menuitem", name="Unpin").wait_for()
        look.press("Escape")
        look.page.get_by_role("menu").wait_for(state="hidden")


def test_rows_are_copied_grouped_and_filtered_by_lifetime(
    browser: Browser, ptt: Ptt, tmp_path: Path
) -> None:
    made = Builder(tmp_path / "groups.ptt")
    made.thread(1, [taken(0, A, 1), free(100, A, 2)])
    made.thread(2, [taken(1, B, 1), free(10, B, 2), ended(11)])
    made.thread(3, [taken(50, B, 1), free(90, B, 2)])
    made.processes = process(0, {1: "main", 2: "worker-1", 3: "worker-2"})
    with (
        serving(ptt, made.write()) as url,
        opened(
            browser,
            f"{url}#t={60 * MS}-{80 * MS}",
            permissions=["clipboard-read", "clipboard-write"],
        ) as look,
    ):
        row = look.page.locator("section[aria-label=Threads] .name.row", has_text="worker-2")
        row.click(button="right")
        look.page.get_by_role("menuitem", name="Copy name").click()
        look.wait_for("() => navigator.clipboard.readText().then(text => text === 'worker-2')")
        look.page.click("#byName")
        group = look.page.locator("section[aria-label=Threads] .name.group", has_text="worker-*")
        group.wait_for()
        look.page.click("#inView")
        group.wait_for(state="detached")
        look.wait_for(ARE_ROWS, ["Threads", "main,worker-2"])
        look.press("v")
        group.click()
        look.wait_for(ARE_ROWS, ["Threads", "main,worker-*"])


def test_a_link_opens_the_same_view_in_another_browser(browser: Browser, study_url: str) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    with opened(browser, f"{study_url}#sel=object:1&tab=waits", permissions=rights) as look:
        look.page.click("#share")
        look.page.get_by_text("Copied a link").wait_for()
        link = str(look.page.evaluate("navigator.clipboard.readText()"))
        with opened(browser, link) as other:
            other.page.locator("#details").get_by_text("404040").first.wait_for()
            assert "token" not in other.page.url
            assert other.page.get_attribute("#tab-waits", "aria-selected") == "true"


def test_a_deadlock_is_shown_in_all_its_rows(browser: Browser, ptt: Ptt, tmp_path: Path) -> None:
    made = Builder(tmp_path / "cycle.ptt")
    made.thread(1, [taken(0, A, 1), waits(20, B, 2, 2)])
    made.thread(2, [taken(5, B, 3), waits(10, A, 1, 4)])
    made.thread(3, [taken(0, 0x405000, 5), free(200, 0x405000, 6)])
    made.processes = process(0, {1: "one", 2: "two", 3: "busy"})
    with (
        serving(ptt, made.write()) as url,
        opened(browser, f"{url}#tab=findings", color_scheme="light") as look,
    ):
        look.page.get_by_role("button", name="Show me").first.click()
        look.wait_for(IS_LIT, ["lit-wanted", "one,two"])
        chosen = look.page.locator(".name.row[aria-selected=true]")
        names = sorted(name.split()[0] for name in chosen.locator(".label").all_inner_texts())
        assert names == ["mutex", "mutex", "one", "two"]
        look.shot("cycle")


# ---- locks over time, and two runs ----


def workload(path: Path, lengths: list[int]) -> Path:
    """Write a trace of a lock with a hold of each length, in ms, every 20 ms, and equal waits."""
    holder, waiter = [], []
    for n, length in enumerate(lengths):
        begin, passed = 20 * n, 20 * n + length
        holder += [taken(begin, A, 1), free(passed, A, 2)]
        waiter += [waits(begin, A, 1, 3), taken(passed, A, 3, length), free(passed + length, A, 4)]
    made = Builder(path)
    made.thread(1, holder)
    made.thread(2, waiter)
    made.processes = process(0, {1: "holder", 2: "waiter"})
    return made.write()


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trace with holds of 2 and 3 ms, and from 2 s on with holds of 8 and 9 ms."""
    lengths = [2, 3] * 50 + [8, 9] * 50
    return workload(tmp_path_factory.mktemp("worse") / "worse.ptt", lengths)


def test_a_slower_lock_is_shown_first_and_leads_to_a_comparison(
    browser: Browser, ptt: Ptt, worse: Path
) -> None:
    with serving(ptt, worse) as url, opened(browser, url) as look:
        details = look.page.locator("#details")
        details.get_by_text("Changed during the run").wait_for()
        details.get_by_role("button", name="waits: 2.50 ms → 8.50 ms").wait_for()
        details.get_by_role("button", name="from 2.000 000 000 s on").first.click()
        look.wait_for_address(f"mark={2000 * MS}-")
        look.wait_for_address(f"other=0-{2000 * MS}")


def test_a_lock_over_time(browser: Browser, ptt: Ptt, worse: Path, tmp_path: Path) -> None:
    exported = tmp_path / "page.html"
    ptt("ui", "--export", exported, worse)
    with serving(ptt, worse) as served:
        for url in (served, exported.as_uri()):
            with opened(browser, f"{url}#tab=over-time") as look:
                panel = look.page.locator("#panel-over-time")
                (lock,) = look.grid("Locks over time")
                assert int(lock["wait_ns"]) == (5 * 50 + 17 * 50) * MS
                assert int(lock["changes"]) == 2
                assert panel.locator("svg .change").count() == 4 * 2
                charts = panel.get_by_role("group", name="Over time")
                said = charts.get_by_role("status")
                assert "404040 · waited 1.10 s in 200 waits" in said.inner_text()
                charts.focus()
                look.press("End")
                assert "held 29.3 ms, 4 holds" in said.inner_text()
                assert "median 8" in said.inner_text()
                look.shot("over-time")
                if url == served:
                    look.press("Enter")
                    look.wait_for_address("mark=")
                    look.wait_for(
                        """() => document.querySelector(
                            '#panel-over-time [data-column=wait_ns]').dataset.value < 1e8"""
                    )


def test_a_run_is_compared_with_an_earlier_run(
    browser: Browser, ptt: Ptt, worse: Path, tmp_path: Path
) -> None:
    before = workload(tmp_path / "before.ptt", [2, 3] * 60)
    exported = tmp_path / "page.html"
    ptt("ui", "--export", exported, "--before", before, worse)
    found = json.loads(ptt("diff", "--by", "object", "--format", "json", before, worse).stdout)
    (row,) = found["rows"]
    with serving(ptt, worse, "--before", before) as served:
        for url in (served, exported.as_uri()):
            with opened(browser, f"{url}#tab=compare") as look:
                panel = look.page.locator("#panel-compare")
                panel.get_by_text("A, before.ptt").wait_for()
                (shown,) = look.grid("Compare")
                for name in ("wait_ns", "hold_ns", "waits"):
                    assert float(shown[f"a_{name}"]) == row["metrics"][name]["before"]
                    assert float(shown[f"b_{name}"]) == row["metrics"][name]["after"]
                look.shot("two-runs")
                look.page.check("#compare-rate")
                look.wait_for(
                    "was => document.querySelector('#panel-compare [data-column=b_waits]')"
                    ".dataset.value !== was",
                    shown["b_waits"],
                )
                (rated,) = look.grid("Compare")
                assert float(rated["b_waits"]) == pytest.approx(
                    row["metrics"]["waits"]["after"] / (found["runs_after"][0]["elapsed_ns"] / 1e9)
                )
                look.page.select_option("#compare-with", "mark")
                panel.get_by_text("their sums appear here").wait_for()
                look.page.select_option("#compare-with", "run")
                look.page.select_option("#compare-by", "site")
                panel.get_by_role("row").nth(1).click()
                look.wait_for_address("w.site=")


def test_another_level_of_the_earlier_run_is_reported(
    browser: Browser, ptt: Ptt, worse: Path, tmp_path: Path
) -> None:
    before = workload(tmp_path / "before.ptt", [2, 3] * 60)
    session = before / "info" / "session.json"
    session.write_text(json.dumps({**json.loads(session.read_text()), "level": "1"}))
    with serving(ptt, worse, "--before", before) as url, opened(browser, url) as look:
        look.page.get_by_role("tab", name="Losses").click()
        look.page.get_by_text("recorded at another level (1 and 2)").first.wait_for()
