"""Plain events reach a handler in registers, if it takes them so and no filter is set."""

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
    """Plain events use that entry, and keep their place among the other events."""
    usual = traced(program("rwlock")).only
    run = traced_plain(program("rwlock"))
    assert run.stderr == f"plain {_plain(run.only)}\n"
    assert _plain(run.only) > 0
    assert Counter(run.only.domain("RWLOCK")) == Counter(usual.domain("RWLOCK"))


def test_a_filter_comes_before_plain_events(
    program: Callable[[str], Path], traced_plain: Runner
) -> None:
    """With a filter, only matching events arrive, and they use the general entry."""
    run = traced_plain(program("rwlock"), tracing_arg="filter=rwlock=8")
    assert run.stderr == "plain 0\n"
    assert set(run.only.domain("RWLOCK")) == {"RWLOCK_TAKEN_READ"}
