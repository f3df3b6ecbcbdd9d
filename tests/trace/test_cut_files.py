"""A file that is cut or removed during the reading causes one clear line, never a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nptltrace.api import Traceset
from nptltrace.errors import TraceFormatError
from nptltrace.trace.statistics import statistics
from tests.support import small_file_system
from tests.trace.builder import Builder, Event
from tests.trace.conftest import T0

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

PACKET, PACKETS = 1500, 24
SHORTER = "became shorter while it was read"

FOREIGN = """
import mmap, sys
from nptltrace.api import Traceset

Traceset(sys.argv[1])
with open(sys.argv[2], "w+b") as file:
    file.write(bytes(8192))
    file.flush()
    mapped = mmap.mmap(file.fileno(), 8192)
    file.truncate(1)
    mapped[5000]
"""


@pytest.fixture
def long_trace(tmp_path: Path) -> Path:
    """A trace of many pages."""
    made = Builder(tmp_path / "long.ptt")
    times = [range(n * PACKET, (n + 1) * PACKET) for n in range(PACKETS)]
    made.thread(
        101, *([Event(T0 + 10 * i, "COND_SIGNAL_OUT", 64 + i) for i in packet] for packet in times)
    )
    return made.write()


def stream(trace: Path) -> Path:
    return trace / "stream-00000"


@pytest.mark.parametrize("left", [0, 100, 5000, 300_000])
def test_reading_a_cut_file_is_an_error(long_trace: Path, left: int) -> None:
    ts, source = Traceset(long_trace), Traceset(long_trace)
    ts.seek_time(0)
    assert ts.middle_position(None, 5).num_rows == 5
    os.truncate(stream(long_trace), left)
    with pytest.raises(TraceFormatError, match=SHORTER):
        ts.events()
    with pytest.raises(TraceFormatError, match=SHORTER):
        ts.middle_time()
    with pytest.raises(TraceFormatError, match=SHORTER):
        statistics(source)
    # Opened again, the trace is cut off, and the remaining part is readable.
    again = Traceset(long_trace)
    assert again.events().num_rows == len(range(PACKET, left // 32 + 1, PACKET)) * PACKET or left
    assert again.damages() or not left


def test_missing_fields_are_never_read_as_zeros(long_trace: Path) -> None:
    ts = Traceset(long_trace)
    cursor = ts.reader
    table = ts.middle_position(None, 3, fields=[])
    assert table.num_rows == 3
    os.truncate(stream(long_trace), 128)
    with pytest.raises(TraceFormatError, match=SHORTER):
        ts.middle_position(None, PACKET * 2, fields=["result"])
    with pytest.raises(TraceFormatError, match=SHORTER):
        cursor.damages()


def test_a_command_reports_a_cut_file_in_one_line(long_trace: Path, ptt: Ptt) -> None:
    running = subprocess.Popen(
        ptt.command("view", long_trace), env=ptt.environment(), encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdout is not None
    # The remaining output is more than a pipe holds.
    assert "signal" in running.stdout.readline()
    os.truncate(stream(long_trace), 5000)
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 2
    assert errors == f"ptt: error: {stream(long_trace)}: {SHORTER}\n"
    assert out.count("\n") < PACKET * PACKETS


def test_removed_files_stay_readable(long_trace: Path) -> None:
    ts = Traceset(long_trace)
    stream(long_trace).unlink()
    assert ts.events().num_rows == PACKET * PACKETS


def test_other_faults_are_not_caught(long_trace: Path, tmp_path: Path, ptt: Ptt) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN, long_trace, tmp_path / "other"],
        env=ptt.environment(), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGBUS


def test_a_part_that_does_not_fit_on_the_disk_leaves_no_file(
    ptt: Ptt, small_trace: Path, tmp_path: Path
) -> None:
    with small_file_system(tmp_path / "small", "64k") as place:
        (place / "fill").write_bytes(bytes(60 << 10))
        said = ptt("cut", "--count", "5", "-o", place / "cut.ptt", small_trace, status=2).stderr
        assert said.count("\n") == 1
        assert not (place / "cut.ptt").exists()


def test_an_error_on_writing_names_the_requested_path(
    ptt: Ptt, small_trace: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "no" / "such"
    for form in ("csv", "parquet"):
        said = ptt("export", "--format", form, "-o", wanted, small_trace, status=2).stderr
        assert said == f"ptt: error: {wanted}: No such file or directory\n"
