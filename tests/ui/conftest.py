"""Fixtures for tests of the page: the browser, and traces to show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import Compiler, Recorder
from tests.ui.page import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.support import Ptt


@pytest.fixture(scope="module")
def browser(browser: Browser, native_stage: Path) -> Browser:
    """Chromium without a window; skips the test if the page was not built."""
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    return browser


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path) -> Path:
    """Trace of story.c: known waits, a chain of waits, an idle wait, two lock orders."""
    directory = tmp_path_factory.mktemp("story")
    (directory / "traces").mkdir()
    program = Compiler(directory, native_stage / "include")(Path(__file__).parent / "story.c")
    return Recorder(ptt, directory / "traces")(program)


@pytest.fixture(scope="module")
def story_url(ptt: Ptt, story: Path) -> Iterator[str]:
    """Address of a viewer of the trace `story`."""
    with serving(ptt, story) as url:
        yield url
