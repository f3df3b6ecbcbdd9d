"""An option that matches nothing is reported, with the names in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder

T0 = 10**12


@pytest.fixture
def deadlock(trace_dir: Path) -> Path:
    """Return a trace of two threads that wait for each other's lock, 20 ns from its start."""
    made = Builder(trace_dir)
    for thread, mine, other in ((1, 64, 128), (2, 128, 64)):
        made.thread(
            thread,
            [
                Event(T0, "MUTEX_TAKEN", mine, 5),
                Event(T0 + 20, "MUTEX_WAIT", other, 6, fields={"owner": 3 - thread}),
            ],
        )
    return made.write()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "10h"], "nothing comes after --from 36000.000 s: the trace has events from 0"),
        (["--to", "0"], "nothing comes before --to 0 ns: the trace has events from 0 ns to 20 ns"),
        (["--from", "10ns", "--to", "10ns"], "nothing lies between --from 10 ns and --to 10 ns"),
        (["--tid", "99"], "no thread matches --tid 99: the trace has threads 1, 2"),
        (["--pid", "7"], "no thread matches --pid 7: the trace has process"),
        (["--site", "zzz"], "no call site matches --site zzz: the trace has "),
    ],
)
@pytest.mark.parametrize("command", ["report", "view"])
def test_report_and_view_warn_without_a_match(
    ptt: Ptt, deadlock: Path, command: str, options: list[str], message: str
) -> None:
    (line,) = ptt(command, *options, deadlock).stderr.splitlines()
    assert line.startswith(f"ptt: warning: {message}")


def test_a_missing_object_is_reported(ptt: Ptt, deadlock: Path) -> None:
    assert "no object matches --object 0x12" in ptt("report", "--object", "0x12", deadlock).stderr
    reported = ptt("view", "--object", "0x12", deadlock).stderr
    assert "no event matches: the trace has 4 events" in reported


def test_similar_names_are_suggested(
    record: Recorder, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = record(program("contention"))
    message = ptt("report", "--site", "wait_for_wrk", trace).stderr
    assert "no call site matches --site wait_for_wrk" in message
    assert message.endswith("did you mean wait_for_work?\n")
    message = ptt("report", "--object", "Hot", trace, status=2).stderr
    assert message.endswith("called Hot; did you mean hot?\n")


def test_options_that_match_are_not_mentioned(ptt: Ptt, deadlock: Path) -> None:
    for options in (["--from", "10ns"], ["--tid", "1"], ["--object", "0x40"], []):
        assert not ptt("report", *options, deadlock).stderr
        assert not ptt("view", *options, deadlock).stderr


def test_window_of_sql_export_cut_and_verify(ptt: Ptt, deadlock: Path, tmp_path: Path) -> None:
    behind = "nothing comes after --from 10.000 s"
    assert behind in ptt("sql", "--from", "10s", deadlock, "from waits").stderr
    assert behind in ptt("cut", "--from", "10s", "-o", tmp_path / "cut", deadlock).stderr
    assert behind in ptt("verify", "--from", "10s", deadlock).stderr
    export = ["export", "--format", "csv", "--table", "waits", "-o", "-", "--from", "10s"]
    assert behind in ptt(*export, deadlock).stderr


@pytest.mark.parametrize("command", ["report", "view", "sql", "export", "cut", "verify", "ui"])
def test_window_that_ends_before_it_begins(ptt: Ptt, deadlock: Path, command: str) -> None:
    reported = ptt(command, "--from", "2s", "--to", "1s", deadlock, status=2).stderr
    assert "begins (--from) after it ends (--to)" in reported
    assert len(reported.splitlines()) == 1


def test_findings_outside_the_window_are_left_out(ptt: Ptt, deadlock: Path) -> None:
    def findings(*options: str) -> str:
        return ptt("sql", *options, deadlock, "select kind from findings", "--format", "csv").stdout

    assert "deadlock" in findings()
    assert "deadlock" in findings("--from", "10ns")
    assert findings("--from", "10s") == "kind\n"
    assert findings("--to", "10ns") == "kind\n"


def test_to_of_an_export_is_a_time_or_a_format(ptt: Ptt, deadlock: Path) -> None:
    def exported(*options: str) -> str:
        return ptt("export", *options, "--table", "events", "-o", "-", deadlock).stdout

    whole = exported("--format", "csv")
    assert exported("--to", "csv") == whole
    part = exported("--format", "csv", "--to", "10ns")
    assert len(part.splitlines()) == 3
    assert exported("--to", "csv", "--until", "10ns") == part
    assert exported("--to", "10ns", "--to", "csv") == part
    assert "neither a time" in ptt("export", "--to", "cvs", "-o", "-", deadlock, status=2).stderr
    assert "no --format given" in ptt("export", "-o", "-", deadlock, status=2).stderr
    # The end of a name that belongs to one format stands for the format.
    out = deadlock.parent / "out.speedscope.json"
    ptt("export", "-o", out, deadlock)
    assert "speedscope.app" in out.read_text()
