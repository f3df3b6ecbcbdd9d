"""The viewer as a user sees it: real numbers, holders, filters, addresses, themes, keys."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.page import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look


@pytest.fixture
def look(browser: Browser, story_url: str) -> Iterator[Look]:
    with opened(browser, story_url) as found:
        found.page.wait_for_selector(".events-body .table-row")
        yield found


def report(ptt: Ptt, trace: Path, *options: str) -> Any:
    return json.loads(ptt("report", "--format", "json", *options, trace).stdout)


def named(item: dict[str, Any]) -> str:
    name = item["object_name"] if "thread_name" in item else item["name"]
    return f"{item['kind']} {name or item['object']}"


COLUMNS = (
    "wait_ns",
    "held_ns",
    "wake_ns",
    "waits",
    "wait_max_ns",
    "idle_ns",
    "holds",
    "hold_ns",
    "hold_max_ns",
)


def same_numbers(shown: dict[str, str], reported: dict[str, Any]) -> bool:
    return {column: int(shown[column]) for column in COLUMNS} == {c: reported[c] for c in COLUMNS}


# ---- numbers ----


def test_contention_agrees_with_the_report(look: Look, ptt: Ptt, story: Path) -> None:
    reported = report(ptt, story)
    look.panel("contention")
    rows = {row["label"]: row for row in look.grid("Contention")}
    for item in reported["objects"]:
        assert same_numbers(rows[named(item)], item)
        caused = sum(one["wait_caused_ns"] for one in item["blamed"])
        assert int(rows[named(item)]["caused"]) == caused
    totals = look.page.locator("#panel-contention .totals")
    assert totals.get_attribute("data-wait-ns") == str(reported["wait_ns"])
    assert totals.get_attribute("data-waits") == str(reported["waits"])
    look.shot("contention")


def test_contention_by_thread_site_and_pair(look: Look, ptt: Ptt, story: Path) -> None:
    look.panel("contention")
    look.grid("Contention")
    for by, key, label in (
        ("thread", "threads", lambda item: f"{item['tid']} {item['name']}"),
        ("site", "sites", lambda item: item["site"]),
        ("thread,object", "pairs",
         lambda item: f"{item['tid']} {item['thread_name']}, {named(item)}"),
    ):  # fmt: skip
        reported = {label(item): item for item in report(ptt, story, "--by", by)[key]}
        look.page.select_option("#contention-by", by)
        look.wait_for(
            """label => [...document.querySelectorAll('#panel-contention [data-column=label]')]
                 .some(cell => cell.dataset.value === label)""",
            next(iter(reported)),
        )
        rows = look.grid("Contention")
        assert rows
        # A call site has a line for each kind of object that it uses.
        if by != "site":
            assert all(same_numbers(row, reported[row["label"]]) for row in rows)


def test_a_mark_has_the_numbers_of_the_report(
    look: Look, ptt: Ptt, story: Path, story_url: str
) -> None:
    whole = report(ptt, story)
    middle = (whole["first_ns"] + whole["last_ns"]) // 2
    look.go(f"{story_url}#mark=0-{middle}&tab=contention")
    reported = report(ptt, story, "--to", f"{middle}ns")
    look.wait_for(
        "ns => document.querySelector('#panel-contention .totals')?.dataset.waitNs === ns",
        str(reported["wait_ns"]),
    )
    rows = {row["label"]: row for row in look.grid("Contention")}
    assert {label: int(row["hold_ns"]) for label, row in rows.items()} == {
        named(item): item["hold_ns"] for item in reported["objects"]
    }
    look.panel("statistics")
    facts = look.page.locator("#panel-statistics dd[data-fact=Contended]")
    assert facts.get_attribute("data-value") == str(reported["wait_ns"])
    look.shot("statistics")


def test_steps_to_the_same_object_need_no_event_list(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#tab=contention") as look:
        look.grid("Contention")
        look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
        look.wait_for_address("sel=wait")
        seen = [""]
        for key in ("]", "]", "["):
            look.press(key)
            look.wait_for(
                """last => {
                    const [, now] = /[#&]sel=(event[^&]*)/.exec(location.hash) ?? [];
                    return now !== undefined && now !== last;
                }""",
                seen[-1],
            )
            seen.append(look.wait_for_address("sel=event").partition("sel=")[2].partition("&")[0])
        assert seen[1] == seen[3] != seen[2]
        # The list, shown only now, is at the same event.
        look.panel("events")
        current = look.page.locator(".events-body .table-row[aria-selected=true]")
        assert "outer" in current.inner_text()


def test_a_table_is_sorted_by_any_column(look: Look) -> None:
    look.panel("contention")
    look.grid("Contention")
    for title, column in (("Holds", "holds"), ("Held", "hold_ns")):
        look.page.get_by_role("button", name=title, exact=True).click()
        values = [int(row[column]) for row in look.grid("Contention")]
        assert values == sorted(values, reverse=True)
    look.page.get_by_role("button", name="Held", exact=True).click()
    values = [int(row["hold_ns"]) for row in look.grid("Contention")]
    assert values == sorted(values)


def test_statistics_count_the_events(look: Look, ptt: Ptt, story: Path) -> None:
    reported = json.loads(ptt("stat", "--format", "json", story).stdout)
    look.panel("statistics")
    rows = {row["type"]: int(row["count"]) for row in look.grid("Events by type")}
    assert rows.items() <= reported["event_types"].items()
    facts = look.page.locator("#panel-statistics dd[data-fact=Events]")
    assert facts.get_attribute("data-value") == str(reported["events"])


# ---- from a number to the wait, and from the wait to its root cause ----


def test_the_longest_wait_leads_to_its_holder(look: Look, ptt: Ptt, story: Path) -> None:
    reported = report(ptt, story)
    outer = next(item for item in reported["objects"] if item["name"] == "outer")
    look.panel("contention")
    look.grid("Contention")
    look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
    look.wait_for_address("sel=wait")
    # The view shows the whole wait, and not much else.
    look.wait_for_width(outer["wait_max_ns"], 4 * outer["wait_max_ns"])
    details = look.page.locator("#details")
    details.get_by_text("middle").first.wait_for()
    # The holder was waiting itself: the chain ends at the holder of `hot`.
    details.get_by_text("hot").first.wait_for()
    details.get_by_text("story").first.wait_for()
    look.shot("wait-chain")


def test_the_holder_is_shown_beside_the_table(look: Look) -> None:
    look.panel("contention")
    look.grid("Contention")
    look.page.locator("#panel-contention .rows .table-row", has_text="mutex hot").click()
    about = look.page.locator("#panel-contention .about")
    about.get_by_text("held it, taken at main").wait_for()


# ---- events ----


def test_events_agree_with_view(look: Look, ptt: Ptt, story: Path) -> None:
    reported = ptt("view", story).stdout
    look.page.fill("#filter-event", "MUTEX")
    look.wait_for_address("f.event=")
    look.wait_for("() => /mutex/.test(document.querySelector('.events-body').textContent)")
    shown = look.sentences()
    assert len(shown) > 3
    assert all(sentence.replace(" µs", " us") in reported for sentence in shown)
    look.shot("events")


def test_events_are_restricted_to_a_mutex(look: Look, ptt: Ptt, story: Path) -> None:
    look.page.fill("#filter-text", "mutex outer")
    look.wait_for(
        """() => [...document.querySelectorAll('.events-body .table-row')]
             .every(row => row.textContent.includes('mutex outer'))"""
    )
    look.page.locator(".events-body .table-row").first.click()
    look.page.fill("#filter-text", "")
    look.page.get_by_role("button", name="Only this object").click()
    look.wait_for_address("f.object=")
    look.wait_for_events(ptt("view", "--object", "outer", story).stdout.splitlines())
    look.shot("filtered")
    look.page.get_by_role("button", name="Show all").click()
    look.wait_for("() => !location.hash.includes('f.object')")


@pytest.mark.parametrize(("field", "value"), [("event", "COND"), ("site", "one_order")])
def test_events_are_filtered_by_type_and_text(
    look: Look, ptt: Ptt, story: Path, field: str, value: str
) -> None:
    look.page.fill(f"#filter-{field}", value)
    look.wait_for_address(f"f.{field}=")
    look.wait_for_events(ptt("view", f"--{field}", value, story).stdout.splitlines())


def test_steps_go_to_events_of_the_same_object(look: Look, ptt: Ptt, story: Path) -> None:
    reported = ptt("view", "--object", "hot", story).stdout.splitlines()
    look.page.fill("#filter-text", "took mutex hot")
    look.wait_for("() => document.querySelectorAll('.events-body .table-row').length === 2")
    look.page.locator(".events-body .table-row").first.click()
    look.page.fill("#filter-text", "")
    look.wait_for_address("sel=event")
    look.wait_for("() => !location.hash.includes('f.text=')")
    # Each sentence differs from the sentence before it, so the test sees every step.
    is_current = """line => {
        const row = document.querySelector('.events-body [aria-selected=true]');
        return row !== null && line.includes(row.children[3].textContent.replaceAll(' µs', ' us'));
    }"""
    look.wait_for(is_current, reported[0])
    for line in reported[1:]:
        look.page.get_by_role("button", name="] Next").click()
        look.wait_for(is_current, line)
    look.page.get_by_role("button", name="[ Previous").click()
    look.wait_for(is_current, reported[-2])


def test_the_timeline_shows_the_selected_event(look: Look) -> None:
    look.page.locator(".events-body .table-row").nth(2).dblclick()
    url = look.wait_for_address("sel=event")
    look.wait_for_address("t=")
    at = re.search(r"sel=event.*?(\d+)(?:&|$)", url)
    assert at


# ---- findings, order, path, losses ----


def test_findings_agree_with_check(look: Look, ptt: Ptt, story: Path) -> None:
    reported = json.loads(ptt("check", "--format", "json", story, status=1).stdout)["findings"]
    look.panel("findings")
    cards = look.page.locator("#panel-findings .card")
    cards.first.wait_for()
    assert cards.count() == len(reported) == 1
    assert "lock-order-inversion" in cards.first.inner_text()
    look.page.get_by_role("button", name="Show me").click()
    url = look.wait_for_address("t=")
    shown = re.search(r"[#&]t=(\d+)-(\d+)", url)
    assert shown
    assert int(shown[1]) <= reported[0]["ts_ns"] <= int(shown[2])
    look.shot("findings")


def test_lock_order_shows_the_cycle(look: Look) -> None:
    look.panel("order")
    look.page.locator("#panel-order svg .edge.cycle").first.wait_for(state="attached")
    assert look.page.locator("#panel-order svg .edge.cycle").count() == 2
    rows = look.grid("Lock order")
    cycle = {(row["held"], row["wanted"]) for row in rows if row["cycle"] == "1"}
    assert cycle == {("mutex first", "mutex second"), ("mutex second", "mutex first")}
    look.shot("order")


def test_the_critical_path_agrees_with_the_report(look: Look, ptt: Ptt, story: Path) -> None:
    reported = report(ptt, story)["critical_path"]
    look.panel("critical")
    rows = {row["label"]: int(row["run"]) for row in look.grid("Threads of the critical path")}
    assert rows == {f"{t['tid']} {t['name']}": t["run_ns"] for t in reported["threads"]}
    look.grid("Pieces of the critical path")
    look.shot("critical")


def test_the_flame_graph_has_all_waiting(look: Look, ptt: Ptt, story: Path) -> None:
    by_stack = json.loads(ptt("report", story, "--by", "stack", "--format", "json").stdout)
    look.panel("flame")
    look.page.locator("#panel-flame .flame-box").first.wait_for()
    boxes: list[list[Any]] = look.page.locator("#panel-flame .flame-box").evaluate_all(
        "boxes => boxes.map(box => [box.dataset.name, Number(box.dataset.ns)])"
    )
    assert boxes[0] == ["all", by_stack["wait_ns"]]
    # A picked function fills the width, and the rows show only its threads.
    threads = look.page.locator("[role=tree][aria-label='Flame graph']")
    deepest = min(boxes, key=lambda box: box[1])
    look.page.locator(f"#panel-flame .flame-box[data-name='{deepest[0]}']").first.click()
    look.page.get_by_role("button", name="Show all").wait_for()
    look.shot("flame")
    look.page.get_by_role("button", name="Show all").click()
    threads.focus()
    look.press("ArrowDown")
    assert threads.get_attribute("aria-activedescendant")
    look.page.fill("#flame-search", boxes[1][0])
    look.page.locator("#panel-flame .flame-box.hit").first.wait_for()


def test_losses_are_reported(look: Look) -> None:
    look.panel("losses")
    look.page.get_by_text("No events were lost.").wait_for()
    look.shot("losses")


# ---- search, address, theme, cut ----


def test_search_finds_a_lock_a_thread_and_a_type(look: Look) -> None:
    for text, kind, part in (
        ("outer", "lock", "sel=object"),
        ("middle", "thread", "sel=thread"),
        ("BARRIER_WAIT_IN", "event type", "f.event=BARRIER_WAIT_IN"),
    ):
        look.page.fill("#search-text", text)
        hit = look.page.locator("#search-hits .hit", has_text=kind).first
        hit.wait_for()
        if text == "outer":
            look.shot("search")
        hit.click()
        look.wait_for_address(part)


def test_an_address_opens_the_same_view_elsewhere(
    look: Look, browser: Browser, story_url: str
) -> None:
    look.panel("contention")
    look.wait_for_address("tab=contention")
    look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
    url = look.wait_for_address("sel=wait")
    with opened(browser, story_url + "#" + url.partition("#")[2]) as other:
        other.page.locator("#details").get_by_text("middle").first.wait_for()
        assert other.page.get_attribute("#tab-contention", "aria-selected") == "true"
    look.page.go_back()
    look.wait_for("() => !location.hash.includes('sel=wait')")


def test_the_user_chooses_a_theme(look: Look) -> None:
    def background() -> str:
        return str(look.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    seen = set()
    for _ in range(3):
        look.page.click("#theme")
        seen.add(background())
        look.shot(f"theme-{look.page.get_attribute('html', 'data-theme')}")
    assert len(seen) == 2


def test_the_mark_is_cut_to_a_new_trace(look: Look, ptt: Ptt, story: Path, story_url: str) -> None:
    whole = report(ptt, story)
    middle = (whole["first_ns"] + whole["last_ns"]) // 2
    look.go(f"{story_url}#mark=0-{middle}&tab=statistics")
    look.page.get_by_role("button", name="Cut to a new trace").click()
    # The message is shown for a while, and its text stays in the element.
    look.wait_for("() => /Wrote/.test(document.getElementById('toast').textContent)")
    message = re.search(
        r"Wrote (.*): (\d+) events", look.page.locator("#toast").text_content() or ""
    )
    assert message
    assert json.loads(ptt("stat", "--format", "json", message[1]).stdout)["events"] == int(
        message[2]
    )


# ---- keys ----


def test_a_key_right_after_the_help_reaches_the_page(look: Look) -> None:
    look.press("?")
    look.page.get_by_role("dialog", name="Keys").wait_for()
    # The key comes before the next frame: until then, the closed dialog keeps the focus.
    focused = look.page.evaluate(
        """() => {
            document.querySelector('dialog').close();
            const key = new KeyboardEvent('keydown', {key: '/', bubbles: true, cancelable: true});
            document.activeElement.dispatchEvent(key);
            return document.activeElement.id;
        }"""
    )
    assert focused == "search-text"


def test_the_keyboard_reaches_everything(look: Look) -> None:
    look.press("?")
    dialog = look.page.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    assert {"/", "?", "[", "]", "F", "M"} <= set(dialog.locator("kbd").all_inner_texts())
    look.shot("help")
    look.press("Escape")
    dialog.wait_for(state="hidden")
    # Search for a lock, go to its events, to an event, and to the next event of the lock.
    look.press("/")
    look.wait_for("() => document.activeElement?.id === 'search-text'")
    look.page.keyboard.type("outer")
    # While typing, another hit may come first. Findings about the lock may not name it.
    look.wait_for(
        """() => document.querySelector('#search-hits .hit')?.textContent.includes('outer')"""
    )
    look.press("Enter")
    look.wait_for_address("sel=object")
    look.press("1", "ArrowDown", "ArrowDown")
    look.wait_for_address("sel=event")
    # Sort the numbers by another column, and go to the longest wait of the first row.
    look.press("2")
    look.grid("Contention")
    look.press("ArrowDown", "Enter")
    look.wait_for_address("sel=wait")
    look.press(">")
    look.page.locator("#panel-contention [aria-sort=descending]", has_text="While held").wait_for()
    # Mark and measure the visible range, and clear the mark.
    look.press("m")
    look.wait_for_address("mark=")
    look.press("Escape", "Escape", "Escape")
    look.wait_for("() => !location.hash.includes('mark=')")
    for key, tab in enumerate(
        ("events", "contention", "findings", "statistics", "order", "critical", "losses"), 1
    ):
        look.press(str(key))
        assert look.page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
    look.press("f", "w", "d")
    look.wait_for_address("t=")
