"""Running processes that hang, looked at from outside."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.vocabulary.document_types import Hang
from nptltrace.ui.shapes import fits
from tests.support import Compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Ptt

HERE = Path(__file__).parent
WAYS = {"plain": ("-O0",), "optimized": ("-O2",), "static": ("-O2", "-static")}
# Of each case of the program: kind of finding, kinds of its waits, names of objects.
CASES = {
    "mutexes": ("deadlock", {"mutex", "join"}, {"left", "right"}),
    "rwlock": ("deadlock", {"mutex", "rwlock", "join"}, {"left", "table"}),
    "joins": ("deadlock", {"join"}, set()),
    "self": ("self-deadlock", {"mutex", "join"}, {"left"}),
    "ended": ("exit-holding-lock", {"mutex", "join"}, {"left"}),
    "stuck": ("stuck", {"condition", "semaphore", "join"}, {"never", "empty"}),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program, compiled in one of the ways."""
    known: dict[str, Path] = {}

    def get(way: str) -> Path:
        if way not in known:
            compiler = Compiler(tmp_path_factory.mktemp(way), HERE)
            known[way] = compiler(HERE / "waits.c", *WAYS[way])
        return known[way]

    return get


@pytest.fixture(scope="module", autouse=True)
def _looking_is_allowed(ptt: Ptt) -> None:
    """Skip where even the user's own processes may not be looked into."""
    with running("sleep", "60") as pid:
        said = ptt("hang", pid, status=None).stderr
    if "cannot look into" in said:
        pytest.skip(said)


@contextmanager
def running(*command: object) -> Iterator[str]:
    """Run a program as long as it is looked at; yield its process id."""
    process = subprocess.Popen([str(word) for word in command])
    try:
        yield str(process.pid)
    finally:
        process.kill()
        process.wait()


def asleep(ptt: Ptt, pid: str, threads: int) -> dict[str, Any]:
    """Return what `ptt hang` says when so many threads have come to where they sleep."""
    until = time.monotonic() + 60
    while True:
        done = ptt("hang", "--format", "json", "--watch", "50ms", pid, status=None)
        found: dict[str, Any] = json.loads(done.stdout)
        still = [t for t in found["threads"] if t["waits_for"] and t["moved"] is False]
        if len(still) == threads == len(found["threads"]) or time.monotonic() > until:
            assert done.returncode == (1 if found["findings"] else 0)
            return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_hangs_are_named(case: str, way: str, ptt: Ptt, program: Callable[[str], Path]) -> None:
    kind, waits, names = CASES[case]
    with running(program(way), case) as pid:
        found = asleep(ptt, pid, 2 if case in {"self", "ended"} else 3)
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
def test_who_may_go_on_is_not_accused(way: str, ptt: Ptt, program: Callable[[str], Path]) -> None:
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
    said = ptt("hang", str(process.pid), status=2).stderr
    assert said == f"ptt: error: there is no process {process.pid}\n"
    assert "invalid" in ptt("hang", "no-number", status=2).stderr


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into all processes")
def test_of_somebody_else(ptt: Ptt) -> None:
    assert "cannot look into process 1: it belongs to user 0" in ptt("hang", "1", status=2).stderr
