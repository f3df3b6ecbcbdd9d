"""The page in Firefox: draws, shows the same numbers, obeys keys, and opens from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui.firefox import FIREFOX, running
from tests.ui.page import SHOTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Ptt
    from tests.ui.firefox import Firefox


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Iterator[Firefox]:
    pytest.importorskip("websockets", reason="websockets is not installed")
    if not Path(FIREFOX).exists():
        pytest.skip("firefox-esr is not installed")
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    with running(tmp_path_factory.mktemp("firefox") / "profile") as found:
        yield found


def look_at(firefox: Firefox, url: str, ptt: Ptt, story: Path) -> None:
    reported = json.loads(ptt("report", "--format", "json", story).stdout)
    firefox.go(url)
    firefox.wait_for("document.querySelector('.events-body .table-row') !== null")
    firefox.press("2")
    totals = "document.querySelector('#panel-contention .totals')"
    firefox.wait_for(f"{totals}?.dataset.waitNs === '{reported['wait_ns']}'")
    # The page painted something: the canvas has more than one colour.
    firefox.wait_for("""[...document.querySelectorAll('#timeline canvas')].some(canvas => {
        const { width, height } = canvas;
        const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
        return new Set(new Uint32Array(pixels.buffer)).size > 5;
    })""")
    firefox.press("\ue015")  # arrow down
    firefox.press("\ue007")  # enter
    firefox.wait_for("location.hash.includes('sel=wait')")
    assert firefox.errors == []


def test_firefox_shows_the_served_page(
    firefox: Firefox, ptt: Ptt, story: Path, story_url: str
) -> None:
    look_at(firefox, story_url, ptt, story)
    firefox.shot(SHOTS / "firefox.png")


def test_firefox_shows_a_page_from_disk(
    firefox: Firefox, ptt: Ptt, story: Path, tmp_path: Path
) -> None:
    path = tmp_path / "story.html"
    ptt("ui", "--export", path, story)
    look_at(firefox, path.as_uri(), ptt, story)
    firefox.shot(SHOTS / "firefox-exported.png")
