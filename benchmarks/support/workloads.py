"""The whole programs to trace: their commands, the clients of servers, and their input files."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.common import have

DATA_BYTES = 160 << 20
CLIP_S = 120
WAIT_S = 30.0
# Threads that compute. Each runs while it has the interpreter's lock.
PYTHON = """
import sys, threading
def work():
    sum(i * i for i in range(int(sys.argv[1])))
ts = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
"""
# Threads that hand on small objects: at least the operations of two locks for each object.
PYTHON_QUEUE = """
import queue, sys, threading
count, handed = int(sys.argv[1]), queue.Queue(64)
def put():
    for i in range(count): handed.put(i)
def get():
    for i in range(count): handed.get()
ts = [threading.Thread(target=work) for work in (put, get) * 2]
[t.start() for t in ts]; [t.join() for t in ts]
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A workload.

    Attributes:
        name: Its name in tables.
        command: The command to trace.
        client: For servers: an untraced command that loads the server. The run of the client
            counts.
        port: The port of the server.
        bound: The allowed ratio of its times at level 2 and untraced. None for programs that do
            little but traced calls: they have no bound.
        noisy: Whether to add the noise of untraced runs to the bound.
    """

    name: str
    command: tuple[str, ...]
    client: tuple[str, ...] = ()
    port: int = 0
    bound: float | None = 1.01
    noisy: bool = True


def silently(*command: str) -> None:
    """Run a command that must succeed, without its output."""
    null = subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=null, stderr=null)


def make_clip(path: Path, seconds: float) -> None:
    """Make a video to encode."""
    source = f"testsrc2=size=640x360:rate=30:duration={seconds:g}"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", path],
        check=True,
    )


def make_data(path: Path, size: int) -> None:
    """Put the system's libraries into one file, so that no part of it repeats another."""
    with path.open("wb") as out:
        for library in sorted(Path("/usr/lib").glob("*/lib*.so*")):
            if library.is_symlink() or not library.is_file():
                continue
            out.write(library.read_bytes()[: size - out.tell()])
            if out.tell() >= size:
                return


def programs(work: Path, scale: float) -> Iterator[Program]:
    """Yield the installed workloads, and make the input files of each workload before it.

    Args:
        work: A directory for the input files.
        scale: Their length, 1 for about ten seconds.
    """
    yield from _encoders(work, scale)
    yield from _servers(work, scale)
    yield from _compressors(work, scale)
    if have("7z"):
        yield Program("7z", ("7z", "b", str(max(1, round(scale))), "-mmt2", "-md20"))
    for name, text, count, bound in (
        ("python", PYTHON, 70_000_000, 1.01),
        ("python-queue", PYTHON_QUEUE, 2_400_000, None),
    ):
        script = work / f"{name}.py"
        script.write_text(text, encoding="utf-8")
        command = (sys.executable, str(script), str(int(count * scale)))
        yield Program(name, command, bound=bound)


def _encoders(work: Path, scale: float) -> Iterator[Program]:
    clip, out = work / "clip.y4m", work / "out.264"
    if not have("ffmpeg"):
        return
    make_clip(clip, CLIP_S * scale)
    if have("x264"):
        x264 = (
            "x264",
            "--quiet",
            "--preset",
            "medium",
            "--threads",
            "4",
            "-o",
            str(out),
            str(clip),
        )
        yield Program("x264", x264, bound=1.06, noisy=False)
    encode = ("-c:v", "libx264", "-preset", "fast", "-threads", "4", "-f", "null", "-")
    ffmpeg = ("ffmpeg", "-v", "error", "-nostdin", "-y", "-i", str(clip), *encode)
    yield Program("ffmpeg", ffmpeg, bound=1.06, noisy=False)


def _servers(work: Path, scale: float) -> Iterator[Program]:
    user = pwd.getpwuid(os.getuid()).pw_name
    if have("memcached", "memcslap"):
        port = free_port()
        serve = ("memcached", "-u", user, "-p", str(port), "-t", "2", "-l", "127.0.0.1")
        load = ("memcslap", f"--servers=127.0.0.1:{port}", "--concurrency=4",
                f"--execute-number={int(160_000 * scale)}")  # fmt: skip
        yield Program("memcached", serve, load, port, bound=1.10, noisy=False)
    if have("mariadbd", "mariadb-install-db", "mariadb", "sysbench"):
        yield mariadb(work / "mariadb", user, scale)
    if have("redis-server", "redis-benchmark"):
        port = free_port()
        serve = ("redis-server", "--port", str(port), "--io-threads", "2", "--save", "",
                 "--appendonly", "no")  # fmt: skip
        load = ("redis-benchmark", "-p", str(port), "-n", str(int(300_000 * scale)), "-c", "50",
                "-q", "-t", "set,get")  # fmt: skip
        yield Program("redis", serve, load, port)


def mariadb(data: Path, user: str, scale: float) -> Program:
    """Make a database with two tables."""
    port = free_port()
    at = f"--socket={data / 'server.sock'}"
    silently("mariadb-install-db", "--no-defaults", f"--user={user}", f"--datadir={data}",
             "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
    serve = ("mariadbd", "--no-defaults", f"--user={user}", f"--datadir={data}", f"--port={port}",
             "--bind-address=127.0.0.1", at, f"--pid-file={data / 'pid'}",
             "--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=0")  # fmt: skip
    bench = ("sysbench", "oltp_read_write", "--db-driver=mysql", f"--mysql-{at[2:]}",
             "--mysql-user=root", "--tables=2", "--table-size=10000", "--time=0", "--rand-seed=7",
             f"--events={int(10_000 * scale)}")  # fmt: skip
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_port(port, server)
            silently("mariadb", "--no-defaults", at, "-u", "root", "-e", "create database sbtest")
            silently(*bench, "prepare")
        finally:
            server.terminate()
    return Program("mariadb", serve, (*bench, "--threads=4", "run"), port, bound=1.04)


def _compressors(work: Path, scale: float) -> Iterator[Program]:
    data = work / "data"
    make_data(data, int(DATA_BYTES * scale))
    often = (str(data),) * 4
    if have("pigz"):
        yield Program("pigz", ("pigz", "-p4", "-kc", *often))
    if have("zstd"):
        yield Program("zstd", ("zstd", "-q", "-T2", "-9", "-c", *often))
    if have("xz"):
        yield Program("xz", ("xz", "-T2", "-2", "-kc", str(data)))


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for_port(port: int, server: subprocess.Popen[bytes]) -> None:
    """Block until a server listens.

    Raises:
        SystemExit: The server ended, or does not listen in time.
    """
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    sys.exit(f"{server.args} does not listen on port {port}")
