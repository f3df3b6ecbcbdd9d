"""Many writers, a controller with a log and an analyzer at work; each of them is killed.

`PTT_TEST_EVENTS` sets the number of events written (400,000), `PTT_TEST_KILLS` the number of killed
processes (5).
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.posix.building import SUITE, Builder, Conversation
from tests.support import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = int(os.environ.get("PTT_TEST_EVENTS", "400000"))
KILLS = int(os.environ.get("PTT_TEST_KILLS", "5"))
PROCESSES, THREADS = 4, 4
ROLES = ("controller", "traced", "analyzer")


@pytest.fixture(scope="module")
def load(native_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = Builder(native_stage, tmp_path_factory.mktemp("load"))
    return build("load", [SUITE / "programs" / "load.c"], "-O2")


def counts(message: str) -> dict[int, dict[int, int]]:
    """Return an analyzer's counts of events by process and thread; none may be wrong."""
    match = re.fullmatch(r"wrong 0, overflows 0:(.*)", message)
    assert match, message
    result: dict[int, dict[int, int]] = {}
    for pid, thread, count in re.findall(r"(\d+):(\d+)=(\d+)", match[1]):
        result.setdefault(int(pid), {})[int(thread)] = int(count)
    return result


def total(found: dict[int, dict[int, int]]) -> int:
    return sum(sum(threads.values()) for threads in found.values())


def contains(later: dict[int, dict[int, int]], earlier: dict[int, dict[int, int]]) -> bool:
    """Return whether a later look at a log found everything that an earlier look found."""
    return all(
        later.get(pid, {}).get(thread, 0) >= count
        for pid, threads in earlier.items()
        for thread, count in threads.items()
    )


@pytest.mark.slow
@pytest.mark.timeout(120 + EVENTS // 5000)
def test_every_event_is_read_once_and_in_order(load: Path, tmp_path: Path) -> None:
    each = EVENTS // (PROCESSES * THREADS)
    log = tmp_path / "load.log"
    env = clean_environment()
    with Conversation(load, "analyzer", log, env=env) as analyzer:
        with Conversation(load, "writers", PROCESSES, THREADS, each, env=env) as writers:
            pid = int(writers.hear())
            with Conversation(load, "controller", pid, log, env=env) as controller:
                assert controller.hear() == "tracing"
                pids = {pid, *map(int, writers.say().split()[:-1])}
                latest: dict[int, dict[int, int]] = {}
                size = 1 << 20
                # read again whenever the log has doubled in size
                while writers.process.poll() is None and size < each * 16 * 100:
                    if log.stat().st_size < size:
                        time.sleep(0.01)
                        continue
                    earlier, latest = latest, counts(analyzer.say())
                    assert contains(latest, earlier)
                    size *= 2
                assert writers.hear().startswith("done, 0 killed: ")
                controller.end()
                assert controller.hear() == "overrun 0, flush error 0"
        latest = counts(analyzer.say())
    assert set(latest) == pids
    threads = {thread: count for each in latest.values() for thread, count in each.items()}
    assert threads == dict.fromkeys(range(PROCESSES * THREADS), each)


@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * KILLS)
def test_the_other_processes_go_on_after_a_kill(load: Path, tmp_path: Path) -> None:
    chance = random.Random(4711)  # noqa: S311 -- moments, not secrets
    for number in range(KILLS):
        log = tmp_path / f"{number}.log"
        _kill_one(load, log, ROLES[number % 3], chance)
        log.unlink()


def _kill_one(load: Path, log: Path, role: str, chance: random.Random) -> None:
    env = clean_environment()
    analyzer = Conversation(load, "analyzer", log, env=env)
    writers = Conversation(load, "writers", PROCESSES, THREADS, 0, env=env)
    pid = int(writers.hear())
    controller = Conversation(load, "controller", pid, log, env=env)
    conversations = [analyzer, writers, controller]
    try:
        assert controller.hear() == "tracing"
        others = list(map(int, writers.say().split()[:-1]))
        while log.stat().st_size < 1 << 18:
            time.sleep(0.001)
        before = counts(analyzer.say())
        time.sleep(chance.random() / 10)
        victim = {
            "controller": controller.process.pid,
            "traced": chance.choice(others),
            "analyzer": analyzer.process.pid,
        }[role]
        if role == "analyzer":  # in the middle of its reading
            analyzer.send()
        os.kill(victim, signal.SIGKILL)
        size = log.stat().st_size
        while role != "controller" and log.stat().st_size < size + (1 << 17):
            time.sleep(0.001)  # the other processes go on
        message = re.fullmatch(r"done, ([01]) killed: (.*)", writers.say())
        assert message, f"{role} killed"
        assert message[1] == ("1" if role == "traced" else "0")
        if role != "controller":
            controller.end()
            assert controller.hear() == "overrun 0, flush error 0"
        if role == "analyzer":
            analyzer.process.wait()
            analyzer = Conversation(load, "analyzer", log, env=env)
            conversations.append(analyzer)
        after = counts(analyzer.say())
        assert contains(after, before), f"{role} killed: {before} became {after}"
        if role != "controller":  # processes that were not killed have lost no event
            written = dict(enumerate(map(int, message[2].split())))
            for process, threads in after.items():
                assert process == victim or threads == {n: written[n] for n in threads}
            # some processes may not have reached their first event
            missing = {*others, pid} - {victim} - set(after)
            assert THREADS * len(missing) <= list(written.values()).count(0)
            assert set(after) <= {*others, pid}
    finally:
        for conversation in conversations:
            conversation.process.kill()
            conversation.process.communicate()
