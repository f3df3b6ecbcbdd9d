"""Events of the trace-enabled thread library: low-level locks, calls past the hooks, others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

HERE = Path(__file__).parent
NPTL = ("--nptl", "auto")

MODULE = """
#include <pthread.h>
pthread_mutex_t hidden = PTHREAD_MUTEX_INITIALIZER;
void work(void)
{
    pthread_mutex_lock(&hidden);
    pthread_mutex_unlock(&hidden);
}
"""
LOADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
static pthread_mutex_t seen = PTHREAD_MUTEX_INITIALIZER;
int main(int argc, char **argv)
{
    void *module = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
    void (*work)(void);
    if (!module)
        return 1;
    *(void **)&work = dlsym(module, "work");
    pthread_mutex_lock(&seen);
    work();
    pthread_mutex_unlock(&seen);
    return 0;
}
"""
# A handler that locks, allocates and prints for every event.
HANDLER = """
#include <nptl_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static unsigned long events, inside;
/* Again in each child, where another thread of the parent may have left it locked. */
void nptl_trace_init(char **args)
{
    pthread_mutex_init(&own, NULL);
}
void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
    void *volatile memory = malloc(5000);
    pthread_mutex_lock(&own);
    events++;
    inside += event.event >= 40;
    fprintf(stderr, ".");
    pthread_mutex_unlock(&own);
    free(memory);
}
void nptl_trace_fini(void)
{
    fprintf(stderr, "\\n%s %s\\n", events ? "events" : "none", inside ? "inside" : "outside");
}
"""
CHILDREN = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *arg)
{
    for (int i = 0; i < 50; i++) {
        void *volatile memory = malloc(3000);
        printf("%d\\n", i);
        free(memory);
    }
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(NULL);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    pthread_join(thread, NULL);
    return 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def library(ptt: Ptt) -> Path:
    """The directory of the library."""
    found = ptt("nptl", "path", status=None)
    if found.returncode:
        pytest.skip("the trace-enabled thread library has not been built (./check.sh nptl)")
    return Path(found.stdout.strip())


def events_of(ptt: Ptt, trace: Path) -> list[dict[str, Any]]:
    """Return all events of a trace."""
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    return [json.loads(line) for line in lines]


def locks_of(ptt: Ptt, trace: Path) -> dict[str, dict[str, Any]]:
    """Return the low-level locks of a report by name."""
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    return {item["name"]: item for item in report["objects"] if item["kind"] == "lll"}


def test_locks_of_streams_and_arenas_are_reported(
    ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """They have waits with the holder as the cause; a preloaded tracer does not see these locks."""
    program = compile_c(HERE / "fight.c")
    trace = record(program, options=(*NPTL, "-l", "2,lll=4"))
    locks = locks_of(ptt, trace)
    first = events_of(ptt, trace)[0]["tid"]
    for name in ("main_arena", "_IO_stdfile_1_lock"):
        lock = locks[name]
        assert lock["waits"] > 0, name
        assert lock["wait_ns"] > 0, name
        assert lock["holds"] > lock["waits"], name
        assert lock["threads"] >= 2, name
        assert first in {blamed["tid"] for blamed in lock["blamed"]}, name
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    ptt("verify", trace)
    stock = record(program, options=("--nptl", "stock", "-l", "4"))
    assert not locks_of(ptt, stock)


def test_low_level_locks_have_one_holder_at_a_time(
    ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """A time stamp lies before the real release, and after the real acquisition."""
    trace = record(compile_c(HERE / "fight.c"), options=(*NPTL, "-l", "2,lll=4"))
    holder: dict[str, int] = {}
    for event in events_of(ptt, trace):
        lock = event["object"]
        if event["event"] == "LLL_TAKEN":
            assert lock not in holder, event
            holder[lock] = event["tid"]
        elif event["event"] == "LLL_FREE" and lock in holder:
            assert holder.pop(lock) == event["tid"], event


def test_calls_past_the_hooks_are_distinguished(
    ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """The call site of an event from inside shows the caller: the hook, or another module."""
    module = compile_c(MODULE, "-shared", "-fPIC", name="libmodule.so")
    trace = record(compile_c(LOADER, name="loader"), module, options=(*NPTL, "-l", "4"))
    events = events_of(ptt, trace)
    sites = {
        event["object"]: event["site_name"]
        for event in events
        if event["event"] == "MUTEX_STATE_TAKEN"
    }
    hooked = {event["object"] for event in events if event["event"] == "MUTEX_TAKEN"}
    past = [site for lock, site in sites.items() if lock not in hooked and site.startswith("work")]
    assert len(hooked) == len(past) == 1
    assert "(mutex.c:" in sites[hooked.pop()]


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_children_of_forks_have_no_false_waits(
    handler: str, ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """A child inherits held locks, and the library frees them: no thread appears to wait."""
    program = compile_c(CHILDREN)
    trace = record(program, options=(*NPTL, "-l", "4", "--handler", handler))
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    ptt("verify", trace)
    open_waits = ptt("sql", "--format", "json", trace, "select * from waits where open")
    assert json.loads(open_waits.stdout) == []


def test_a_handler_may_use_the_library(
    compile_c: Compiler, native_stage: Path, library: Path
) -> None:
    """A handler that locks, allocates and prints does not trace itself without end."""
    handler = compile_c(HANDLER, "-shared", "-fPIC", name="libbusy.so")
    program = compile_c(CHILDREN)
    done = subprocess.run(
        [program],
        env={
            "LD_PRELOAD": str(native_stage / "lib" / "libnptltrace.so"),
            "LD_LIBRARY_PATH": str(library / "lib"),
            "PTHREAD_NPTL_TRACE": f"{handler}::4",
        },
        capture_output=True, encoding="utf-8", check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr.splitlines()[-1] == "events inside"


@pytest.mark.parametrize("handler", ["file", "text", "posix"])
def test_all_handlers_of_ptt_work_at_level_4(
    handler: str, compile_c: Compiler, native_stage: Path, library: Path, tmp_path: Path
) -> None:
    """Level 4 includes events of the library's inside."""
    program = compile_c(CHILDREN)
    argument = {"file": str(tmp_path / "t.ptt"), "posix": str(tmp_path / "log")}.get(handler, "")
    done = subprocess.run(
        [program],
        env={
            "LD_PRELOAD": str(native_stage / "lib" / "libnptltrace.so"),
            "LD_LIBRARY_PATH": str(library / "lib"),
            "PTHREAD_NPTL_TRACE": f"{handler}:{argument}:4",
        },
        capture_output=True, encoding="utf-8", check=False, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) >= 50


def test_the_example_of_the_documentation_is_true(
    ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """The hand-over of a condition has the steps that the page describes."""
    program = compile_c(ROOT / "examples" / "inside" / "handover.c")
    trace = record(program, options=(*NPTL, "-l", "4"))
    names = [event["event"] for event in events_of(ptt, trace)]
    expected = [
        "COND_WAIT_IN", "COND_STATE_REQUIRE", "COND_GROUP_ENTER", "MUTEX_STATE_FREE",
        "COND_STATE_SIGNAL", "COND_LOCK_TAKEN", "COND_GROUP_SWITCH", "COND_SIGNAL_INC",
        "COND_LOCK_FREE", "COND_SIGNAL_DEC", "COND_WAITERS_DEC", "MUTEX_STATE_TAKEN",
        "COND_STATE_LEAVE", "COND_WAIT_OUT",
    ]  # fmt: skip
    at = 0
    for name in names:
        at += at < len(expected) and name == expected[at]
    assert at == len(expected), expected[at]
