"""Facts left by a killed recorder may be damaged: PTT saves the events all the same."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding.libpttcollect import Collector
from nptltrace.recording.settings.options import BufferOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

LATE = (1 << 63) - 1


@pytest.fixture
def killed(tmp_path: Path, native_in_process: None) -> Path:
    """Return a trace of a killed recorder, with its buffers beside it."""
    trace, session = tmp_path / "run.ptt", tmp_path / f"ptt-{os.getuid()}-1-0"
    (trace / "info").mkdir(parents=True)
    session.mkdir()
    options = BufferOptions(budget=1 << 20).native()
    Collector(session / "segment", trace, options).destroy()
    note = {"trace": str(trace), "recorder": 1 << 30, "start": None, "mounts": 0}
    (session / "session.json").write_text(json.dumps(note))
    return trace


@pytest.mark.parametrize(
    "facts",
    [
        {"clock": {"start": [], "start_monotonic_ns": 1}},
        {"clock": {"start": 1, "start_unix_ns": 1e300, "start_monotonic_ns": 1 << 80}},
        {"clock": {"start": 0, "start_unix_ns": 0, "start_monotonic_ns": LATE}},
        {"clock": {"start": LATE, "start_unix_ns": 0, "start_monotonic_ns": 1}},
        {"clock": [], "boot_id": "another"},
        {"clock": {"frequency": 0}, "boot_id": "another"},
        {"clock": {"frequency": "fast", "unix_ns_at_zero": None}, "boot_id": []},
        {"command": [1, None], "nptl": None, "handler": 7, "level": {}, "filter": []},
        {"hostname": 3, "kernel": [], "machine": None, "libc": 0.5, "cpus": "many"},
        {"max_file_size": -1, "max_files": "x", "session_dir": 1, "uuid": 4},
    ],
)
def test_senseless_facts_do_not_stop_recovery(
    killed: Path, ptt: Ptt, facts: dict[str, Any]
) -> None:
    session = killed.parent / f"ptt-{os.getuid()}-1-0"
    written = killed / "info" / "session.json"
    written.write_text(json.dumps({"session_dir": str(session)} | facts))
    ptt("recover", session)
    saved = json.loads(written.read_text())
    assert saved["state"] == "recovered"
    assert saved["clock"]["frequency"] > 0
    assert not session.exists()
    ptt("stat", killed)


@pytest.mark.parametrize("where", ["session.json", "processes.jsonl"])
def test_endlessly_nested_facts_do_not_stop_recovery(killed: Path, ptt: Ptt, where: str) -> None:
    session = killed.parent / f"ptt-{os.getuid()}-1-0"
    (killed / "info" / where).write_text("[" * 100_000 + "\n")
    ptt("recover", session)
    assert json.loads((killed / "info" / "session.json").read_text())["state"] == "recovered"
    ptt("cut", "--count", "1", "-o", killed.parent / "cut.ptt", killed)


def test_an_endlessly_nested_note_does_not_stop_recovery(killed: Path, ptt: Ptt) -> None:
    session = killed.parent / f"ptt-{os.getuid()}-1-0"
    (session / "session.json").write_text("[" * 100_000)
    assert "its trace directory is gone" in ptt("recover", session, status=2).stderr
