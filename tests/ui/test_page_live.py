"""The page while a recording goes on: the drawn waits of threads, and their figures."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.page import opened, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Compiler, Ptt
    from tests.ui.page import Look

# The browser has to keep pace with the recording.
pytestmark = pytest.mark.alone

# Two threads wait for a lock nearly all the time. A third makes events, so the trace grows.
GATE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

static void *wait_for_gate(void *name)
{
	pthread_setname_np(pthread_self(), name);
	while (!over) {
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	return NULL;
}

static void *be_busy(void *name)
{
	pthread_setname_np(pthread_self(), name);
	while (!over) {
		pthread_mutex_lock(&other);
		pthread_mutex_unlock(&other);
		usleep(500);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10;
	pthread_t threads[3];

	pthread_mutex_lock(&gate);
	pthread_create(&threads[0], NULL, wait_for_gate, "first");
	pthread_create(&threads[1], NULL, wait_for_gate, "second");
	pthread_create(&threads[2], NULL, be_busy, "busy");
	for (int round = 0; round < rounds; round++) {
		usleep(600000);
		over = round + 1 == rounds;
		pthread_mutex_unlock(&gate);
		if (!over)
			pthread_mutex_lock(&gate);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

# The longest part of a row that is drawn as not waiting, and the part drawn as contended.
DRAWN = """async name => {
    const pane = document.querySelector('section[aria-label=Threads]');
    const row = [...pane.querySelectorAll('.name.row')]
        .find(row => row.querySelector('.label').textContent.startsWith(name));
    if (!row) return null;
    const canvas = pane.querySelector('canvas.spans');
    const y = new DOMMatrix(getComputedStyle(row).transform).m42 + 6;
    const { data, width } = canvas.getContext('2d').getImageData(0, y, canvas.width, 1);
    const style = getComputedStyle(document.documentElement);
    const colour = style.getPropertyValue('--state-not-waiting').trim();
    const wanted = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
    let longest = 0;
    let contended = 0;
    for (let x = 0, run = 0; x < width; x++) {
        if (data[4 * x] > 1.5 * data[4 * x + 1]) contended++;
        run = wanted.every((value, at) => data[4 * x + at] === value) ? run + 1 : 0;
        longest = Math.max(longest, run);
    }
    return [longest / width, contended / width];
}"""
# Answers about the newest part come late, as from a busy server.
SLOW = """() => {
    const ask = window.fetch;
    window.fetch = async (address, options) => {
        if (String(address).includes('spans')) await new Promise(done => setTimeout(done, 1200));
        return ask(address, options);
    };
}"""
# Whether each time of a thread in the panel is also beside the name of the thread.
SAME_FIGURES = """() => {
    const texts = selector => [...document.querySelectorAll(selector)].map(e => e.textContent);
    const shown = texts('section[aria-label=Threads] .name.row .figure');
    const times = texts('#panel-contention .rows .table-row [data-column=wait_ns]');
    return times.length >= 3 && times.filter(text => !/^(–|0 ns)$/.test(text))
        .every(text => shown.includes(text));
}"""


@contextmanager
def recording(
    ptt: Ptt, trace: Path, program: Path, rounds: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Record a program that runs for 0.6 s a round, and wait until the trace has events."""
    command = ptt.command("record", "-q", "-o", trace, "--", program, str(rounds))
    with subprocess.Popen(command, env=ptt.environment()) as recorder:
        until = time.monotonic() + 30
        while not (trace / "metadata").exists():
            assert time.monotonic() < until
            time.sleep(0.1)
        yield recorder


def longest_not_waiting(ptt: Ptt, trace: Path, name: str) -> float:
    """Return the longest time between two waits of a thread, in ns."""
    query = "select name, w.t_ns, w.dur_ns from waits w join threads using (tid) order by w.t_ns"
    reported: list[Any] = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    waits = [wait for wait in reported if wait["name"] == name]
    ends = [wait["t_ns"] + wait["dur_ns"] for wait in waits]
    return float(max(b["t_ns"] - end for end, b in zip(ends, waits[1:], strict=False)))


def test_threads_that_wait_are_never_drawn_as_not_waiting(
    browser: Browser, ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    with recording(ptt, trace_dir, compile_c(GATE), 18) as recorder:
        seen: dict[str, float] = {}
        contended = 0.0
        with serving(ptt, "--follow", trace_dir) as url, opened(browser, url) as look:
            look.page.locator(".name.row", has_text="second").wait_for()
            look.page.evaluate(SLOW)
            while recorder.poll() is None:
                look.page.wait_for_timeout(400)
                trace = look.page.evaluate("() => fetch('api/trace').then(got => got.json())")
                length = trace["end_ns"] - trace["first_ns"]
                for name in ("first", "second"):
                    share, waited = look.page.evaluate(DRAWN, name) or (0, 0)
                    contended = max(contended, waited)
                    # At each end, half of a pixel may belong to the next part.
                    seen[name] = max(seen.get(name, 0), share * length - length / 200)
            figures_are_those_of_the_rows(look)
    assert contended > 0.5
    for name, longest in seen.items():
        assert longest <= longest_not_waiting(ptt, trace_dir, name), name


def figures_are_those_of_the_rows(look: Look) -> None:
    """Wait until the whole trace was read: then figures beside names are of the whole trace."""
    look.wait_for(
        """() => fetch('api/trace').then(got => got.json())
            .then(trace => trace.state === 'complete' && trace.detail.ready)"""
    )
    look.panel("contention")
    look.page.select_option("#contention-by", "thread")
    look.wait_for(SAME_FIGURES)


@pytest.mark.parametrize("end_s", [3, 60])
def test_a_mark_in_a_recording_has_the_sums_of_the_report(
    browser: Browser, ptt: Ptt, compile_c: Compiler, trace_dir: Path, end_s: int
) -> None:
    # The mark begins inside a wait. It ends inside a wait or with the recording.
    view = f"#mark=1000000000-{end_s}000000000&tab=contention"
    with (
        recording(ptt, trace_dir, compile_c(GATE), 20) as recorder,
        serving(ptt, "--follow", trace_dir) as url,
        opened(browser, f"{url}{view}") as look,
    ):
        totals = look.page.locator("#panel-contention .totals[data-wait-ns]")
        totals.wait_for()
        assert recorder.poll() is None
        look.grid("Contention")
        assert recorder.wait(60) == 0
        reported = ptt(
            "report", "--from", "1s", "--to", f"{end_s}s", "--format", "json", trace_dir
        ).stdout
        report: dict[str, Any] = json.loads(reported)
        look.wait_for(
            """([ns, waits]) => {
                const { waitNs, waits: n } =
                    document.querySelector('#panel-contention .totals').dataset;
                return Number(waitNs) === ns && Number(n) === waits;
            }""",
            [report["wait_ns"], report["waits"]],
        )
        # These depend on the speed of the clock, which is known only after the recording.
        times = {name: report["objects"][0][name] for name in ("wait_ns", "held_ns", "wake_ns")}
        look.wait_for(
            """times => {
                const row = document.querySelector('#panel-contention .rows .table-row');
                const shown = name => row.querySelector(`[data-column=${name}]`).dataset.value;
                return Object.entries(times).every(([name, ns]) => Number(shown(name)) === ns);
            }""",
            times,
        )
