"""Running processes that hang, looked at from outside."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.vocabulary.document_types import Hang
from nptltrace.ui.shapes import fits
from tests.hang.looking import CASES, WAYS, asleep, running, threads_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_hangs_are_named(case: str, way: str, ptt: Ptt, program: Callable[[str], Path]) -> None:
    kind, waits, names = CASES[case]
    with running(program(way), case) as pid:
        found = asleep(ptt, pid, threads_of(case))
    assert fits(Hang, found)
    assert [one["kind"] for one in found["findings"]] == [kind]
    assert {thread["waits_for"]["kind"] for thread in found["threads"]} == waits
    named = {thread["waits_for"]["name"] for thread in found["threads"]} - {""}
    assert named == names
    assert set(found["findings"][0]["object_names"]) - {""} <= names
    # Each thread is where the program called, whatever the library did below it.
    for thread in found["threads"]:
        assert any("waits.c:" in frame for frame in thread["stack"]), thread
    assert all("waits.c:" in site for site in found["findings"][0]["sites"])


@pytest.mark.parametrize("case", ["mutexes", "stuck", "rwlock"])
def test_a_traced_program_waits_where_it_calls(
    case: str, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    """The tracer's own functions, which pass the calls on, are no place in the program."""
    preload = ptt("config", "--preload").stdout.strip()
    handler = "PTHREAD_NPTL_TRACE=text:/dev/null:2"
    with running("env", f"LD_PRELOAD={preload}", handler, program("plain"), case) as pid:
        found = asleep(ptt, pid, threads_of(case))
    assert [one["kind"] for one in found["findings"]] == [CASES[case][0]]
    assert all("waits.c:" in site for site in found["findings"][0]["sites"])


def test_owners_are_named(ptt: Ptt, program: Callable[[str], Path]) -> None:
    with running(program("plain"), "mutexes") as pid:
        found = asleep(ptt, pid, 3)
    locks = {
        t["tid"]: t["waits_for"]["owner_tid"]
        for t in found["threads"]
        if t["waits_for"]["kind"] == "mutex"
    }
    assert len(locks) == 2
    assert {owner: tid for tid, owner in locks.items()} == locks


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_that_may_go_on_is_not_accused(
    way: str, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    with running(program(way), "idle") as pid:
        found = asleep(ptt, pid, 3)
        text = ptt("hang", pid).stdout
    assert found["findings"] == []
    kinds = sorted(thread["waits_for"]["kind"] for thread in found["threads"])
    assert kinds == ["condition", "join", "poll"]
    assert "nothing found: 1 asleep in system calls, 2 waiting for others" in text


def test_a_contended_program_is_not_accused(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """Locks that change hands all the time: no moment of it is a deadlock."""
    program = compile_c("""
        #include <pthread.h>
        static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
        static void *work(void *argument)
        {
            for (unsigned n = 0;; n++) {
                pthread_mutex_lock(&locks[0]);
                pthread_mutex_lock(&locks[1]);
                pthread_mutex_unlock(&locks[1]);
                pthread_mutex_unlock(&locks[0]);
                pthread_mutex_lock(&locks[1]);
                pthread_mutex_unlock(&locks[1]);
            }
            return argument;
        }
        int main(void)
        {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], 0, work, 0);
            pthread_join(threads[0], 0);
        }
    """)
    with running(program) as pid:
        for _ in range(10):
            assert "nothing found" in ptt("hang", pid).stdout


def test_text_says_it_too(ptt: Ptt, program: Callable[[str], Path]) -> None:
    with running(program("plain"), "mutexes") as pid:
        asleep(ptt, pid, 3)
        text = ptt("hang", pid, status=1).stdout
        whole = ptt("hang", "--stacks", pid, status=1).stdout
    assert f"error: deadlock in process {pid}" in text
    assert "waits for mutex left, held by thread" in text
    assert "cross+0x" in text
    assert "start_thread" not in text
    assert len(whole.splitlines()) > len(text.splitlines())


def test_nobody_is_there(ptt: Ptt) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    message = ptt("hang", str(process.pid), status=2).stderr
    assert message == f"ptt: error: there is no process {process.pid}\n"


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into all processes")
def test_of_somebody_else(ptt: Ptt) -> None:
    assert "cannot look into process 1: it belongs to user 0" in ptt("hang", "1", status=2).stderr
