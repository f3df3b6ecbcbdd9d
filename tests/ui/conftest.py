"""Fixtures of the tests of the page: one browser, and traces to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import Compiler, Recorder
from tests.ui.page import CHROMIUM, PATIENCE_MS, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.support import Ptt

FLAGS = (
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-dev-shm-usage", "--disable-gpu",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(native_stage: Path) -> Iterator[Browser]:
    """Chromium without a window, one for all tests of a module."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed")
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE_MS
        )
        yield found
        found.close()


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path) -> Path:
    """Trace of story.c: known waits, a chain of them, an idle one, two orders of locks."""
    directory = tmp_path_factory.mktemp("story")
    (directory / "traces").mkdir()
    program = Compiler(directory, native_stage / "include")(Path(__file__).parent / "story.c")
    return Recorder(ptt, directory / "traces")(program)


@pytest.fixture(scope="module")
def story_url(ptt: Ptt, story: Path) -> Iterator[str]:
    """Address of the viewer of that trace."""
    with serving(ptt, story) as url:
        yield url
