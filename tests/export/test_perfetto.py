"""`ptt export --to perfetto`, read by Perfetto's trace processor and by its own message classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.export.programs import (
    NAMES,
    PROGRAMS,
    WEIRD,
    holds,
    known,
    owners,
    stacks,
    waits,
    wakeups,
)
from tests.export.trace_processor import query
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

_WAITS = """
select extract_arg(s.arg_set_id, 'debug.wait_id') as wait, thread.tid, s.ts, s.dur, s.category
from slice s join thread_track t on s.track_id = t.id join thread using (utid)
where s.category in ('contended', 'idle', 'join', 'timeout', 'cancelled', 'unknown', 'gil')
order by 1"""
_WAKEUPS = """
select o.ts as given, i.ts as taken, a.tid as waker, b.tid as woken
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
join thread_track t on o.track_id = t.id join thread a on a.utid = t.utid
join thread_track u on i.track_id = u.id join thread b on b.utid = u.utid
where o.category = 'wakeup'"""
_BLOCKED = """
select extract_arg(i.arg_set_id, 'debug.wait_id') as wait, a.tid as owner
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
join thread_track t on o.track_id = t.id join thread a on a.utid = t.utid
where o.category = 'blocks'"""
_QUESTIONS = {
    "wrong": "select name, value from stats where value > 0 and severity = 'error'",
    "waits": _WAITS,
    "wakeups": _WAKEUPS,
    "blocked": _BLOCKED,
    "holds": "select thread.tid, s.ts, s.dur from slice s join thread_track t on s.track_id = t.id "
    "join thread using (utid) where s.category = 'hold'",
    "owners": "select ts, dur from slice where category = 'owner'",
    "waiting": "select t.id, max(value) as most, min(value) as least from counter c "
    "join track t on c.track_id = t.id group by 1",
    "stacks": "select extract_arg(arg_set_id, 'debug.wait_id') as wait, "
    "extract_arg(arg_set_id, 'debug.stack') as waiter, "
    "extract_arg(arg_set_id, 'debug.owner_stack') as owner from slice where wait is not null",
    "notes": "select distinct key from args where key glob 'debug.*'",
    "threads": "select name from thread",
    "tracks": "select distinct name from track",
}


@pytest.fixture(scope="module")
def answers(
    exported: Callable[[str, str], Path],
) -> Callable[[str], dict[str, list[dict[str, Any]]]]:
    """The answers of trace processor about a program's export, by question."""

    @cache
    def get(name: str) -> dict[str, list[dict[str, Any]]]:
        found = query(exported("perfetto", name), *_QUESTIONS.values())
        return dict(zip(_QUESTIONS, found, strict=True))

    return get


Answers = Callable[[str], dict[str, list[dict[str, Any]]]]


def test_arguments_have_the_names_of_the_tables(answers: Answers) -> None:
    used = {row["key"].removeprefix("debug.") for row in answers("mix")["notes"]}
    assert {"wait_id", "owner_site", "waker_site", "release_site", "queue_depth", "mode"} <= used
    assert used <= known()


@pytest.mark.parametrize("name", PROGRAMS)
def test_trace_processor_reads_every_wait_and_wakeup(
    answers: Answers, recorded: Callable[[str], Path], name: str
) -> None:
    found, trace = answers(name), recorded(name)
    assert found["wrong"] == []
    rows = [(r["wait"], r["tid"], r["ts"], r["dur"], r["category"]) for r in found["waits"]]
    assert rows == waits(trace)
    assert len(rows) > 5
    flows = sorted((r["waker"], r["woken"], r["given"], r["taken"]) for r in found["wakeups"])
    assert flows == sorted(row[1:] for row in wakeups(trace))


@pytest.mark.parametrize("name", PROGRAMS)
def test_holds_are_at_threads_and_at_objects(
    answers: Answers, recorded: Callable[[str], Path], name: str
) -> None:
    found = answers(name)
    expected = holds(recorded(name))
    assert sorted((r["tid"], r["ts"], r["dur"]) for r in found["holds"]) == expected
    owners = sorted((r["ts"], r["dur"]) for r in found["owners"])
    assert owners == sorted(row[1:] for row in expected)
    assert all(row["least"] == 0 and row["most"] >= 0 for row in found["waiting"])
    assert max(row["most"] for row in found["waiting"]) >= 2


def test_waits_have_both_stacks(answers: Answers, recorded: Callable[[str], Path]) -> None:
    found = {row["wait"]: (row["waiter"], row["owner"]) for row in answers("contention")["stacks"]}
    expected = stacks(recorded("contention"))
    assert expected
    for wait, (waiter, owner) in expected.items():
        assert found[wait][0] == "\n".join(waiter)
        assert not owner or found[wait][1] == "\n".join(owner)


def test_owners_lead_to_waiters(answers: Answers, recorded: Callable[[str], Path]) -> None:
    found = {(row["wait"], row["owner"]) for row in answers("contention")["blocked"]}
    assert found == owners(recorded("contention"))
    assert len(found) >= 4


def test_names_with_any_bytes_are_exported(answers: Answers) -> None:
    found = answers("hostile")
    assert set(NAMES) <= {row["name"] for row in found["threads"]}
    tracks = [row["name"] or "" for row in found["tracks"]]
    assert any(name.startswith(f"mutex {WEIRD[:500]}") for name in tracks)


def test_open_waits_last_to_the_end_of_the_trace(
    ptt: Ptt, compile_c: Any, record: Any, tmp_path: Path
) -> None:
    program = compile_c(
        """
        #include "show.h"
        #include <semaphore.h>
        #include <signal.h>
        static void *end(void *unused)
        {
            let_block();
            kill(getpid(), SIGTERM);
            return unused;
        }
        int main(void)
        {
            pthread_t thread;
            sem_t never;
            sem_init(&never, 0, 0);
            pthread_create(&thread, NULL, end, NULL);
            arrive();
            return sem_wait(&never);
        }
        """,
        f"-I{ROOT / 'tests' / 'programs'}",
    )
    trace = record(program, status=None)
    out = tmp_path / "out.pftrace"
    ptt("export", "--to", "perfetto", "-o", out, trace)
    (found,) = query(
        out,
        "select dur, extract_arg(arg_set_id, 'debug.open') as never from slice "
        "where name like '%semaphore%'",
    )
    assert [row["never"] for row in found] == [1]
    assert found[0]["dur"] == waits(trace)[0][3]


def test_official_classes_know_every_field(exported: Callable[[str, str], Path]) -> None:
    pytest.importorskip("perfetto")
    from google.protobuf import unknown_fields
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

    trace = pb.Trace()
    trace.ParseFromString(exported("perfetto", "contention").read_bytes())
    assert trace.IsInitialized()
    assert len(trace.packet) > 50

    def check(message: Any) -> None:
        assert len(unknown_fields.UnknownFieldSet(message)) == 0
        for field, value in message.ListFields():
            if field.message_type is not None:
                for item in value if field.is_repeated else [value]:
                    check(item)

    check(trace)
    tracks = {packet.track_descriptor.uuid for packet in trace.packet}
    assert {p.track_event.track_uuid for p in trace.packet if p.HasField("track_event")} <= tracks


def test_processors_and_states_of_threads_are_exported(
    ptt: Ptt, program: Any, tmp_path: Path
) -> None:
    trace, out = tmp_path / "run.ptt", tmp_path / "out.pftrace"
    done = ptt("record", "--sched", "perf", "-o", trace, "--", program("switches"))
    if "cannot record context switches" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    ptt("export", "--to", "perfetto", "-o", out, trace)
    rows = json.loads(
        ptt(
            "sql", "--format", "json", trace,
            "select tid, cpu, sum(dur_ns) as ns from states where cpu is not null group by all",
        ).stdout
    )  # fmt: skip
    wrong, found, states = query(
        out,
        "select name, value from stats where value > 0 and severity = 'error'",
        "select tid, cpu, sum(dur) as ns from sched join thread using (utid) where tid > 0 "
        "group by 1, 2",
        "select distinct state from thread_state join thread using (utid) where tid > 0",
    )
    assert wrong == []
    drawn = {(row["tid"], row["cpu"]): row["ns"] for row in found}
    reported = {(row["tid"], row["cpu"]): row["ns"] for row in rows}
    assert set(drawn) == set(reported)
    assert all(abs(drawn[key] - reported[key]) <= 100_000 for key in reported), (drawn, reported)
    assert {row["state"] for row in states} >= {"Running", "S"}
