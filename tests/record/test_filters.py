"""Types of events that are left out, and what readers make of such a trace."""

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

# Two locks in one order in one thread and in the other in the next, never both at a time.
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
    """Return how many events of each type a trace holds, but of the life of its threads."""
    found = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    return {name: count for name, count in found.items() if name not in LIFE}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SPIN_T,!*_OUT,!*_in", {"SPIN_TAKEN"}),
        ("barrier_wait_in, *EX_WAIT", {"BARRIER_WAIT_IN", "MUTEX_WAIT"}),
        ("spin,!SPIN_", set()),
    ],
)
def test_what_an_expression_means(text: str, names: set[str]) -> None:
    assert {BY_ID[event].name for event in parse_filter(text).ids} == names


def test_all_but() -> None:
    left = {event.name for event in BY_ID.values() if event.id not in parse_filter("!cond").ids}
    assert left
    assert all(event.domain == "cond" for event in BY_ID.values() if event.name in left)


@pytest.mark.parametrize("text", ["", "mutex,", "!", "*", "mutux", "mutex,*_X"])
def test_refuses_what_matches_nothing(text: str) -> None:
    with pytest.raises(UsageError, match="no event matches"):
        parse_filter(text)


@pytest.mark.parametrize("handler", ["ring", "shared", "file"])
def test_only_that_is_recorded(ptt: Ptt, compile_c: Compiler, tmp_path: Path, handler: str) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    for text, expected in (
        ("mutex", {"MUTEX_TAKEN": 4, "MUTEX_FREE": 4}),
        ("user,sem_p", {"SEM_POST": 1, "USER": 1}),
        ("c11", {}),
    ):
        options = ["--force", "--handler", handler, "--filter", text, "-o", str(trace)]
        ptt("record", *options, "--", program)
        reported = types(ptt, trace)
        reported.pop("MUTEX_WAIT", None)  # the threads may meet
        assert reported == expected
        assert f"--filter {text}" in ptt("view", "--count", "1", trace).stderr


def test_the_program_is_the_site_of_its_events(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    ptt("record", "--filter", "user", "-o", trace, "--", program)
    lines = ptt("view", "--format", "jsonl", "--event", "USER", trace).stdout.splitlines()
    assert [json.loads(line)["site_name"].split("+")[0] for line in lines] == ["main"]


def test_no_wrong_conclusions(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    for text in ("!MUTEX_FREE", "MUTEX_TAKEN", "mutex", "!THREAD_JOIN", "!MUTEX_TAKEN"):
        ptt("record", "--force", "--filter", text, "-o", trace, "--", program)
        found = json.loads(ptt("check", "--format", "json", trace).stdout)
        assert found["findings"] == [], text
        report = json.loads(ptt("report", "--format", "json", trace).stdout)
        assert [one["holds"] for one in report["objects"] if one["holds"]] == (
            [2, 2] if text in {"mutex", "!THREAD_JOIN"} else []
        )
        now = json.loads(ptt("top", "--format", "json", "--count", "1", trace).stdout)
        assert [one for one in now["objects"] if one["holder_tid"]] == [], text
        verdict = json.loads(ptt("verify", "--format", "json", trace).stdout)
        assert verdict["violations"] == []
        assert any(f"--filter {text}" in gap for gap in verdict["gaps"])


def test_parts_of_a_trace_say_so_too(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    program, trace, part = compile_c(PROGRAM), tmp_path / "trace", tmp_path / "part"
    ptt("record", "--filter", "!MUTEX_FREE", "-o", trace, "--", program)
    ptt("cut", "--start", "1", "-o", part, trace)
    assert "--filter !MUTEX_FREE" in ptt("check", part).stderr


def test_a_child_is_filtered_alike(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    program, trace = compile_c(PROGRAM), tmp_path / "trace"
    ptt("record", "--filter", "sem", "-o", trace, "--", "sh", "-c", f"{program}; {program}")
    found = types(ptt, trace)
    assert found["SEM_POST"] == 2
    assert not [name for name in found if name.startswith("MUTEX")]
