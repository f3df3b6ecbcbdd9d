"""The painted pixels: shares of time at any width, and waits without an end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import Compiler, Recorder
from tests.trace.builder import Builder, Event
from tests.ui.page import LANE, opened, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look

# Waits of very different lengths, from far below a pixel to many pixels, with time between them.
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

# Two threads in a deadlock: each waits forever for the lock of the other.
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

# The part of the overview with the colour of contended waits in its middle.
STRIP = """() => {
    const canvas = document.querySelector('#overview canvas');
    const line = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data;
    let found = 0;
    for (let at = 0; at < line.length; at += 4) if (line[at] > 1.5 * line[at + 1]) found++;
    return found / canvas.width;
}"""
# A wait has two colours: for the part while held, and for the part until awake.
TOKENS = ["--state-contended", "--state-waking", "--state-not-waiting"]


SLEEPER = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

static void *sleeps(void *unused)
{
	pthread_setname_np(pthread_self(), "sleeper");
	for (int i = 0; i < 3; i++)
		poll(NULL, 0, 200);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sleeps, NULL);
	return pthread_join(thread, NULL);
}
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path) -> Path:
    directory = tmp_path_factory.mktemp("mixed")
    (directory / "traces").mkdir()
    program = Compiler(directory, native_stage / "include")(MIXED)
    return Recorder(ptt, directory / "traces")(program)


def shares(ptt: Ptt, trace: Path) -> dict[str, float]:
    """Return the share of contended waits in the lifetime of each thread."""
    reported: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return {
        thread["name"]: thread["wait_ns"] / (thread["end_ns"] - thread["start_ns"])
        for thread in reported["threads"]
    }


def agrees(look: Look, expected: dict[str, float]) -> None:
    """Check that each lane shows the share of its thread, to 2 percentage points."""
    look.page.wait_for_load_state("networkidle")
    for name in ("one", "two", "three"):
        look.wait_for(
            f"asked => {{ const f = ({LANE})(asked); return f && f[0] + f[1] + f[2] > 0.99; }}",
            [name, TOKENS],
        )
        look.page.wait_for_timeout(500)
        held, waking, _ = look.page.evaluate(LANE, [name, TOKENS])
        assert held + waking == pytest.approx(expected[name], abs=0.02), name


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
def test_a_page_file_draws_the_same_areas(
    browser: Browser, ptt: Ptt, mixed: Path, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "mixed.html"
    ptt("ui", "--export", file, mixed)
    size = {"width": width, "height": 800}
    with opened(browser, f"{file.as_uri()}#arrows=0", viewport=size, color_scheme="light") as look:
        agrees(look, shares(ptt, mixed))


def test_sleepers_are_not_drawn_as_if_they_ran(
    browser: Browser, ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    trace = record(compile_c(SLEEPER), options=("-l", "2,sys=3"))
    tokens = [f"--state-{state}" for state in ("asleep", "not-waiting", "running", "contended")]
    size = {"width": 1200, "height": 800}
    with (
        serving(ptt, trace) as url,
        opened(browser, f"{url}#arrows=0", viewport=size, color_scheme="light") as look,
    ):
        look.wait_for(LANE, ["sleeper", tokens])
        # Parts that are not loaded yet have their own pattern, as pale as the pattern of sleep.
        look.page.wait_for_load_state("networkidle")
        look.page.wait_for_timeout(500)
        # The pattern of sleep is as dark as the colour of not waiting.
        asleep, _, *others = look.page.evaluate(LANE, ["sleeper", tokens])
        assert asleep > 0.8
        assert sum(others) < 0.02


def test_a_preempted_holder_has_its_own_colour(browser: Browser, ptt: Ptt, tmp_path: Path) -> None:
    def event(ms: int, name: str, thing: int = 0) -> Event:
        return Event(10**12 + ms * 10**6, name, thing, 5 if thing else 0)

    made = Builder(tmp_path / "preempted.ptt")
    made.thread(1, [
        event(0, "MUTEX_TAKEN", 0x4040), event(5, "SCHED_PREEMPTED"), event(60, "SCHED_IN"),
        event(65, "MUTEX_FREE", 0x4040), event(70, "SCHED_PREEMPTED"), event(95, "SCHED_IN"),
        event(100, "MUTEX_TAKEN", 0x4040), event(101, "MUTEX_FREE", 0x4040),
    ])  # fmt: skip
    tokens = ["--state-preempted", "--state-ready", "--state-running"]
    with (
        serving(ptt, made.write()) as url,
        opened(browser, f"{url}#arrows=0", color_scheme="light") as look,
    ):
        look.wait_for(
            f"asked => {{ const f = ({LANE})(asked); "
            "return f && f[0] > 0.5 && f[0] < 0.6 && f[1] > 0.2 && f[1] < 0.3; }",
            ["", tokens],
        )


def test_a_wait_without_end_is_drawn_to_the_end(
    browser: Browser, ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    trace = record(compile_c(STUCK), status=None)
    reported = json.loads(ptt("report", "--format", "json", trace).stdout)
    waits = reported["never_ended"]
    end = max(wait["t_ns"] + wait["dur_ns"] for wait in waits)
    length = end - reported["first_ns"]
    path = reported["critical_path"]
    assert path["end_ns"] == end
    assert sum(thread["open_ns"] for thread in path["threads"]) > 0.9 * length
    with serving(ptt, trace) as url, opened(browser, url, color_scheme="light") as look:
        known = look.page.evaluate("() => fetch('api/trace').then(got => got.json())")
        assert known["end_ns"] == end
        look.page.locator(".name.row", has_text="stuck").first.wait_for()
        look.wait_for(
            f"asked => {{ const f = ({LANE})(asked); return f && f[0] > 0.95; }}",
            ["stuck", TOKENS],
        )
        # The overview, too, shows contended waits of both threads from end to end.
        assert look.page.evaluate(STRIP) > 0.95
        look.page.locator(".name.row", has_text="second_lock").click()
        last = look.page.locator("#details dd").last.inner_text()
        assert last.replace(" ", "").replace("\u202f", "") == f"{end / 1e9:.9f}s"
