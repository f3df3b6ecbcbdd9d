"""What is painted, measured in pixels: shares of time at any width, and what never ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import Compiler, Recorder
from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look

# Waits of very different lengths, from far below a pixel to many, and what is between them.
MIXED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *take_often(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 1500; i++) {
		pthread_mutex_lock(&lock);
		for (volatile int n = 0; n < (i % 50 ? 20000 : 400000); n++)
			;
		pthread_mutex_unlock(&lock);
		if (i % 3 == 0)
			usleep(i % 7 ? 50 : 800);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[3];

	pthread_create(&threads[0], NULL, take_often, "one");
	pthread_create(&threads[1], NULL, take_often, "two");
	pthread_create(&threads[2], NULL, take_often, "three");
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

# Two threads each want what the other has, and never get it.
STUCK = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *other_way(void *unused)
{
	pthread_mutex_lock(&second_lock);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&first_lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_setname_np(pthread_self(), "stuck");
	alarm(3);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, other_way, NULL);
	pthread_mutex_lock(&first_lock);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&second_lock);
	return 0;
}
"""

# Shares of the state lane of a thread, between its first and last drawn column, by colour.
LANE = """([name, tokens]) => {
    const colour = token => {
        const text = getComputedStyle(document.documentElement).getPropertyValue(token).trim();
        return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
    };
    const pane = document.querySelector('section[aria-label=Threads]');
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
# How much of the strip has something contended in its middle.
STRIP = """() => {
    const canvas = document.querySelector('#overview canvas');
    const line = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data;
    let found = 0;
    for (let at = 0; at < line.length; at += 4) if (line[at] > 1.5 * line[at + 1]) found++;
    return found / canvas.width;
}"""
TOKENS = ["--state-contended", "--state-not-waiting"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path) -> Path:
    directory = tmp_path_factory.mktemp("mixed")
    (directory / "traces").mkdir()
    program = Compiler(directory, native_stage / "include")(MIXED)
    return Recorder(ptt, directory / "traces")(program)


def shares(ptt: Ptt, trace: Path) -> dict[str, float]:
    """Return how much of its life each thread was kept by others."""
    told: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return {
        thread["name"]: thread["wait_ns"] / (thread["end_ns"] - thread["start_ns"])
        for thread in told["threads"]
    }


def agrees(look: Look, expected: dict[str, float]) -> None:
    """Insist that each lane shows its thread's share, to 2 points."""
    look.page.wait_for_load_state("networkidle")
    for name in ("one", "two", "three"):
        look.wait_for(
            "([lane, asked]) => { const f = eval(lane)(asked); return f && f[0] + f[1] > 0.99; }",
            [LANE, [name, TOKENS]],
        )
        look.page.wait_for_timeout(500)
        contended, _ = look.page.evaluate(LANE, [name, TOKENS])
        assert contended == pytest.approx(expected[name], abs=0.02), name


@pytest.mark.parametrize("width", [500, 1024, 1600, 3840])
def test_areas_are_shares_of_time_at_any_width(
    browser: Browser, ptt: Ptt, mixed: Path, width: int
) -> None:
    expected = shares(ptt, mixed)
    with (
        serving(ptt, mixed) as url,
        opened(
            browser,
            f"{url}#arrows=0",
            viewport={"width": width, "height": 800},
            color_scheme="light",
        ) as look,
    ):
        agrees(look, expected)


@pytest.mark.parametrize("width", [800, 1600])
def test_areas_of_the_one_file(
    browser: Browser, ptt: Ptt, mixed: Path, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "mixed.html"
    ptt("ui", "--export", file, mixed)
    size = {"width": width, "height": 800}
    with opened(browser, f"{file.as_uri()}#arrows=0", viewport=size, color_scheme="light") as look:
        agrees(look, shares(ptt, mixed))


def test_what_never_ended_reaches_to_the_end(
    browser: Browser, ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    trace = record(compile_c(STUCK), status=None)
    told = json.loads(ptt("report", "--format", "json", trace).stdout)
    waits = told["never_ended"]
    end = max(wait["t_ns"] + wait["dur_ns"] for wait in waits)
    length = end - told["first_ns"]
    path = told["critical_path"]
    assert path["end_ns"] == end
    assert sum(thread["open_ns"] for thread in path["threads"]) > 0.9 * length
    with serving(ptt, trace) as url, opened(browser, url, color_scheme="light") as look:
        known = look.page.evaluate("() => fetch('api/trace').then(got => got.json())")
        assert known["end_ns"] == end
        look.page.locator(".name.row", has_text="stuck").first.wait_for()
        look.wait_for(
            "([lane, asked]) => { const f = eval(lane)(asked); return f && f[0] > 0.95; }",
            [LANE, ["stuck", TOKENS]],
        )
        # The strip as well is contended from end to end, by both threads.
        assert look.page.evaluate(STRIP) > 0.95
        look.page.locator(".name.row", has_text="second_lock").click()
        last = look.page.locator("#details dd").last.inner_text()
        assert last.replace(" ", "").replace("\u202f", "") == f"{end / 1e9:.9f}s"
