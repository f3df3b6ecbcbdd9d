"""Threads and processes that wait for messages: sockets, managers, pools of event loops, queues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep
from tests.hang.test_cpython import interpreters, minor_of
from tests.real.real import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Ptt

PROGRAM = textwrap.dedent("""\
    import asyncio, concurrent.futures, multiprocessing, os, queue, signal, socket, struct, sys
    import tempfile, threading, time

    context = multiprocessing.get_context("fork")

    def run(*functions):
        threads = [threading.Thread(target=one) for one in functions]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    def in_processes(target, *arguments):
        processes = [context.Process(target=target, args=some) for some in arguments]
        for one in processes:
            one.start()
        for one in processes:
            one.join()

    def serve(connection):
        while True:
            connection.send(connection.recv())

    def both_send():
        ends = context.Pipe()
        def send(one):
            one.send(b"x" * 3000000)
        in_processes(send, *((one,) for one in ends))

    def both_receive():
        in_processes(lambda one: one.recv(), *((one,) for one in context.Pipe()))

    def over_tcp():
        listener = socket.create_server(("127.0.0.1", 0))
        if not os.fork():
            socket.create_connection(listener.getsockname()).recv(listener.close() or 1)
        other, _ = listener.accept()
        listener.close()
        other.recv(1)

    def for_stuck_process():
        one, other = socket.socketpair()
        if not os.fork():
            one.close()
            lock = threading.Lock()
            with lock, lock:
                pass
        other.close()
        one.recv(1)

    def manager_crosswise():
        manager, met = context.Manager(), context.Barrier(2)
        def take(one, other):
            one.acquire()
            met.wait()
            other.acquire()
        left, right = manager.Lock(), manager.Lock()
        in_processes(take, (left, right), (right, left))

    def pool_of_loop():
        async def main():
            loop, done = asyncio.get_running_loop(), threading.Event()
            pool = concurrent.futures.ThreadPoolExecutor(2)
            jobs = [loop.run_in_executor(pool, one) for one in (done.wait, done.wait, done.set)]
            await asyncio.gather(*jobs)
        asyncio.run(main())

    def queues_crosswise():
        first, second = queue.Queue(), queue.Queue()
        run(lambda: second.put(first.get()), lambda: first.put(second.get()))

    def workers_at_connections():
        ends = [context.Pipe() for _ in range(2)]
        for one, other in ends:
            context.Process(target=serve, args=(other,)).start()
            one.send(1)
            one.recv()
        threading.Event().wait()

    def joined_worker():
        one, other = context.Pipe()
        in_processes(serve, (other,))

    def busy_worker():
        one, other = context.Pipe()
        context.Process(target=lambda: (time.sleep(600), other.send(1))).start()
        one.recv()

    def time_limit():
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 600, 0))
        if not os.fork():
            one.close()
            other.recv(1)
        other.close()
        one.recv(1)

    def sent_descriptor():
        to, at = socket.socketpair()
        one, other = socket.socketpair()
        if not os.fork():
            to.close(), one.close(), other.close()
            time.sleep(600)
        at.close()
        rights = struct.pack("i", other.fileno())
        to.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        one.recv(1)

    def server():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(tempfile.mkdtemp(dir="."), "s"))
        listener.listen()
        if not os.fork():
            while True:
                client, _ = listener.accept()
                threading.Thread(target=client.recv, args=(1,)).start()
        client = socket.socket(socket.AF_UNIX)
        client.connect(listener.getsockname())
        client.recv(1)

    def server_of_idle_client():
        one, other = socket.socketpair()
        if not os.fork():
            one.close()
            threading.Event().wait()
        other.close()
        one.recv(1)

    def manager_of_work():
        manager = context.Manager()
        lock, work = manager.Lock(), manager.Queue()
        def take():
            with lock:
                work.get()
        in_processes(take, (), ())

    def manager_with_busy_holder():
        lock = context.Manager().Lock()
        def take():
            with lock:
                time.sleep(600)
        in_processes(take, (), ())

    def loop_at_rest():
        async def main():
            stop = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: stop.set())
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)
        asyncio.run(main())

    def loop_with_child():
        async def main():
            pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
            child = await asyncio.create_subprocess_exec("cat", **pipes)
            await child.stdout.readline()
        asyncio.run(main())

    def pipeline():
        first, second = queue.Queue(), queue.Queue()
        def again():
            while True:
                if item := second.get():
                    second.put(item - 1)
        first.put(2)
        run(lambda: [second.put(first.get()) for _ in iter(int, 1)], again, again)

    if __name__ == "__main__":
        globals()[sys.argv[1]]()
    """)
# For each program that hangs: threads, kind and severity of the finding, and its message.
HANGS = {
    "both_send": (1, "deadlock", "error", "sleeps in write to socket "),
    "both_receive": (1, "deadlock", "error", "sleeps in read of socket "),
    "over_tcp": (1, "deadlock", "error", "sleeps in recvfrom of TCP socket 127.0.0.1:"),
    "for_stuck_process": (1, "stuck", "error", ", connected to process "),
    "manager_crosswise": (1, "deadlock", "warning", "unless a new client of the manager wakes one"),
    "pool_of_loop": (3, "stuck", "error", "; jobs of a thread pool wait for one of these threads"),
    "queues_crosswise": (3, "stuck", "warning", "unless a signal to the first thread wakes one"),
}
# Programs that wait for work, for another process or for a time, and their numbers of threads.
RESTS = {
    "workers_at_connections": 1, "joined_worker": 1, "busy_worker": 1, "time_limit": 1,
    "sent_descriptor": 1, "server": 1, "server_of_idle_client": 1, "manager_of_work": 1,
    "manager_with_busy_holder": 1, "loop_at_rest": 2, "pipeline": 4,
}  # fmt: skip
# A thread waits for the end of the child; newer versions wait through a descriptor.
LOOP_WITH_CHILD = "loop_with_child"
PYTHONS = [
    pytest.param(python, marks=() if python == sys.executable else pytest.mark.slow)
    for python in interpreters()
]


@pytest.mark.parametrize("python", PYTHONS)
def test_messages_that_nobody_can_send_are_a_hang(python: str, ptt: Ptt, tmp_path: Path) -> None:
    _need(python)
    with _running(python, [*HANGS], tmp_path) as pids:
        for case, (threads, kind, severity, said) in HANGS.items():
            answer = _found(ptt, pids[case])
            (finding,) = answer["findings"]
            assert len(answer["threads"]) == threads
            assert (finding["kind"], finding["severity"]) == (kind, severity), (case, finding)
            assert said in finding["message"], (case, finding)


@pytest.mark.parametrize("python", PYTHONS)
def test_messages_that_somebody_may_send_are_no_hang(python: str, ptt: Ptt, tmp_path: Path) -> None:
    _need(python)
    with _running(python, [*RESTS, LOOP_WITH_CHILD], tmp_path) as pids:
        for case, threads in RESTS.items():
            findings = asleep(ptt, pids[case], threads)["findings"]
            if case == "workers_at_connections":
                # The first thread waits for an event that no other process can set.
                assert all(finding["severity"] == "warning" for finding in findings), findings
            else:
                assert findings == [], case
        assert ptt("hang", pids[LOOP_WITH_CHILD]).stdout.rstrip().endswith("in system calls")


def _found(ptt: Ptt, pid: str) -> dict[str, Any]:
    """Return the answer about a process as soon as it has a finding."""
    last: dict[str, Any] = {}

    def looks() -> bool:
        last.update(json.loads(ptt("hang", "--format", "json", pid, status=None).stdout))
        return bool(last["findings"])

    wait_until(looks, pid)
    return last


def _need(python: str) -> None:
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("PTT does not read frames of this version")


@contextmanager
def _running(python: str, cases: list[str], place: Path) -> Iterator[dict[str, str]]:
    """Run programs, each in its own session; yield their process ids."""
    program = place / "prog.py"
    program.write_text(PROGRAM, encoding="utf-8")
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for case in cases:
            command = ["env", "--default-signal=INT", python, str(program), case]
            started[case] = subprocess.Popen(command, cwd=place, start_new_session=True)
        yield {case: str(process.pid) for case, process in started.items()}
    finally:
        for process in started.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
