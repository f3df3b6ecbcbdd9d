"""Rows of processors: turns of threads in numbers, in pixels and in tooltips."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from nptltrace.ui import protocol
from nptltrace.ui.viewer import Viewer
from tests.trace.builder import Builder, Event
from tests.ui.page import LANE, opened, serving
from tests.ui.reference import ask

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt
    from tests.ui.page import Look

START = 10**12
MS = 10**6
MERGED, OPEN = protocol.FLAGS["merged"], protocol.FLAGS["open"]
RUNNING, PREEMPTED = (protocol.STATES.index(name) for name in ("running", "preempted"))


class Turn(NamedTuple):
    """A thread's turn on a processor."""

    row: int
    begin: int
    end: int
    tid: int
    state: int


def scheduled(path: Path, rounds: int) -> tuple[Path, list[Turn]]:
    """Return a trace of six threads that take turns on three processors, and their turns."""
    chance = random.Random(3)  # noqa: S311
    events: dict[int, list[Event]] = {
        tid: [Event(START + tid, "MUTEX_TAKEN", 0x1000 * tid, 5)] for tid in range(1, 7)
    }
    turns = []
    for number in range(rounds):
        at = 10_000 * (number + 1)
        for cpu, tid in enumerate(chance.sample(sorted(events), 3)):
            if chance.random() < 0.2:
                continue  # no thread has the processor
            begin, end = at + chance.randrange(1000), at + chance.randrange(6000, 9999)
            preempted = chance.random() < 0.3
            name = "SCHED_PREEMPTED" if preempted else "SCHED_OUT"
            events[tid].append(Event(START + begin, "SCHED_IN", cpu=cpu))
            events[tid].append(Event(START + end, name, cpu=cpu))
            turns.append(Turn(cpu + 1, begin, end, tid, PREEMPTED if preempted else RUNNING))
    made = Builder(path)
    for tid, its in events.items():
        its.append(Event(START + 10_000 * (rounds + 2), "MUTEX_FREE", 0x1000 * tid, 5))
        made.thread(tid, its)
    return made.write(), turns


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize("width", [1, 100, 1500, 16384])
def test_turns_agree_with_the_trace(tmp_path: Path, width: int) -> None:
    trace, turns = scheduled(tmp_path / "scheduled.ptt", 2000)
    viewer = Viewer([trace])
    viewer.start()
    viewer.wait_ready()
    try:
        threads = ask(viewer, "rows", by="thread", limit=100)
        tids = dict(zip(threads["row"].to_pylist(), threads["tid"].to_pylist(), strict=True))
        rows = ask(viewer, "rows", by="processor", sort="row", limit=100).to_pylist()
        first = min(thread["start_ns"] for thread in threads.to_pylist())
        spans = ask(viewer, "spans", by="processor", rows=[1, 2, 3], width=width).to_pylist()
    finally:
        viewer.close()
    assert [row["label"] for row in rows] == ["processor 0", "processor 1", "processor 2"]
    for row in rows:
        own = [turn for turn in turns if turn.row == row["row"]]
        drawn = [span for span in spans if span["row"] == row["row"]]
        length = sum(turn.end - turn.begin for turn in own)
        assert row["holds"] == len(own) == sum(span["count"] for span in drawn)
        assert row["hold_ns"] == length == sum(span["busy_ns"] for span in drawn)
        for state in (RUNNING, PREEMPTED):
            counted = sum(span["count"] for span in drawn if span["state"] == state)
            assert counted == sum(turn.state == state for turn in own)
    alone = {
        Turn(
            span["row"], span["t_ns"] - first + 1, span["t_ns"] + span["dur_ns"] - first + 1,
            tids[span["other"]], span["state"],
        )
        for span in spans
        if not span["flags"] & MERGED
    }  # fmt: skip
    assert alone <= set(turns)
    if width == 16384:  # finer than the shortest turn
        assert alone == set(turns)


@pytest.mark.usefixtures("native_in_process")
def test_unknown_parts_of_turns_are_shown_as_unknown(tmp_path: Path) -> None:
    made = Builder(tmp_path / "open.ptt")
    made.thread(1, [
        Event(START, "MUTEX_TAKEN", 0x4040, 5), Event(START + 10, "SCHED_IN", cpu=3),
        Event(START + 20, "SCHED_LOST"), Event(START + 30, "SCHED_IN", cpu=3),
        Event(START + 40, "MUTEX_FREE", 0x4040, 5),
    ])  # fmt: skip
    viewer = Viewer([made.write()])
    viewer.start()
    viewer.wait_ready()
    try:
        [thread] = ask(viewer, "rows", by="thread", limit=10).to_pylist()
        spans = ask(viewer, "spans", by="processor", rows=[4]).to_pylist()
    finally:
        viewer.close()
    # The time before the lost switches is unknown. The end of the second turn is unknown, too.
    found = [(span["t_ns"], span["dur_ns"], span["flags"]) for span in spans]
    assert found == [(thread["start_ns"] + 30, 10, OPEN)]


def two_threads(path: Path) -> Path:
    """Return a trace of 100 ms.

    Processor 0 has the first thread, then the second thread, then none. Processor 1 has the first.
    """

    def event(ms: int, name: str, cpu: int, thing: int = 0) -> Event:
        return Event(START + ms * MS, name, thing, 5 if thing else 0, cpu)

    made = Builder(path)
    made.thread(1, [
        event(0, "MUTEX_TAKEN", 0, 0x4040), event(40, "SCHED_PREEMPTED", 0),
        event(60, "SCHED_IN", 1), event(80, "SCHED_OUT", 1), event(95, "SCHED_IN", 1),
        event(100, "MUTEX_FREE", 1, 0x4040),
    ])  # fmt: skip
    made.thread(2, [
        event(40, "MUTEX_TAKEN", 0, 0x5050), event(60, "SCHED_OUT", 0), event(90, "SCHED_IN", 0),
        event(100, "MUTEX_FREE", 0, 0x5050),
    ])  # fmt: skip
    return made.write()


def point(look: Look, name: str, share: float) -> tuple[float, float]:
    """Return the place of a time of a processor in the window."""
    x, y = look.page.evaluate(
        """([name, share]) => {
            const pane = document.querySelector('section[aria-label=Processors]');
            const row = [...pane.querySelectorAll('.name.row')]
                .find(row => row.querySelector('.label').textContent === name);
            const box = pane.querySelector('canvas.spans').getBoundingClientRect();
            return [box.left + share * box.width, row.getBoundingClientRect().top + 10];
        }""",
        [name, share],
    )
    return x, y


def agrees(look: Look) -> None:
    """Check the colours in both rows, the tooltips, and the selection after a click."""
    tokens = ["--owner-4", "--owner-1", "--state-free"]
    expected: dict[str, Any] = {"processor 0": (0.4, 0.3, 0.3), "processor 1": (0.25, 0, 0.75)}
    for name, shares in expected.items():
        look.wait_for(
            f"([asked, shares]) => {{ const f = ({LANE})(asked); "
            "return f && shares.every((share, n) => Math.abs(share - f[n]) < 0.02); }",
            [[name, tokens, "Processors"], shares],
        )
    page = look.page
    labels = page.locator("section[aria-label=Threads] .name.row .label").all_inner_texts()
    assert len(labels) == 2
    for name, share, ended in (
        ("processor 0", 0.2, "lost the processor"), ("processor 0", 0.5, "gave the processor up"),
        ("processor 1", 0.7, "gave the processor up"), ("processor 1", 0.975, "is not known"),
    ):  # fmt: skip
        page.mouse.move(*point(look, name, share))
        page.locator(".tooltip", has_text=f"ran on {name}").filter(has_text=ended).wait_for()
    selected = "section[aria-label=Threads] .name.row[aria-selected=true] .label"
    titles = set()
    for share in (0.2, 0.5):
        page.mouse.move(*point(look, "processor 0", share))
        title = page.locator(".tooltip .title").inner_text()
        titles.add(title)
        page.mouse.click(*point(look, "processor 0", share))
        look.wait_for(
            f"""title => {{
                const label = document.querySelector("{selected}");
                return label && title === `${{label.textContent}} ran on processor 0`;
            }}""",
            title,
        )
    assert len(titles) == 2
    page.mouse.click(*point(look, "processor 0", 0.75))
    page.locator(selected).wait_for(state="detached")


@pytest.mark.parametrize("exported", [False, True])
def test_processors_are_painted(
    browser: Browser, ptt: Ptt, tmp_path: Path, *, exported: bool
) -> None:
    trace, file = two_threads(tmp_path / "two.ptt"), tmp_path / "two.html"
    view = f"#arrows=0&t=0-{100 * MS}"
    if exported:
        ptt("ui", "--export", file, trace)
        with opened(browser, file.as_uri() + view, color_scheme="light") as look:
            agrees(look)
        return
    with serving(ptt, trace) as url, opened(browser, url + view, color_scheme="light") as look:
        agrees(look)
        look.shot("processors")


def test_a_trace_without_switches_has_no_processors(browser: Browser, story_url: str) -> None:
    with opened(browser, story_url) as look:
        look.page.locator("section[aria-label=Locks] .name.row").first.wait_for()
        look.page.wait_for_load_state("networkidle")
        assert look.page.locator("section[aria-label=Processors]").is_hidden()
