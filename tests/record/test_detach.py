"""Threads that are detached: the trace says so of the right ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder


@pytest.mark.parametrize("how", ["posix", "c11"])
def test_a_thread_is_detached_by_its_creator(
    how: str, record: Recorder, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = record(program("detach_many"), how, "4000", options=("-l", "1"))
    maker: dict[str, int] = {}
    makers: list[bool] = []
    for line in ptt("view", "--format", "jsonl", trace).stdout.splitlines():
        event = json.loads(line)
        if event["event"] == "NEW_THREAD_CREATED":
            maker[event["object"]] = event["tid"]
        elif event["event"] == "THREAD_DETACH":
            makers.append(maker[event["object"]] == event["tid"])
    assert makers == [True] * 16000
