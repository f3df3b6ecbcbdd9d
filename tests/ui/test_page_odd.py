"""Hostile traces, and traces that are too large to be drawn as a whole."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from nptltrace.ui.protocol import CALLS
from tests.trace.builder import Builder, Event
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt

T0 = 10**12
MARKUP = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script><!--"
HUGE = MARKUP + "<" * 10_000_000
PANELS = ("contention", "findings", "statistics", "order", "critical", "losses", "events")


def held(at: int, lock: int, length: int) -> list[Event]:
    return [Event(at, "MUTEX_TAKEN", lock, 5), Event(at + length, "MUTEX_FREE", lock, 6)]


def waited(at: int, lock: int, owner: int, length: int) -> list[Event]:
    fields = {"result": 0, "wait_ns": length}
    return [
        Event(at, "MUTEX_WAIT", lock, 7, fields={"owner": owner}),
        Event(at + length, "MUTEX_TAKEN", lock, 7, variant="WAITED", fields=fields),
        Event(at + length + 1, "MUTEX_FREE", lock, 7),
    ]


def named(at: int, name: bytes) -> Event:
    return Event(at, "THREAD_NAME", 0, fields={"name": name})


def hostile_trace(path: Path) -> Path:
    made = Builder(path)
    message = [
        Event(T0 + 60 + n, "USER", fields={"user_domain": 1, "user_event": n, "data": data})
        for n, data in enumerate(
            [MARKUP.encode(), SCRIPT.encode(), b"\xff\x00\x1b[31m", HUGE.encode()]
        )
    ]
    made.thread(1, [named(T0, MARKUP.encode()), *held(T0 + 1, 64, 40), *message])
    made.thread(2, [named(T0, SCRIPT.encode()), *waited(T0 + 10, 64, 1, 31)])
    # Half a year later, and a name that changes the direction of the text.
    made.thread(3, [named(T0, "\u202egnp.exe".encode()), *held(T0 + 2**53, 128, 2**50)])
    made.thread(4, held(T0 + 100, 192, 5))
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": f"/bin/{HUGE}", "cmdline": [SCRIPT, HUGE],
                     "start_unix_ns": -(2**62), "end_unix_ns": 2**62}},
        {"thread": {"process": 0, "tid": 4, "name": HUGE}},
        {"sites": {"process": 0, "sites": {"5": "0x500", "6": "0x600", "7": "0x700"}}},
    ]  # fmt: skip
    made.session |= {
        "uncovered": [{"module": MARKUP, "why": SCRIPT}, {"module": HUGE, "why": HUGE}],
        "losses": {MARKUP: 3, HUGE: 4},
    }
    return made.write()


def test_hostile_names_times_and_strings(browser: Browser, ptt: Ptt, tmp_path: Path) -> None:
    trace = hostile_trace(tmp_path / "run<img src=x>.ptt")
    aliases = tmp_path / "aliases"
    aliases.write_text(f"0x40 {MARKUP}\n0x80 {HUGE}\n")
    page = tmp_path / "page.html"
    ptt("ui", "--export", page, "--alias", aliases, trace)
    with serving(ptt, "--alias", aliases, trace) as url:
        for address in (url, page.as_uri()):
            with opened(browser, address) as look:
                for panel in PANELS:
                    look.panel(panel)
                    asking = look.page.locator(f"#panel-{panel} .asking")
                    if asking.count():
                        asking.first.wait_for(state="hidden")
                look.page.fill("#filter-text", "onerror")
                look.page.locator(".events-body .table-row", has_text=MARKUP).first.click()
                look.page.fill("#search-text", "alert")
                look.page.locator("#search-hits .hit").first.click()
                look.press("f", "w", "f")
                # The page shortens all long texts of the trace.
                texts = """[...document.querySelectorAll('body *:not(script)')]
                    .map(one => one.children.length ? 0 : one.textContent.length)"""
                assert max(look.page.evaluate(texts)) < 2000
                # Everything is there as text, and the markup made no element.
                assert look.page.locator("img").count() == 0
                runs = "[...document.scripts].filter(one => one.type !== 'text/plain').length"
                assert look.page.evaluate(runs) == 1
                look.shot("hostile")


def in_flock(at: int, length: int) -> list[Event]:
    done = {"result": 0, "wait_ns": length}
    return [
        Event(at, "SYS_CALL_IN", 0, 5, fields={"call": CALLS.index("flock")}),
        Event(at + length, "SYS_CALL_OUT", 0, 5, fields=done),
    ]


@pytest.mark.parametrize(
    ("events", "in_a_file"),
    [
        pytest.param([], False, id="no event"),
        pytest.param([Event(T0, "THREAD_BEGIN", 1, 5, fields={"serial": 1})], True, id="one event"),
        pytest.param(in_flock(T0, 90_000_000), False, id="a lock of a file and no other"),
    ],
)
def test_a_nearly_empty_trace(
    browser: Browser, ptt: Ptt, tmp_path: Path, events: list[Event], *, in_a_file: bool
) -> None:
    """Each panel says that it is empty, and no request fails."""
    made = Builder(tmp_path / "little.ptt")
    if events:
        made.thread(1, events)
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": "/bin/x", "cmdline": ["x"]}},
        {"sites": {"process": 0, "sites": {"5": "0x500", "6": "0x600"}}},
    ]
    trace, page = made.write(), tmp_path / "page.html"
    if in_a_file:
        ptt("ui", "--export", page, trace)
    address = nullcontext(page.as_uri()) if in_a_file else serving(ptt, trace)
    with address as url, opened(browser, url) as look:
        for panel in PANELS:
            look.panel(panel)
            asking = look.page.locator(f"#panel-{panel} .asking")
            if asking.count():
                asking.first.wait_for(state="hidden")
            assert "NaN" not in look.page.locator("body").inner_text()
        look.press("f", "w", "s", "f", "a", "d")
        look.page.fill("#search-text", "x")


def test_2000_threads(browser: Browser, ptt: Ptt, tmp_path: Path) -> None:
    made = Builder(tmp_path / "threads.ptt")
    made.thread(1, [*held(T0, 64, 10_000_000)])
    for n in range(2000):
        made.thread(10 + n, waited(T0 + n, 64, 1, 10_000_000 + 10 * n))
    made.processes = [{"process": {"index": 0, "pid": 100, "exe": "/bin/x", "cmdline": ["x"]}}]
    made.write()
    with serving(ptt, made.path) as url, opened(browser, url) as look:
        look.page.wait_for_selector(".events-body .table-row")
        # The page has few elements for many rows.
        assert look.page.evaluate("document.querySelectorAll('*').length") < 3000
        look.panel("contention")
        look.page.select_option("#contention-by", "thread")
        look.wait_for(
            "() => document.querySelector('#panel-contention [role=grid]').ariaRowCount > 1990"
        )
        look.shot("threads-2000")
        grid = look.page.get_by_role("grid", name="Contention")
        grid.focus()
        look.press("End", "Enter")
        look.wait_for_address("sel=")
        look.page.fill("#search-text", "1999")
        look.page.locator("#search-hits .hit", has_text="thread").first.click()
        look.wait_for_address("sel=thread")


def test_100000_locks(browser: Browser, ptt: Ptt, tmp_path: Path) -> None:
    made = Builder(tmp_path / "locks.ptt")
    locks = [64 * n for n in range(1, 100_001)]
    step = 1000
    made.thread(
        1,
        *(
            [
                e
                for n, lock in enumerate(locks[i : i + step])
                for e in held(T0 + 10 * (i + n), lock, 5)
            ]
            for i in range(0, len(locks), step)
        ),
    )
    made.thread(2, waited(T0 + 2, locks[0], 1, 3) + waited(T0 + 500_001, locks[50_000], 1, 4))
    made.processes = [{"process": {"index": 0, "pid": 100, "exe": "/bin/x", "cmdline": ["x"]}}]
    made.write()
    with serving(ptt, made.path) as url, opened(browser, url) as look:
        look.panel("contention")
        # The most important rows come first, and the page says how many are left out.
        rows = look.grid("Contention")
        assert {row["label"] for row in rows[:2]} == {"mutex 0x40", f"mutex {locks[50_000]:#x}"}
        totals = look.page.locator("#panel-contention .totals")
        assert "of 100\u202f000" in totals.inner_text()
        look.shot("locks-100000")
        look.page.locator("#panel-contention .rows .table-row").first.click()
        look.wait_for_address("sel=wait")
        look.page.fill("#search-text", f"{locks[77_777]:#x}")
        look.page.locator("#search-hits .hit", has_text="lock").first.click()
        look.wait_for_address("sel=object")
        assert look.page.evaluate("document.querySelectorAll('*').length") < 3000
