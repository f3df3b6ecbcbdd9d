"""The page with a fast user, or with a slow server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ui.page import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.ui.page import Look

# All keys at once: no question can be answered between two keys.
PRESS = """keys => {
    for (const key of keys) {
        const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
        document.activeElement.dispatchEvent(event);
    }
}"""
SELECTED = "sel => (/[#&](sel=[^&]*)/.exec(location.hash) ?? [])[1] === sel"


def selected(look: Look) -> str:
    """Return the selection in the address."""
    return str(look.page.evaluate("(/[#&](sel=[^&]*)/.exec(location.hash) ?? ['', ''])[1]"))


def stepped(look: Look, key: str) -> str:
    """Press a key that changes the selection, and return the new selection."""
    before = selected(look)
    look.press(key)
    look.wait_for(
        "sel => /[#&]sel=event/.test(location.hash) && !location.hash.includes(sel)", before
    )
    return selected(look)


def test_enter_before_the_search_is_answered(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        look.page.wait_for_selector(".events-body .table-row")
        for text, part in (("outer", "sel=object"), ("middle", "sel=thread")):
            look.press("/")
            look.wait_for("() => document.activeElement?.id === 'search-text'")
            look.page.evaluate(
                """text => {
                    const field = document.activeElement;
                    field.value = text;
                    field.dispatchEvent(new Event('input', { bubbles: true }));
                    const enter = { key: 'Enter', bubbles: true, cancelable: true };
                    field.dispatchEvent(new KeyboardEvent('keydown', enter));
                }""",
                text,
            )
            look.wait_for_address(part)


def test_quick_steps_are_all_taken(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        look.page.wait_for_selector(".events-body .table-row")
        look.page.fill("#search-text", "outer")
        look.page.locator("#search-hits .hit", has_text="lock").first.click()
        look.wait_for_address("sel=object")
        first, _, third = (stepped(look, "]") for _ in range(3))
        stepped(look, "[")
        assert stepped(look, "[") == first
        look.page.evaluate(PRESS, ["]", "]"])
        look.wait_for(SELECTED, third)


def test_a_new_selection_survives_a_late_answer(browser: Browser, story_url: str) -> None:
    with opened(browser, f"{story_url}#tab=contention") as look:
        look.grid("Contention")
        look.page.get_by_role("grid", name="Contention").focus()
        # The answer of the server would select the longest wait of the row.
        with look.page.expect_response(lambda answer: "/api/wait-list" in answer.url):
            look.page.evaluate(PRESS, ["ArrowDown", "Enter", "Escape"])
        # The page writes the address after some time without changes.
        look.page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 1000))")
        assert selected(look) == ""


# The first answer says "not yet", but comes after the last change of the trace.
LATE = """
const streams = [];
window.EventSource = class extends EventSource {
    constructor(...parameters) {
        super(...parameters);
        streams.push(this);
        this.addEventListener('message', (event) => { this.last = event.data; });
    }
};
const ask = window.fetch;
let asked = 0;
window.fetch = async (address, ...rest) => {
    if (!String(address).includes('/api/statistics') || asked++) return ask(address, ...rest);
    let stream;
    while (!(stream = streams.find((one) => one.last))) {
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    stream.dispatchEvent(new MessageEvent('message', { data: stream.last }));
    await ask('/api/trace');
    await new Promise((resolve) => setTimeout(resolve, 500));
    return new Response('{"ready": false, "progress": 0.5}', { status: 202 });
};
"""


def test_a_late_not_yet_is_asked_again(browser: Browser, story_url: str) -> None:
    context = browser.new_context()
    context.add_init_script(LATE)
    try:
        page = context.new_page()
        page.goto(story_url)
        page.wait_for_selector(".events-body .table-row")
        page.click("#tab-statistics")
        page.wait_for_selector("#panel-statistics dd[data-fact=Events]", timeout=60_000)
    finally:
        context.close()
