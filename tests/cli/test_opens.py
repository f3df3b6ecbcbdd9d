"""Each command and the viewer open a trace once: another opening would read it again."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace import cli
from nptltrace._paths import page_dir
from nptltrace.analysis.trace_data import TraceData
from nptltrace.errors import NativeFilesMissing
from nptltrace.trace import open_traces, traceset, tsdl_reader
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.ui import protocol
from nptltrace.ui.server import serving
from nptltrace.ui.viewer import Viewer
from tests.analysis.story import A, Story
from tests.ui.reference import ask

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

COMMANDS = (
    "stat TRACE", "view --count 1 TRACE", "report TRACE", "report --by stack TRACE",
    "report --by stack --format json TRACE", "report --gil TRACE", "check TRACE", "verify TRACE",
    "sql TRACE waits", "export --format csv --table waits -o - TRACE",
    "export --format folded -o - TRACE", "export --format chrome -o - TRACE",
)  # fmt: skip

# Threads start and end for some seconds, so the recording has more files each time.
COMES_AND_GOES = r"""
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	for (int round = 0; round < 40; round++) {
		pthread_t thread;

		pthread_mutex_lock(&lock);
		pthread_create(&thread, NULL, take, NULL);
		usleep(100000);
		pthread_mutex_unlock(&lock);
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, native_in_process: None) -> list[Path]:
    """The paths of all metadata files that are read from now on."""
    del native_in_process
    paths: list[Path] = []
    read = tsdl_reader.read_metadata

    def noting(path: Path) -> Any:
        paths.append(path)
        return read(path)

    monkeypatch.setattr(open_traces, "read_metadata", noting)
    return paths


def test_commands_open_a_trace_once(
    opened: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).write_to(tmp_path / "made.ptt")
    for command in COMMANDS:
        opened.clear()
        words = [str(trace) if word == "TRACE" else word for word in command.split()]
        assert (command, cli.main(words), opened) == (command, 0, [trace])
    assert capsys.readouterr().out


def test_findings_and_reports_of_users_read_the_opened_trace(
    opened: list[Path], tmp_path: Path
) -> None:
    trace = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).write_to(tmp_path / "made.ptt")
    source = traceset.Traceset(trace)
    data = TraceData(source, Symbols(source))
    assert data.table("holds").num_rows == 1
    assert data.sql("select count(*) as n from holds").to_pylist() == [{"n": 1}]
    data.close()
    assert opened == [trace]


def ask_everything(viewer: Viewer) -> None:
    """Ask all endpoints that read the trace, about the whole trace and about a range."""
    trace = ask(viewer, "trace")
    rows = ask(viewer, "rows", by="thread")["row"].to_pylist()
    spans = ask(viewer, "spans", by="thread", rows=rows, width=1000).to_pylist()
    hold = next(span for span in spans if span["lane"] > 0)
    required: dict[str, dict[str, Any]] = {
        "rows": {"by": "thread"},
        "spans": {"by": "thread", "rows": rows},
        "arrows": {"rows": rows},
        "hold": {name: hold[name] for name in ("row", "lane", "t_ns")},
        "search": {"q": "a"},
    }
    not_asked = {"wait", "diff", "cut", "live", "export", protocol.INVITE}
    for endpoint in protocol.ENDPOINTS:
        if endpoint.name in not_asked:
            continue
        arguments = required.get(endpoint.name, {})
        ask(viewer, endpoint.name, **arguments)
        if {"from_ns", "to_ns"} <= {parameter.name for parameter in endpoint.parameters}:
            window = {"from_ns": trace["first_ns"], "to_ns": trace["end_ns"] - 1}
            ask(viewer, endpoint.name, **(arguments | window))


def test_the_viewer_opens_a_trace_once(
    opened: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).write_to(tmp_path / "made.ptt")
    before = Story().create(1).lock(1, A).unlock(1, A).write_to(tmp_path / "before.ptt")

    def serve(viewer: Viewer, *_: Any, **_options: Any) -> None:
        viewer.start()
        try:
            assert ask(viewer, "diff", by="object")
            viewer.wait_ready()
            ask_everything(viewer)
            viewer.cut(-1, -1)
        finally:
            viewer.close()

    monkeypatch.setattr(serving, "serve", serve)
    # The second time, the viewer uses files that it kept the first time.
    for _ in range(2):
        opened.clear()
        assert cli.main(["ui", "--no-browser", "--before", str(before), str(trace)]) == 0
        assert sorted(opened) == [before, trace]


def test_an_exported_page_opens_a_trace_once(opened: list[Path], tmp_path: Path) -> None:
    try:
        page_dir()
    except NativeFilesMissing:
        pytest.skip("the page was not built: node and npm are missing")
    trace = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).write_to(tmp_path / "made.ptt")
    assert cli.main(["ui", "--export", str(tmp_path / "page.html"), str(trace)]) == 0
    assert opened == [trace]


def test_the_viewer_reads_on_in_a_live_recording_without_opening_it_again(
    opened: list[Path], ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    command = ptt.command("record", "-q", "-o", trace_dir, "--", compile_c(COMES_AND_GOES))
    with subprocess.Popen(command, env=ptt.environment()) as recorder:
        until = time.monotonic() + 60
        while not (trace_dir / "metadata").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        viewer = Viewer([trace_dir], follow=True)
        viewer.start()
        try:
            seen = set()
            while recorder.poll() is None:
                ask(viewer, "contention", by="object", from_ns=0)
                seen.add(ask(viewer, "trace")["state"])
            assert "running" in seen
            viewer.wait_ready()
            ask_everything(viewer)
            report = ask(viewer, "contention", by="object")["report"]
        finally:
            viewer.close()
    assert opened == [trace_dir]
    reported = json.loads(ptt("report", "--format", "json", trace_dir).stdout)
    assert report["wait_ns"] == reported["wait_ns"]
    assert report["objects"] == reported["objects"]
