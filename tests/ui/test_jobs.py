"""Answers that take long: they show progress, are kept, and are given up when nobody asks."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING

import pytest

from nptltrace.ui import jobs
from nptltrace.ui.jobs import Jobs, NotReady

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_SOON_S", 0.01)
    monkeypatch.setattr(jobs, "_UNWANTED_S", PATIENCE_S)


def wait_for(asks: Callable[[], str]) -> str:
    while True:
        try:
            return asks()
        except NotReady:
            time.sleep(0.01)


def test_every_client_learns_the_progress() -> None:
    half, go, calls = Event(), Event(), []
    reported = Event()

    def find(step: Callable[[float], None]) -> str:
        calls.append(1)
        step(0.5)
        half.set()
        assert go.wait(PATIENCE_S)
        return "found"

    asked = Jobs(reported.set)
    with pytest.raises(NotReady):
        asked.ask("key", find)
    assert half.wait(PATIENCE_S)
    with pytest.raises(NotReady) as later:
        asked.ask("key", find)
    assert later.value.progress == pytest.approx(0.5)
    go.set()
    assert wait_for(lambda: str(asked.ask("key", find))) == "found"
    assert reported.wait(PATIENCE_S)
    assert asked.ask("key", find) == "found"
    assert len(calls) == 1
    asked.forget(0)
    assert wait_for(lambda: str(asked.ask("key", find))) == "found"
    assert len(calls) == 2
    asked.close()


@pytest.mark.parametrize("way", ["unwanted", "forgotten", "closed"])
def test_unwanted_work_is_given_up(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way == "unwanted":
        monkeypatch.setattr(jobs, "_UNWANTED_S", 0.05)
    given_up = Event()

    def find(step: Callable[[float], None]) -> None:
        try:
            while True:
                step(0.1)
                time.sleep(0.001)
        finally:
            given_up.set()

    asked = Jobs(lambda: None)
    with pytest.raises(NotReady):
        asked.ask("key", find)
    if way == "forgotten":
        asked.forget(0)
    elif way == "closed":
        asked.close()
    assert given_up.wait(PATIENCE_S)
    # The next question is not blocked.
    if way != "closed":
        assert wait_for(lambda: str(asked.ask("other", lambda _: "other"))) == "other"


def test_an_error_of_the_work_is_reported() -> None:
    def find(_: Callable[[float], None]) -> str:
        raise OSError("gone")

    asked = Jobs(lambda: None)
    with pytest.raises(OSError, match="gone"):
        wait_for(lambda: str(asked.ask("key", find)))
