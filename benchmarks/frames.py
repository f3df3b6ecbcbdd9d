"""Measures how smoothly the viewer's page moves: the time of a frame while you drag and zoom.

    python benchmarks/frames.py TRACE            # figures in build/bench/frames.json

Starts `ptt ui` on the trace and drives it in the system's Chromium, headless, through Playwright.
Frames wait for no screen: each frame begins as soon as the previous frame is done. So the time of
a frame is the time until the next frame begins, with all work of the browser. Only frames with
drawing count. The bar is a median of at most 16 ms while dragging, zooming, and holding keys.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright
from support.common import PTT, Bar, Figures, keep

if TYPE_CHECKING:
    from collections.abc import Callable

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-frame-rate-limit",
    "--disable-gpu-vsync",
]
WAIT_MS = 300_000
BOUND_MS = 16.0
BAR = 8  # as `make bench` counts
WIDTH, HEIGHT = 1600, 1000

# Runs before the page: notes the time stamp of each frame with drawing.
NOTE = """(() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.drawn = new Set();
  window.requestAnimationFrame = (draw) => ask((now) => { window.drawn.add(now); draw(now); });
  window.look = ask;
})()"""
# Notes the time stamps of all frames, also of frames without drawing.
WATCH = """() => {
  window.drawn.clear();
  window.frames = [];
  const step = (now) => { window.frames.push(now); window.watching = window.look(step); };
  window.watching = window.look(step);
}"""
READY = "async () => (await (await fetch('/api/trace')).json()).detail.ready"
TAKE = """() => {
  cancelAnimationFrame(window.watching);
  return window.frames.map((now) => [now, window.drawn.has(now)]);
}"""


def measure(page: Any, act: Callable[[], None]) -> Figures:
    """Return the times of the frames with drawing during an action, in ms."""
    page.evaluate(WATCH)
    act()
    frames = page.evaluate(TAKE)
    return Figures(tuple(round(b - a, 2) for (a, drawn), (b, _) in pairwise(frames) if drawn))


def drag(page: Any, x: float, y: float) -> None:
    """Drag back and forth."""
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


def drive(page: Any) -> dict[str, Figures]:
    """Move about as a user would, and return the figures of each action."""
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
            page.add_init_script(NOTE)
            page.goto(url)
            page.locator(".name.row").first.wait_for(timeout=WAIT_MS)
            page.wait_for_function(READY, timeout=WAIT_MS)
            page.wait_for_timeout(1500)
            figures = drive(page)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    bars = []
    for name, taken in figures.items():
        p95 = sorted(taken.values)[int(len(taken.values) * 0.95)]
        print(f"{name:<14}{taken} ms, p95 {p95:.1f} ms, {len(taken.values)} frames")
        if name.startswith(("drag", "zoom", "keys")):
            bars.append(Bar(BAR, f"a frame, {name}, median ms", taken.median, BOUND_MS))
    keep("frames", figures, bars=bars, trace=args.trace)
    for bar in bars:
        print(bar)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
