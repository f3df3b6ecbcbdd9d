"""Makes the pictures of the viewer for the documentation: docs/pictures/viewer-*.png.

    PYTHONPATH=src:. NPTLTRACE_NATIVE_DIR=build/dev/stage python tools/viewer_pictures.py

Records tests/programs/contention.c and looks at it with the system's Chromium.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.conftest import CHROMIUM, CHROMIUM_FLAGS
from tests.support import ROOT, Compiler, Ptt, Recorder
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from tests.ui.page import Look

OUT = ROOT / "docs" / "pictures"
SIZE = {"width": 1120, "height": 680}


def main() -> None:
    """Record, look, and keep the pictures."""
    stage = Path(os.environ["NPTLTRACE_NATIVE_DIR"]).absolute()
    ptt = Ptt(stage)
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        directory = Path(place)
        (directory / "traces").mkdir()
        compiler = Compiler(directory, stage / "include")
        program = compiler(ROOT / "tests" / "programs" / "contention.c")
        trace = Recorder(ptt, directory / "traces")(program)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_FLAGS))
        for theme in ("light", "dark"):
            with serving(ptt, trace) as url:
                options = {"viewport": SIZE, "color_scheme": theme, "reduced_motion": "reduce"}
                with opened(browser, url, **options) as look:
                    _wait(look)
                    look.page.screenshot(path=OUT / f"viewer-{theme}.png")
        browser.close()


def _wait(look: Look) -> None:
    """Show the longest wait for the busiest lock, and the thread that held the lock."""
    look.panel("contention")
    look.grid("Contention")
    # On a loaded machine, threads can wait longest for another object.
    look.page.locator("#panel-contention .rows .table-row", has_text="mutex hot").click()
    look.wait_for_address("sel=wait")
    look.press("s")
    look.page.locator("#details h2").get_by_text("hot").wait_for()
    look.page.wait_for_load_state("networkidle")
    look.page.wait_for_timeout(500)


if __name__ == "__main__":
    main()
