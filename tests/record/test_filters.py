"""Event types that a filter leaves out, and how readers treat such a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nptltrace.catalog import BY_ID
from nptltrace.errors import UsageError
from nptltrace.recording.settings.filters import parse_filter

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

LIFE = {"NEW_THREAD_CREATED", "THREAD_BEGIN", "THREAD_END", "PROCESS_START", "PROCESS_EXIT"}

# Two threads lock two mutexes in opposite orders, one thread after the other.
PROGRAM = """
#include <nptl_trace.h>
#include <pthread.h>
#include <semaphore.h>
pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static sem_t done;
static void use(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}
static void *work(void *unused)
{
	use(&first);
	use(&second);
	sem_post(&done);
	return unused;
}
int main(void)
{
	pthread_t thread;
	struct nptl_trace_event event = {.domain = 1, .event = 2};

	sem_init(&done, 0, 0);
	pthread_create(&thread, NULL, work, NULL);
	use(&second);
	use(&first);
	nptl_trace_send_user_event(event);
	pthread_join(thread, NULL);
	return 0;
}
"""


def types(ptt: Ptt, trace: Path) -> dict[str, int]:
    """Return the number of events of each type, without the events of threads' lives."""
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    return {name: count for name, count in counts.items() if name not in LIFE}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SPIN_T,!*_OUT,!*_in", {"SPIN_TAKEN"}),
        ("barrier_wait_in, *EX_WAIT", {"BARRIER_WAIT_IN", "MUTEX_WAIT"}),
        ("spin,!SPIN_", set()),
    ],
)
def test_an_expression_selects_event_types(text: str, names: set[str]) -> None:
    assert {BY_ID[event].name for event in parse_filter(text).ids} == names


def test_a_negated_expression_selects_all_others() -> None:
    left = {event.name for event in BY_ID.values() if event.id not in parse_filter("!cond").ids}
    assert left
    assert all(event.domain == "cond" for event in BY_ID.values() if event.name in left)


@pytest.mark.parametrize("text", ["", "mutex,", "!", "*", "mutux", "mutex,*_X"])
def test_an_expression_that_matches_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no event matches"):
        parse_filter(text)


@pytest.mark.parametrize("handler", ["ring", "shared", "file"])
def test_only_selected_events_are_recorded(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, handler: str
) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    for text, expected in (
        ("mutex", {"MUTEX_TAKEN": 4, "MUTEX_FREE": 4}),
        ("user,sem_p", {"SEM_POST": 1, "USER": 1}),
        ("c11", {}),
    ):
        options = ["--force", "--handler", handler, "--filter", text, "-o", str(trace)]
        ptt("record", *options, "--", program)
        reported = types(ptt, trace)
        reported.pop("MUTEX_WAIT", None)  # the threads may meet at a mutex
        assert reported == expected
        assert f"--filter {text}" in ptt("view", "--count", "1", trace).stderr


def test_user_events_have_the_programs_site(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    ptt("record", "--filter", "user", "-o", trace, "--", program)
    lines = ptt("view", "--format", "jsonl", "--event", "USER", trace).stdout.splitlines()
    assert [json.loads(line)["site_name"].split("+")[0] for line in lines] == ["main"]


def test_filtered_traces_lead_to_no_wrong_findings(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    for text in ("!MUTEX_FREE", "MUTEX_TAKEN", "mutex", "!THREAD_JOIN", "!MUTEX_TAKEN"):
        ptt("record", "--force", "--filter", text, "-o", trace, "--", program)
        check = json.loads(ptt("check", "--format", "json", trace).stdout)
        assert check["findings"] == [], text
        report = json.loads(ptt("report", "--format", "json", trace).stdout)
        assert [row["holds"] for row in report["objects"] if row["holds"]] == (
            [2, 2] if text in {"mutex", "!THREAD_JOIN"} else []
        )
        now = json.loads(ptt("top", "--format", "json", "--count", "1", trace).stdout)
        assert [row for row in now["objects"] if row["holder_tid"]] == [], text
        verdict = json.loads(ptt("verify", "--format", "json", trace).stdout)
        assert verdict["violations"] == []
        assert any(f"--filter {text}" in gap for gap in verdict["gaps"])


def test_parts_of_a_filtered_trace_name_the_filter(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    program, trace, part = compile_c(PROGRAM), tmp_path / "trace", tmp_path / "part"
    ptt("record", "--filter", "!MUTEX_FREE", "-o", trace, "--", program)
    ptt("cut", "--start", "1", "-o", part, trace)
    assert "--filter !MUTEX_FREE" in ptt("check", part).stderr


def test_children_have_the_same_filter(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    ptt("record", "--filter", "sem", "-o", trace, "--", "sh", "-c", f"{program}; {program}")
    counts = types(ptt, trace)
    assert counts["SEM_POST"] == 2
    assert not [name for name in counts if name.startswith("MUTEX")]
