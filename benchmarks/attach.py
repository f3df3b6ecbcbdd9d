#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaches to servers under load, and to a program that is hard on a tracer, again and again.

Servers that are not installed are left out. Each round measures how long the one thread was
stopped, how many events there were, and whether any event was lost. The clients tell whether an
answer was missing or wrong. After a quarter of the rounds and at the end, the benchmark counts the
memory, mappings, descriptors and threads of the process. If a count grew, attaching left something
behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.common import HERE, ROOT, environment

os.environ.update(environment())
sys.path.insert(0, str(ROOT / "src"))

from nptltrace import _paths
from nptltrace.attach.injection import Injection
from nptltrace.attach.recording import AttachOptions, record
from nptltrace.errors import PttError
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.recording.settings.levels import parse_levels
from nptltrace.recording.settings.options import BufferOptions
from nptltrace.trace.symbols.lookup import Symbols

PARTS = HERE / "attached"
# The longest allowed stop of a thread, at the 99th percentile.
STOP_MS = 10.0
PLUGIN = """
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int plugin(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return 1;
}
"""
NGINX = """
daemon off;
master_process off;
pid {place}/pid;
error_log {place}/error.log;
thread_pool default threads=4;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {place}/a;
    proxy_temp_path {place}/b;
    fastcgi_temp_path {place}/c;
    uwsgi_temp_path {place}/d;
    scgi_temp_path {place}/e;
    keepalive_requests 1000000000;
    server {{
        listen 127.0.0.1:{port};
        root {place};
        aio threads;
        directio 4k;
    }}
}}
"""


@dataclass
class Target:
    """A program to attach to.

    Attributes:
        needs: Programs that must be installed.
        command: Starts the program; {place} and {port} stand for a directory and a port of its own.
        client: The kind of requests of client.py; empty without requests.
        load: A command that also keeps the program busy and must not fail.
        before: Commands that prepare the directory.
    """

    needs: tuple[str, ...]
    command: str
    client: str = ""
    load: str = ""
    before: tuple[str, ...] = ()


TARGETS = {
    "redis": Target(
        ("redis-server", "redis-benchmark"), "redis-server --port {port} --save '' --io-threads 2",
        "redis", "redis-benchmark -p {port} -c 4 -l -q -t set,get,incr,hset",
    ),
    "memcached": Target(
        ("memcached", "memcslap"), "memcached -u nobody -l 127.0.0.1 -p {port}", "memcached",
        "while memcslap -s 127.0.0.1:{port} --concurrency=2 --execute-number=2000; do :; done",
    ),
    "mariadb": Target(
        ("mariadbd", "sysbench", "mariadb-install-db"),
        "mariadbd --no-defaults --user=root --datadir={place}/data --socket={place}/s "
        "--port={port} --bind-address=127.0.0.1 --skip-grant-tables "
        "--innodb-flush-log-at-trx-commit=0",
        "",
        "until sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-port={port} "
        "--mysql-user=root --mysql-db=test --tables=2 --table-size=1000 prepare; do sleep 1; done; "
        "sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-port={port} --mysql-user=root "
        "--mysql-db=test --tables=2 --table-size=1000 --threads=4 --time=0 --report-interval=9 run",
        ("mariadb-install-db --no-defaults --user=root --datadir={place}/data",),
    ),
    "nginx": Target(
        ("nginx",), "nginx -c {place}/conf -p {place}", "nginx", "",
        ("head -c 70000 /dev/zero > {place}/file",),
    ),
    "cpython": Target((), f"{sys.executable} {PARTS}/server.py {{port}}", "echo"),
    "node": Target(("node",), f"node {PARTS}/server.js {{port}}", "echo"),
    "java": Target(("java",), f"java {PARTS}/Server.java {{port}}", "echo"),
    "stress": Target(
        ("c++",), "./stress", "", "",
        (
            f"c++ -O1 -g -pthread {PARTS}/stress.cc -o stress",
            "cc -shared -fPIC plugin.c -o plugin.so",
        ),
    ),
}  # fmt: skip


@dataclass
class Rounds:
    """The results of all rounds with one target."""

    stops_ms: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    events: int = 0
    lost: int = 0
    not_left: int = 0
    seen: list[dict[str, int]] = field(default_factory=list)


def look(pid: int) -> dict[str, int]:
    """Return the counts of everything that attaching could leave behind in a process."""
    place = Path("/proc") / str(pid)
    fields = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    return {
        "rss_kb": int(fields["RssAnon"].split()[0]),
        "size_kb": int(fields["VmSize"].split()[0]),
        "maps": len((place / "maps").read_text().splitlines()),
        "fds": len(list((place / "fd").iterdir())),
        "threads": int(fields["Threads"]),
    }


def attach_once(pid: int, trace: Path, milliseconds: float, done: Rounds) -> None:
    """Attach for a moment."""
    process = Process(pid)
    options = AttachOptions(
        pid=pid, output=trace, levels=parse_levels("2"), buffers=BufferOptions(), force=True,
        duration_ns=int(milliseconds * 1e6), patience_ns=20_000_000_000,
    )  # fmt: skip
    names = Names(Symbols(OneProcess(process)))
    try:
        injection = Injection(process, names, _paths.library(_paths.PRELOAD))
        outcome, recording = record(options, injection, lambda: False, lambda _: None)
    except PttError as error:
        done.refused.append(str(error))
        return
    finally:
        shutil.rmtree(trace, ignore_errors=True)
    done.stops_ms.append(recording.stopped_ns / 1e6)
    done.events += outcome.stats.events
    done.lost += outcome.stats.lost
    done.not_left += not recording.has_left


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(command: str, place: Path, log: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a shell command in a session of its own, and end the whole session afterwards."""
    with (place / log).open("w") as file:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=place, text=True, start_new_session=True,
            stderr=file, **{"stdout": file, **more},
        )  # fmt: skip
        try:
            yield process
        finally:
            subprocess.run(
                ["kill", "-9", "--", f"-{process.pid}"], check=False, capture_output=True
            )
            process.wait()


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Wait until the port takes connections."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{process.args} does not take connections")


def attach_often(pid: int, place: Path, options: argparse.Namespace) -> Rounds:
    """Attach as often as the options say, at random moments and for random times."""
    done = Rounds()
    chance = random.Random(options.seed)  # noqa: S311 -- nothing is to be kept secret
    until = time.monotonic() + options.seconds
    for number in range(options.rounds):
        if time.monotonic() > until or not Path(f"/proc/{pid}/exe").exists():
            break
        if number in {0, max(3, options.rounds // 4)}:
            done.seen.append(look(pid))
        attach_once(pid, place / "trace", chance.uniform(10, options.most), done)
        time.sleep(chance.uniform(0, 0.03))
    if Path(f"/proc/{pid}/exe").exists():
        done.seen.append(look(pid))
    return done


def check(name: str, options: argparse.Namespace, place: Path) -> list[str]:
    """Attach to one target, print a line, and return the errors."""
    target, port = TARGETS[name], free_port()
    words = {"place": place, "port": port}
    (place / "conf").write_text(NGINX.format(**words), encoding="utf-8")
    (place / "plugin.c").write_text(PLUGIN, encoding="utf-8")
    for command in target.before:
        words_of_shell = ["sh", "-c", command.format(**words)]
        subprocess.run(words_of_shell, cwd=place, check=True, capture_output=True)
    with running(f"exec {target.command.format(**words)}", place, "server.log") as server:
        if name == "stress":
            time.sleep(1)
        else:
            wait_for(port, server)
        asks = f"exec {sys.executable} {PARTS}/client.py {target.client} {port}"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        load = target.load.format(**words) or "exec sleep 1000000"
        with (
            running(
                asks if target.client else "cat; echo {}", place, "client.log", **pipes
            ) as client,
            running(load, place, "load.log") as busy,
        ):
            time.sleep(8 if name == "mariadb" else 1)
            done = attach_often(server.pid, place, options)
            ended, idle = server.poll(), busy.poll()
            answered = json.loads(client.communicate(timeout=120)[0] or "{}")
    return report(name, done, answered, place, ended=ended, idle=idle)


def report(
    name: str, done: Rounds, answered: dict[str, Any], place: Path, *, ended: int | None,
    idle: int | None,
) -> list[str]:  # fmt: skip
    """Print a line, and return the errors."""
    stops = sorted(done.stops_ms) or [0.0]
    median, p99 = stops[len(stops) // 2], stops[int(len(stops) * 0.99)]
    first, then, last = [*done.seen, {}, {}, {}][:3]
    grown = {what: last[what] - then[what] for what in last if what in then}
    print(
        f"{name:<10}{len(done.stops_ms):>5} rounds{len(done.refused):>4} refused  "
        f"stop {median:.1f} p99 {p99:.1f} most {stops[-1]:.1f} ms {done.events:>9} events "
        f"{done.lost} lost  "
        f"{answered.get('requests', 0)} requests {answered.get('ms', '')}\n"
        f"{'':10}first {first}\n{'':10}last  {last}\n{'':10}grown {grown} since a quarter",
        flush=True,
    )
    for why in sorted({*done.refused}):
        print(f"{'':10}refused {done.refused.count(why)} times: {why}")
    wrong = [f"{name}: an answer: {text}" for text in answered.get("wrong", [])]
    wrong += [
        f"{name}: {n} {what}" for n, what in ((done.lost, "lost"), (done.not_left, "not left")) if n
    ]
    if ended is not None:
        wrong.append(f"{name}: it has ended, status {ended}: {tail(place / 'server.log')}")
    if idle is not None:
        wrong.append(f"{name}: what keeps it busy has ended: {tail(place / 'load.log')}")
    if p99 > STOP_MS:
        wrong.append(f"{name}: stops of {p99:.1f} ms, {STOP_MS} are allowed")
    return wrong


def tail(path: Path) -> str:
    """Return the end of a file."""
    return path.read_text(encoding="utf-8", errors="replace")[-500:]


def main() -> int:
    """Print a line for each target; return 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "targets", nargs="*", default=[*TARGETS], metavar="TARGET", help=", ".join(TARGETS)
    )
    parser.add_argument("-n", "--rounds", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument(
        "--most", type=float, default=100, help="milliseconds (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=3600, help="of each (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args()
    wrong: list[str] = []
    for name in options.targets:
        missing = [program for program in TARGETS[name].needs if not shutil.which(program)]
        if missing:
            print(f"{name:<10}left out: {missing[0]} is not installed")
            continue
        with tempfile.TemporaryDirectory(
            prefix="ptt-attach-", dir=os.environ.get("PTT_BENCH_DIR")
        ) as place:
            Path(place).chmod(0o755)
            wrong += check(name, options, Path(place))
    for line in wrong:
        print(line)
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
