"""Events without fields go to a handler in registers, if it takes them and no filter is there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.tracer.counted import Process, Runner


def _plain(process: Process) -> int:
    return sum(not event.fields and not event.text for event in process.events)


def test_events_without_fields(
    program: Callable[[str], Path], traced: Runner, traced_plain: Runner
) -> None:
    """All that have none come that way, at their places among the others."""
    usual = traced(program("rwlock")).only
    run = traced_plain(program("rwlock"))
    assert run.stderr == f"plain {_plain(run.only)}\n"
    assert _plain(run.only) > 0
    assert Counter(run.only.domain("RWLOCK")) == Counter(usual.domain("RWLOCK"))


def test_a_filter_stands_before_it(program: Callable[[str], Path], traced_plain: Runner) -> None:
    """Events that pass a filter come by the entry for all of them, and no others come."""
    run = traced_plain(program("rwlock"), tracing_arg="filter=rwlock=8")
    assert run.stderr == "plain 0\n"
    assert set(run.only.domain("RWLOCK")) == {"RWLOCK_TAKEN_READ"}
