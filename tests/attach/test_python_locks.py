"""Locks of CPython that are older than `ptt attach`."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.attach.test_attach import attached

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

PROGRAM = """
import concurrent.futures, queue, sys, threading, time
lock, work, end = threading.Lock(), queue.Queue(), threading.Event()
simple = queue.SimpleQueue()
def serve():
    while not end.is_set():
        with lock:
            time.sleep(0.002)
def idle(get):
    while get() is not None:
        pass
threads = [threading.Thread(target=serve) for _ in range(3)]
threads += [threading.Thread(target=idle, args=(one.get,)) for one in (work, simple)]
pool = concurrent.futures.ThreadPoolExecutor(2)
for thread in threads:
    thread.start()
list(pool.map(abs, range(8)))
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(20):
        work.put(1), simple.put(1)
        pool.submit(abs, 1).result()
        time.sleep(0.005)
    print("done", flush=True)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="locks of Python 3.13 differ")
def test_a_lock_is_contended_and_idleness_is_not(
    ptt: Ptt, start: Callable[..., Any], trace_dir: Path, tmp_path: Path
) -> None:
    source = tmp_path / "server.py"
    source.write_text(PROGRAM)
    process = start(sys.executable, source)
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        time.sleep(0.1)
    report = json.loads(ptt("report", "--format", "json", trace_dir).stdout)
    by_site = {row["first_site"]: row for row in report["objects"] if row["waits"]}
    (site,) = [site for site in by_site if "serve" in site]
    lock = by_site.pop(site)
    assert lock["threads"] == 3
    assert lock["holds"] > 10
    assert lock["held_ns"] > 0.5 * lock["wait_ns"]
    # At other locks, threads met for moments only, and they never wait for work there.
    assert sum(row["wait_ns"] for row in by_site.values()) < 0.2 * lock["wait_ns"]
    assert sum(row["idle_ns"] for row in report["objects"]) > 0
    ptt("check", trace_dir)
