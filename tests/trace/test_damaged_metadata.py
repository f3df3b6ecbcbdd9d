"""Damaged or very long metadata soon leads to an answer or an error."""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import TYPE_CHECKING

import pytest

from nptltrace.errors import TraceFormatError
from nptltrace.trace.tsdl_reader import read_metadata
from tests.trace.builder import Builder

if TYPE_CHECKING:
    from pathlib import Path

TIMES = 300_000


@pytest.mark.parametrize("block", ["trace {", "env {", "clock {"])
@pytest.mark.parametrize(
    "piece", ["a", "1", " ", "\n", '\\"', 'a = "', "a =", "{", "env {", "a = 1"]
)
def test_a_piece_that_repeats_ends_soon(trace_dir: Path, piece: str, block: str) -> None:
    trace = Builder(trace_dir).write()
    metadata = trace / "metadata"
    text = metadata.read_text()
    assert block in text
    for begin in (piece * TIMES, '"' + piece * TIMES, "\n" + piece * TIMES + "\n"):
        metadata.write_text(text.replace(block, block + begin, 1))
        start = time.process_time()
        with contextlib.suppress(TraceFormatError):
            read_metadata(trace)
        assert time.process_time() - start < 10


def test_a_number_with_many_digits_ends_soon(trace_dir: Path) -> None:
    trace = Builder(trace_dir).write()
    metadata = trace / "metadata"
    text = metadata.read_text()
    metadata.write_text(text.replace("env {", f"env {{ odd = {'9' * 5000};", 1))
    assert read_metadata(trace).env["odd"] == "9" * 5000
    metadata.write_text(re.sub(r"freq = \d+", f"freq = {'9' * 5000}", text))
    with pytest.raises(TraceFormatError, match="freq is not a possible number"):
        read_metadata(trace)


def test_a_sparse_file_ends_soon(trace_dir: Path) -> None:
    trace = Builder(trace_dir).write()
    os.truncate(trace / "metadata", 1 << 29)
    with pytest.raises(TraceFormatError, match="too large"):
        read_metadata(trace)
