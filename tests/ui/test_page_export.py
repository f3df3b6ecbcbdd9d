"""`ptt ui --export`: a file, opened from disk, that asks no server and shows the same."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from nptltrace.ui.page_file import page
from nptltrace.ui.viewer import Viewer
from tests.trace.builder import Builder, Event
from tests.ui.page import opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support import Ptt


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, story: Path) -> Path:
    path = tmp_path_factory.mktemp("exported") / "story.html"
    ptt("ui", "--export", path, story)
    return path


def test_same_numbers_and_chains_without_a_server(
    browser: Browser, ptt: Ptt, story: Path, exported: Path
) -> None:
    reported = json.loads(ptt("report", "--format", "json", story).stdout)
    with opened(browser, exported.as_uri(), offline=True) as look:
        look.page.wait_for_selector(".events-body .table-row")
        look.panel("contention")
        rows = {row["label"]: int(row["wait_ns"]) for row in look.grid("Contention")}
        for item in reported["objects"]:
            assert rows[f"{item['kind']} {item['name']}"] == item["wait_ns"]
        look.page.locator("#panel-contention .rows .table-row", has_text="mutex outer").click()
        look.wait_for_address("sel=wait")
        look.page.locator("#details").get_by_text("story").first.wait_for()
        look.shot("exported")
        for panel in ("findings", "statistics", "order", "critical", "losses"):
            look.panel(panel)
            look.page.locator(f"#panel-{panel} .asking").first.wait_for(state="hidden")
        assert look.page.locator("#panel-order svg .edge.cycle").count() == 2
        # The page requested only the file itself.
        assert {url.partition("#")[0] for url in look.asked} == {exported.as_uri()}


def test_the_file_filters_and_searches_events(
    browser: Browser, ptt: Ptt, story: Path, exported: Path
) -> None:
    reported = ptt("view", "--event", "COND", story).stdout.splitlines()
    with opened(browser, exported.as_uri()) as look:
        look.page.fill("#filter-event", "COND")
        look.wait_for_events(reported)
        look.page.fill("#search-text", "outer")
        look.page.locator("#search-hits .hit", has_text="lock").first.click()
        look.wait_for_address("sel=object")


def test_the_file_has_a_part_of_the_trace(
    browser: Browser, ptt: Ptt, story: Path, tmp_path: Path
) -> None:
    whole = json.loads(ptt("report", "--format", "json", story).stdout)
    middle = (whole["first_ns"] + whole["last_ns"]) // 2
    path = tmp_path / "part.html"
    ptt("ui", "--export", path, "--to", f"{middle}ns", story)
    reported = json.loads(ptt("report", "--format", "json", "--to", f"{middle}ns", story).stdout)
    with opened(browser, path.as_uri()) as look:
        look.panel("contention")
        look.grid("Contention")
        totals = look.page.locator("#panel-contention .totals")
        assert totals.get_attribute("data-wait-ns") == str(reported["wait_ns"])
        look.panel("losses")
        look.page.get_by_text("This is a part of a trace").wait_for()


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize("lengths", [(), (0,), (9, 4), (0, 0, 0)])
def test_the_last_events_are_in_the_file(
    native_stage: Path, tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    """This also holds if there are no other events, or if all have the same time."""
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    made, now = Builder(tmp_path / "made.ptt"), 10**12
    events = [Event(now, "THREAD_BEGIN", 1, 5, fields={"serial": 1})]
    for length in lengths:
        events += [Event(now, "MUTEX_TAKEN", 64, 5), Event(now + length, "MUTEX_FREE", 64, 6)]
        now += length
    made.thread(1, events)
    viewer = Viewer([made.write()])
    viewer.start()
    viewer.wait_ready()
    try:
        html = page(viewer).decode()
    finally:
        viewer.close()
    packed = dict(re.findall(r'id="ptt-([\w-]+)">([^<]*)<', html))
    kept = {name: gzip.decompress(base64.b64decode(text)) for name, text in packed.items()}
    assert json.loads(kept["statistics"])["events"] == len(events)
    assert pa.ipc.open_stream(kept["events"]).read_all().num_rows == len(events)
    assert json.loads(kept["trace"])["end_ns"] == now - 10**12


def test_two_viewers_at_once_write_the_same_file(
    ptt: Ptt, native_stage: Path, tmp_path: Path
) -> None:
    """Both write the same bytes, and so does a third viewer that reads their kept files."""
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    made = Builder(tmp_path / "made.ptt")
    for tid in range(1, 9):
        events = [(n, name) for n in range(200) for name in ("MUTEX_TAKEN", "MUTEX_FREE")]
        made.thread(tid, [Event(10**12 + n * tid, name, 64 * tid, 5) for n, name in events])
    trace = made.write()
    pages = [tmp_path / f"{name}.html" for name in ("one", "two", "kept")]
    writers = [
        subprocess.Popen(ptt.command("ui", "-q", "--export", page, trace), env=ptt.environment())
        for page in pages[:2]
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    ptt("ui", "--export", pages[2], trace)
    assert len({page.read_bytes() for page in pages}) == 1
    assert not [path.name for path in (trace / ".ptt-view").iterdir() if path.name[0] == "."]


def test_only_the_script_of_the_page_may_run(ptt: Ptt, native_stage: Path, tmp_path: Path) -> None:
    """The policy lists the script and the sheet of the page by their hashes, and nothing else."""
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    made = Builder(tmp_path / "made.ptt")
    made.thread(1, [Event(10**12, "MUTEX_TAKEN", 64, 5), Event(10**12 + 9, "MUTEX_FREE", 64, 6)])
    ptt("ui", "--export", tmp_path / "page.html", made.write())
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', html)
    allowed = {name: rest for name, *rest in (part.split() for part in policy.split(";"))}
    assert allowed["default-src"] == ["'none'"]
    assert "unsafe" not in policy
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in inside]
        assert sums
        assert allowed[name] == [f"'sha256-{one.decode()}'" for one in sums]


def test_an_export_does_not_replace_a_file(ptt: Ptt, story: Path, tmp_path: Path) -> None:
    path = tmp_path / "there.html"
    path.write_text("mine")
    done = ptt("ui", "--export", path, story, status=2)
    assert done.stderr == f"ptt: error: {path} exists (--force replaces it)\n"
    assert path.read_text() == "mine"


def test_the_page_saves_itself(browser: Browser, ptt: Ptt, story_url: str, tmp_path: Path) -> None:
    with opened(browser, story_url, accept_downloads=True) as look:
        look.panel("contention")
        with look.page.expect_download() as download:
            look.page.get_by_role("button", name="Save as one file").click()
        path = tmp_path / "saved.html"
        download.value.save_as(path)
    with opened(browser, path.as_uri()) as look:
        look.page.wait_for_selector(".events-body .table-row")
