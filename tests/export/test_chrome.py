"""`ptt export --to chrome`: JSON that agrees with the trace, and that Perfetto reads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.export.programs import NAMES, PROGRAMS, WEIRD, known, stacks, waits, wakeups
from tests.export.trace_processor import query

if TYPE_CHECKING:
    from tests.support import Ptt

Exported = Callable[[str, str], Path]
_CLASSES = {"contended", "idle", "join", "timeout", "cancelled", "unknown", "gil"}


def _events(path: Path) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(path.read_bytes(), parse_float=str)
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def _ns(us: str) -> int:
    """Return microseconds with three decimals as ns."""
    whole, _, fraction = us.partition(".")
    assert len(fraction) == 3
    return int(whole) * 1000 + int(fraction)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_wait_and_wakeup_is_exported(
    exported: Exported, recorded: Callable[[str], Path], name: str
) -> None:
    trace = recorded(name)
    events = _events(exported("chrome", name))
    kernel = {tid for _, tid, *_ in waits(trace)}
    slices = [event for event in events if event["ph"] == "X"]
    found = sorted(
        (e["args"]["wait_id"], e["tid"], _ns(e["ts"]), _ns(e["dur"]), e["cat"])
        for e in slices
        if e["cat"] in _CLASSES and e["tid"] in kernel
    )
    expected = waits(trace)
    # Waits inside of other waits have their own row; its number is not a kernel thread id.
    beside = {e["args"]["wait_id"] for e in slices if e["cat"] in _CLASSES} - {w[0] for w in found}
    assert found == [wait for wait in expected if wait[0] not in beside]
    assert len(found) + len(beside) == len(expected)
    flows = {
        phase: sorted(
            (e["id"], e["tid"], _ns(e["ts"]))
            for e in events
            if e["ph"] == phase and e["cat"] == "wake-up"
        )
        for phase in "sf"
    }
    assert flows["s"] == [(wait, waker, given) for wait, waker, _, given, _ in wakeups(trace)]
    assert flows["f"] == [(wait, woken, taken) for wait, _, woken, _, taken in wakeups(trace)]


def test_waits_have_both_stacks(exported: Exported, recorded: Callable[[str], Path]) -> None:
    events = _events(exported("chrome", "contention"))
    found = {e["args"]["wait_id"]: e["args"] for e in events if e.get("cat") in _CLASSES}
    expected = stacks(recorded("contention"))
    assert expected
    for wait, (waiter, owner) in expected.items():
        assert found[wait]["stack"] == waiter
        assert not owner or found[wait]["owner_stack"] == owner
    assert all("stack" not in found[wait] for wait in set(found) - set(expected))


def test_arguments_have_the_names_of_the_tables(exported: Exported) -> None:
    events = _events(exported("chrome", "mix"))
    used = {name for event in events if event["ph"] != "M" for name in event.get("args", {})}
    assert {"wait_id", "owner_site", "waker_site", "release_site", "queue_depth", "mode"} <= used
    assert used <= known()


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_of_a_row_do_not_overlap(exported: Exported, name: str) -> None:
    events = _events(exported("chrome", name))
    rows: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["cat"] not in {"wakeup", "blocks"}:
            start = _ns(event["ts"])
            rows[event["pid"], event["tid"]].append((start, start + _ns(event["dur"])))
    assert rows
    for spans in rows.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_perfetto_reads_the_export(exported: Exported, recorded: Callable[[str], Path]) -> None:
    trace = recorded("contention")
    wrong, flows, counts = query(
        exported("chrome", "contention"),
        "select name, value from stats where value > 0 and severity = 'error'",
        "select o.name as a, i.name as b from flow join slice o on o.id = slice_out "
        "join slice i on i.id = slice_in where o.category = 'wakeup' and i.category = 'wakeup'",
        "select category, count(*) as n from slice group by 1",
    )
    assert wrong == []
    assert len(flows) == len(wakeups(trace))
    assert all(row["a"].startswith("wakes") and row["b"].startswith("woken") for row in flows)
    assert sum(row["n"] for row in counts if row["category"] in _CLASSES) == len(waits(trace))


def test_names_with_any_bytes_are_exported(exported: Exported) -> None:
    events = _events(exported("chrome", "hostile"))
    names = {e["args"]["name"].rsplit(" ", 1)[0] for e in events if e["name"] == "thread_name"}
    assert set(NAMES) <= names
    assert any(WEIRD[:500] in event["name"] for event in events)


def test_export_to_standard_output(ptt: Ptt, recorded: Callable[[str], Path]) -> None:
    done = ptt("export", "--to", "chrome", "-o", "-", recorded("contention"))
    assert json.loads(done.stdout)["displayTimeUnit"] == "ns"
    assert " holds and " in done.stderr
