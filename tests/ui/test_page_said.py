"""The texts of the page. They must be true with any filter or mark, and without a server."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

from tests.support import ROOT
from tests.trace.builder import Builder, Event
from tests.ui.made import MS, T0, A, B, free, process, taken, waits
from tests.ui.page import LANE, opened, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Compiler, Ptt, Recorder

# Names that change the direction of the text after them, or have invisible characters.
NAMES = r"""
#define _GNU_SOURCE
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	char *names[] = { "\u202egpj.exe", "\u05e9\u05dc\u05d5\u05dd", "a\tb\001c" };
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, take, names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def test_a_row_filter_does_not_change_figures_of_the_trace(
    browser: Browser, story_url: str
) -> None:
    with opened(browser, f"{story_url}#rows=zzzz") as look:
        look.page.get_by_text("No row matches the filter").first.wait_for()
        look.page.locator("#details").get_by_text("Waited for most").wait_for()
        assert "No thread waited" not in look.page.locator("#details").inner_text()


def test_a_filter_by_thread_name_does_not_hide_locks(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#rows=middle") as look:
        threads = look.page.locator("section[aria-label=Threads] .name.row")
        locks = look.page.locator("section[aria-label=Locks] .name.row")
        look.page.get_by_text("no row matches the filter, all rows are shown").wait_for()
        assert threads.count() == 1
        assert locks.count() > 1


def test_names_cannot_reorder_or_hide_other_text(
    browser: Browser, ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    trace = record(compile_c(NAMES))
    with serving(ptt, trace) as url, opened(browser, url) as look:
        look.page.locator(".name.row", has_text="gpj").wait_for()
        labels = look.page.locator(".name.row .label").all_inner_texts()
        assert any(label.startswith("\\u202egpj.exe (") for label in labels), labels
        assert not any("\u202e" in label or "\x01" in label for label in labels)
        # A right-to-left name is before the id of its thread, not around it.
        boxes = look.page.evaluate(
            """() => {
                const label = [...document.querySelectorAll('.name.row .label')]
                    .find(label => /[\\u05d0-\\u05ea]/.test(label.textContent));
                const place = (node, at, end) => {
                    const range = document.createRange();
                    range.setStart(node, at);
                    range.setEnd(node, end);
                    return range.getBoundingClientRect();
                };
                const name = label.querySelector('bdi').getBoundingClientRect();
                const rest = label.querySelector('bdi').nextSibling;
                return [name.right, place(rest, 1, 2).left, place(rest, 2, 3).left];
            }"""
        )
        assert boxes == sorted(boxes)


def test_the_page_says_that_its_server_is_gone(browser: Browser, ptt: Ptt, story: Path) -> None:
    command = ptt.command("ui", "--no-browser", story)
    with subprocess.Popen(
        command, env=ptt.environment(), stdout=subprocess.PIPE, encoding="utf-8"
    ) as server:
        try:
            assert server.stdout
            url = server.stdout.readline().strip()
            context = browser.new_context()
            page = context.new_page()
            page.goto(url)
            page.wait_for_selector("#timeline canvas")
            gone = page.get_by_text("ptt ui has ended")
            assert not gone.is_visible()
            server.terminate()
            server.wait()
            gone.wait_for()
            page.wait_for_timeout(8000)
            assert gone.is_visible()
            context.close()
        finally:
            server.kill()


def test_a_tooltip_describes_the_span_under_the_pointer(
    browser: Browser, ptt: Ptt, tmp_path: Path
) -> None:
    # A synthetic trace has spans with exact ends. In a recorded program, the length of waits
    # depends on the load of the machine.
    made = Builder(tmp_path / "two-waits.ptt")
    made.thread(1, [taken(0, A, 1), free(30, A, 2)])
    made.thread(2, [
        waits(10, A, 1, 3), taken(30, A, 3, waited_ms=20), free(31, A, 4),
        taken(99, B, 5), free(100, B, 6),
    ])  # fmt: skip
    made.processes = process(0, {1: "holder", 2: "waiter"})
    with (
        serving(ptt, made.write()) as url,
        opened(browser, url, reduced_motion="reduce") as look,
    ):
        look.page.locator(".events-body .table-row").first.wait_for()
        look.wait_for(f"asked => ({LANE})(asked)?.[0] > 0", ["waiter", ["--state-contended"]])
        row = look.page.locator("section[aria-label=Threads] .name.row", has_text="waiter")
        place = row.bounding_box()
        canvas = look.page.locator("section[aria-label=Threads] .drawing").bounding_box()
        assert place
        assert canvas

        def point_at(ms: int) -> None:
            """Move the pointer to a time in the lane of waits, with all 100 ms in view."""
            x = canvas["x"] + canvas["width"] * ms / 100
            look.page.mouse.move(x, place["y"] + 8)

        tooltip = look.page.locator(".tooltip")
        wait = tooltip.get_by_text("waits for")
        point_at(20)
        wait.wait_for()
        point_at(60)
        tooltip.wait_for(state="hidden")
        point_at(20)
        wait.wait_for()
        look.press(*"wwww", *"d" * 60)
        tooltip.wait_for(state="hidden")


def test_a_mark_in_a_page_file_names_the_range_of_the_sums(
    browser: Browser, ptt: Ptt, story: Path, tmp_path: Path
) -> None:
    file = tmp_path / "story.html"
    ptt("ui", "--export", file, story)
    with opened(browser, f"{file.as_uri()}#mark=1000-2000&tab=contention") as look:
        look.page.get_by_text("Everything in this file").first.wait_for()
        look.grid("Contention")
        assert not look.page.locator("#panel-contention .error").count()
        assert "Marked:" not in look.page.locator("#panel-contention").inner_text()


def test_an_event_list_that_ends_before_the_view_says_so(
    browser: Browser, ptt: Ptt, story: Path, tmp_path: Path
) -> None:
    file = tmp_path / "story.html"
    ptt("ui", "--export", file, story)
    last = json.loads(ptt("view", "--format", "jsonl", story).stdout.splitlines()[-1])["ts_ns"]
    with opened(browser, f"{file.as_uri()}#tab=events&t={last + 1}-{last + 1000}") as look:
        message = look.page.locator("#panel-events .said")
        message.get_by_text("No events in this file after").wait_for()
        digits = re.sub(r"\D", "", message.inner_text())
        assert int(digits) == last
        look.press("f")
        look.wait_for("() => !document.querySelector('#panel-events .said').textContent")


def test_a_panel_shows_the_length_of_the_mark(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#mark=0-104000000&tab=contention") as look:
        totals = look.page.locator("#panel-contention .totals")
        totals.get_by_text("104 ms").wait_for()


def test_nothing_contended_is_reported_as_such(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#mark=0-1&tab=contention") as look:
        totals = look.page.locator("#panel-contention .totals")
        totals.get_by_text("nothing was contended").wait_for()


def test_waits_of_failed_timed_locks_are_reported(
    browser: Browser, ptt: Ptt, tmp_path: Path
) -> None:
    made = Builder(tmp_path / "given-up.ptt")
    gave_up = {"result": 110, "wait_ns": 20 * MS}
    made.thread(1, [taken(0, A, 1), free(50, A, 2)])
    made.thread(2, [
        waits(10, A, 1, 3),
        Event(T0 + 30 * MS, "MUTEX_TAKEN", A, 3, variant="WAITED", fields=gave_up),
    ])  # fmt: skip
    made.processes = process(0, {1: "holder", 2: "hasty"})
    trace = made.write()
    words = "each wait for a lock was given up"
    assert words in ptt("report", trace).stdout
    with serving(ptt, trace) as url, opened(browser, f"{url}#tab=contention") as look:
        totals = look.page.locator("#panel-contention .totals")
        totals.get_by_text(words).wait_for()
        assert "timed out 20.0 ms" in totals.inner_text()
        # The kept files give the same text, and so does a mark.
        look.go(f"{url}#mark={15 * MS}-{20 * MS}&tab=contention")
        totals.get_by_text(words).wait_for()
    with serving(ptt, trace) as url, opened(browser, f"{url}#tab=contention") as look:
        look.page.locator("#panel-contention .totals").get_by_text(words).wait_for()


def test_words_of_the_help_are_in_the_glossary(browser: Browser, story_url: str) -> None:
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    heads: list[str] = re.findall(r"^\*\*(.+)\*\*$", glossary, re.MULTILINE)
    terms = {term for head in heads for term in head.split(", ")}
    with opened(browser, story_url) as look:
        look.press("?")
        section = look.page.locator("#help section", has_text="Words")
        words = set(section.locator("kbd").all_inner_texts())
        assert {"contended wait", "while held", "until awake", "caused"} <= words
        assert words <= terms


def test_each_tab_has_a_tooltip(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        tabs = look.page.get_by_role("tab")
        assert tabs.count() == 11
        assert all(tab.get_attribute("title") for tab in tabs.all())
