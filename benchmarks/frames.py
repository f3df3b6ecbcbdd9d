"""How smoothly the viewer's page moves: time between frames while it is dragged and zoomed.

    python benchmarks/frames.py TRACE            # figures in build/bench/frames.json

Starts `ptt ui` on the trace and drives it in the system's Chromium, headless, through Playwright.
The bar is a median of at most 17 ms, so 60 frames a second, while dragging and while keys are held.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from common import KEPT, PTT
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-background-networking"]
WAIT_MS = 300_000
BOUND_MS = 17.0
WIDTH, HEIGHT = 1600, 1000

# Frames as the page sees them: the times at which it may draw, and what its own drawing took.
WATCH = """() => {
  window.frames = [];
  const step = (now) => { window.frames.push(now); window.watching = requestAnimationFrame(step); };
  window.watching = requestAnimationFrame(step);
}"""
READY = "async () => (await (await fetch('/api/trace')).json()).detail.ready"
TAKE = "() => { cancelAnimationFrame(window.watching); return window.frames; }"


def measure(page: Any, act: Callable[[], None]) -> dict[str, float]:
    """Return figures on the frames during an action, in ms."""
    page.evaluate(WATCH)
    act()
    frames = page.evaluate(TAKE)
    between = [b - a for a, b in pairwise(frames)]
    ordered = sorted(between)
    return {
        "frames": len(between),
        "median_ms": statistics.median(between),
        "p95_ms": ordered[int(len(ordered) * 0.95)],
        "worst_ms": ordered[-1],
    }


def drag(page: Any, x: float, y: float) -> None:
    """Drag to and fro."""
    for way in (1, -1) * 3:
        page.mouse.move(x - way * 300, y)
        page.mouse.down()
        for step in range(60):
            page.mouse.move(x - way * 300 + way * step * 10, y)
        page.mouse.up()


def zoom(page: Any, x: float, y: float) -> None:
    """Zoom in and out by the wheel."""
    page.keyboard.down("Control")
    for way in (-60, 60) * 3:
        for _ in range(25):
            page.mouse.move(x, y)
            page.mouse.wheel(0, way)
    page.keyboard.up("Control")


def scroll(page: Any) -> None:
    """Scroll the rows down and up."""
    for way in (90, -90):
        for _ in range(60):
            page.mouse.wheel(0, way)


def keys(page: Any) -> None:
    """Hold each key of movement."""
    for code in ("d", "a", "w", "s"):
        page.keyboard.down(code)
        page.wait_for_timeout(800)
        page.keyboard.up(code)


def drive(page: Any) -> dict[str, dict[str, float]]:
    """Move about as a user would, and return the figures of each way."""
    box = page.locator(".pane canvas.spans").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    figures = {"drag, whole": measure(page, lambda: drag(page, x, y))}
    for _ in range(4):
        page.keyboard.press("w")
    page.wait_for_timeout(800)
    figures["drag, closer"] = measure(page, lambda: drag(page, x, y))
    figures["zoom"] = measure(page, lambda: zoom(page, x, y))
    figures["scroll"] = measure(page, lambda: scroll(page))
    figures["keys"] = measure(page, lambda: keys(page))
    return figures


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", metavar="TRACE")
    args = parser.parse_args()
    command = [*PTT, "ui", "--no-browser", args.trace]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        url = (server.stdout or sys.stdin).readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(url)
            page.locator(".name.row").first.wait_for(timeout=WAIT_MS)
            page.wait_for_function(READY, timeout=WAIT_MS)
            page.wait_for_timeout(1500)
            figures = drive(page)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    for name, one in figures.items():
        print(f"{name:<14}", "  ".join(f"{key} {value:8.1f}" for key, value in one.items()))
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / "frames.json").write_text(json.dumps(figures, indent=1) + "\n")
    bound = [one["median_ms"] for name, one in figures.items() if name.startswith(("drag", "keys"))]
    held = max(bound) <= BOUND_MS
    print("frames while dragging and holding keys, median ≤ 17 ms:", "held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
