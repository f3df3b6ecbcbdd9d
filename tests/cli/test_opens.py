"""Each command opens a trace once: what is opened again is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nptltrace import cli
from nptltrace.analysis.trace_data import TraceData
from nptltrace.trace import traceset, tsdl_reader
from nptltrace.trace.symbols.lookup import Symbols
from tests.analysis.story import A, Story

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "stat TRACE", "view --count 1 TRACE", "report TRACE", "report --by stack TRACE",
    "report --by stack --format json TRACE", "report --gil TRACE", "check TRACE", "verify TRACE",
    "sql TRACE waits", "export --format csv --table waits -o - TRACE",
    "export --format folded -o - TRACE", "export --format chrome -o - TRACE",
)  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, native_in_process: None) -> list[Path]:
    """The paths of the metadata that are read from now on."""
    del native_in_process
    paths: list[Path] = []
    read = tsdl_reader.read_metadata

    def noting(path: Path) -> Any:
        paths.append(path)
        return read(path)

    monkeypatch.setattr(traceset, "read_metadata", noting)
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
