"""A process that reads from a queue holds the queue's lock, and yet waits for work."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

pytestmark = pytest.mark.alone

PROGRAM = textwrap.dedent("""\
    import multiprocessing, os, signal, sys, time

    def read(queue):
        while queue.get() is not None:
            pass

    def asleep(pid):
        while True:
            with open(f"/proc/{pid}/syscall") as file:
                number = file.read().split()[0]
            if number in {"0", "202"}:
                return number
            time.sleep(0.001)

    def main():
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        readers = [context.Process(target=read, args=(queue,)) for _ in range(2)]
        for reader in readers:
            reader.start()
        queue.put(1)
        time.sleep(0.05)
        calls = {asleep(reader.pid): reader for reader in readers}
        time.sleep(0.15)
        if sys.argv[1:]:
            os.kill(calls["0"].pid, signal.SIGKILL)  # it reads
            calls["0"].join()
            readers.append(context.Process(target=read, args=(queue,)))
            readers[-1].start()
            asleep(readers[-1].pid)
            time.sleep(0.02)
            for reader in calls["202"], readers[-1]:
                os.kill(reader.pid, signal.SIGKILL)
        else:
            for _ in readers:
                queue.put(None)
        for reader in readers:
            reader.join()

    main()
    """)


def test_readers_are_idle(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    trace = record(sys.executable, program)
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    report = json.loads(ptt("report", "-n", "0", "--format", "json", trace).stdout)
    idle = [thread["idle_ns"] for thread in report["threads"]]
    assert sum(item > 100_000_000 for item in idle) == 1, idle


def test_a_killed_reader_keeps_the_lock(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    trace = record(sys.executable, program, "kill")
    findings = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)["findings"]
    assert [finding["kind"] for finding in findings] == ["exit-holding-lock"]
