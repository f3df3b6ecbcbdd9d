"""The viewer's page in a browser: starts the server, opens the page, and reads it as users do."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.support import Ptt

__all__ = ["LANE", "PATIENCE_MS", "SHOTS", "Look", "opened", "serving"]

SHOTS = ROOT / "build" / "screenshots"
PATIENCE_MS = 60_000
# Shares of the first lane of a row, between its first and last drawn column, by colour.
LANE = """([name, tokens, title = "Threads"]) => {
    const colour = token => {
        const text = getComputedStyle(document.documentElement).getPropertyValue(token).trim();
        return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
    };
    const pane = document.querySelector(`section[aria-label=${title}]`);
    const row = [...pane.querySelectorAll('.name.row')]
        .find(row => row.querySelector('.label').textContent.startsWith(name));
    if (!row) return null;
    const top = new DOMMatrix(getComputedStyle(row).transform).m42 + 2;
    const canvas = pane.querySelector('canvas.spans');
    const { data, width } = canvas.getContext('2d').getImageData(0, top, canvas.width, 17);
    const known = tokens.map(colour);
    const found = known.map(() => 0);
    for (let at = 0; at < data.length; at += 4) {
        // A pattern is drawn over its colour, and darker: the nearest by direction is meant.
        const near = known.map(c => Math.hypot(...c.map((v, n) => v - data[at + n])));
        const least = Math.min(...near);
        if (least < 90 && data[at + 3]) found[near.indexOf(least)]++;
    }
    const all = found.reduce((sum, n) => sum + n, 0);
    return found.map(n => n / all);
}"""


@contextmanager
def serving(ptt: Ptt, *args: str | Path) -> Iterator[str]:
    """Run `ptt ui` and give its address."""
    command = ptt.command("ui", "--no-browser", *args)
    with subprocess.Popen(
        command, env=ptt.environment(), stdout=subprocess.PIPE, encoding="utf-8"
    ) as server:
        try:
            assert server.stdout
            url = server.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), url
            yield url
        finally:
            server.terminate()


class Look:
    """An open page.

    Attributes:
        page: The page of Playwright.
        errors: Errors of the page. Every test expects none.
        asked: Addresses of all requests.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self.asked.append(request.url))

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"a dialog came: {dialog.message[:80]}")
        dialog.dismiss()

    def go(self, url: str) -> None:
        """Open an address and wait until the timeline and the panels are there."""
        self.page.goto(url)
        self.page.wait_for_selector("#timeline canvas")
        self.page.wait_for_selector("[role=tabpanel]:not([hidden]) > *")

    def shot(self, name: str) -> None:
        """Keep a picture for people."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def press(self, *keys: str) -> None:
        """Press keys one after another."""
        for key in keys:
            self.page.keyboard.press(key)

    def panel(self, name: str) -> None:
        """Show a panel by its tab."""
        if self.page.get_attribute(f"#tab-{name}", "aria-selected") != "true":
            self.page.click(f"#tab-{name}")

    def grid(self, label: str) -> list[dict[str, str]]:
        """Return the visible rows of a table: values by column."""
        rows = self.page.get_by_role("grid", name=label, exact=True)
        rows.locator(".rows .table-row").first.wait_for()
        found: list[dict[str, str]] = rows.locator(".rows .table-row").evaluate_all(
            """rows => rows.map(row => Object.fromEntries(
                 [...row.children].map(cell => [cell.dataset.column, cell.dataset.value])))"""
        )
        return found

    def sentences(self) -> list[str]:
        """Return the visible sentences of the event list."""
        cells = self.page.locator(".events-body .table-row > :nth-child(4)")
        return cells.all_inner_texts()

    def wait_for(self, script: str, argument: Any = None) -> None:
        """Wait until a condition of the page holds."""
        self.page.wait_for_function(script, arg=argument)

    def wait_for_address(self, part: str) -> str:
        """Wait until the address has a parameter that begins with `part`; return the address."""
        found = self.page.wait_for_function(
            """part => location.hash.replace('#', '&').includes('&' + part) && location.href""",
            arg=part,
        )
        return str(found.json_value())

    def wait_for_events(self, reported: list[str]) -> None:
        """Wait until the event list shows these lines of `ptt view`, as far as there is room.

        The list names threads, locks and microseconds in other words than `ptt view`.
        """
        self.wait_for(
            """wanted => {
                const rows = [...document.querySelectorAll('.events-body .table-row')];
                const room = document.querySelector('.events-body')?.clientHeight;
                return rows.length > 0 && rows.length <= wanted.length
                    && (rows.length === wanted.length || rows.length * rows[0].clientHeight >= room)
                    && rows.map(row => row.children[3].textContent.replaceAll(' µs', ' us'))
                        .every((text, n) => wanted[n].includes(text) || / is named /.test(text));
            }""",
            reported,
        )

    def wait_for_width(self, least_ns: int, most_ns: int) -> None:
        """Wait until the address has a range of a width between these limits."""
        self.wait_for(
            """([least, most]) => {
                const range = /[#&]t=(\\d+)-(\\d+)/.exec(location.hash);
                const width = range ? range[2] - range[1] : -1;
                return least <= width && width <= most;
            }""",
            [least_ns, most_ns],
        )


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Look]:
    """Open a page in a new profile. At the end, the page must have reported no error."""
    context = browser.new_context(**({"viewport": {"width": 1400, "height": 900}} | options))
    try:
        look = Look(context.new_page())
        look.go(url)
        yield look
        assert look.errors == []
    finally:
        context.close()
