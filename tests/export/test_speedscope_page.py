"""The page of speedscope opens an export and shows the frames and times of the trace."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import nptltrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser

CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}


def test_the_page_shows_the_export(
    browser: Browser, node_packages: Path, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    document = nptltrace.open(recorded("five_callers")).export("speedscope", tmp_path / "out.json")
    # The data that the command line of speedscope gives to its page.
    packed = base64.b64encode(document.read_bytes()).decode()
    script = tmp_path / "out.js"
    script.write_text(f"speedscope.loadFileFromBase64('out.json', {json.dumps(packed)})")
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(
        f"{(node_packages / 'speedscope/dist/release/index.html').as_uri()}"
        f"#localProfilePath={script}"
    )
    page.get_by_text("Sandwich").click()
    page.get_by_text("db_lock").first.wait_for()
    shown = page.inner_text("body")
    assert not errors
    for name in CALLERS:
        assert name in shown
