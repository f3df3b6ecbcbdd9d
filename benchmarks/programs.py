#!/usr/bin/env python3
"""Whole programs, traced against untraced: wall time, draining included; LTTng where installed."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common import PTT, Figures, environment, have, interleave, keep, scratch

NICE = ["pigz", "zstd", "xz", "redis", "7z", "python"]
BOUND = {"x264": 1.06, "ffmpeg": 1.06, "memcached": 1.10}
LTTNG_WRAPPER = "liblttng-ust-pthread-wrapper.so"


@dataclass(frozen=True, slots=True)
class Program:
    """A workload: the traced command, and for servers the client that loads it."""

    name: str
    command: tuple[str, ...]
    client: tuple[str, ...] = ()
    port: int = 0


def make_input(work: Path) -> None:
    """Make the files that the workloads read: a clip, and text that compresses like text."""
    if have("ffmpeg"):
        clip = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=640x360:rate=30:duration=60",
            "-pix_fmt",
            "yuv420p",
        ]
        subprocess.run(["ffmpeg", "-v", "error", "-y", *clip, str(work / "clip.y4m")], check=True)
    _make_data(work / "data")


def _make_data(path: Path, size: int = 160 << 20) -> None:
    """Put the system's libraries into one file, so that no part of it repeats another."""
    with path.open("wb") as out:
        for library in sorted(Path("/usr/lib").glob("*/lib*.so*")):
            if library.is_symlink() or not library.is_file():
                continue
            out.write(library.read_bytes()[: size - out.tell()])
            if out.tell() >= size:
                return


PYTHON = """
import threading, time
lock = threading.Lock(); total = 0
def work():
    global total
    for i in range(400000):
        with lock: total += i & 3
ts = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
sum(i * i for i in range(6000000))
"""


def programs(work: Path) -> Iterator[Program]:
    """Yield the workloads that this machine has installed."""
    clip, data, out = str(work / "clip.y4m"), str(work / "data"), str(work / "out")
    if have("x264", "ffmpeg"):
        yield Program(
            "x264",
            ("x264", "--quiet", "--preset", "medium", "--threads", "4", "-o", out + ".264", clip),
        )
    if have("ffmpeg"):
        enc = ("-c:v", "libx264", "-preset", "fast", "-threads", "4", "-f", "null", "-")
        yield Program("ffmpeg", ("ffmpeg", "-v", "error", "-y", "-i", clip, *enc))
    if have("memcached", "memcslap"):
        load = (
            "memcslap",
            "--servers=127.0.0.1:21211",
            "--concurrency=4",
            "--execute-number=80000",
        )
        yield Program(
            "memcached",
            ("memcached", "-u", "nobody", "-p", "21211", "-t", "2", "-l", "127.0.0.1"),
            load,
            21211,
        )
    if have("pigz"):
        yield Program("pigz", ("pigz", "-p4", "-kc", data))
    if have("zstd"):
        yield Program("zstd", ("zstd", "-q", "-T2", "-9", "-f", data, "-o", out + ".zst"))
    if have("xz"):
        yield Program("xz", ("xz", "-T2", "-2", "-kc", data))
    if have("redis-server", "redis-benchmark"):
        load = ("redis-benchmark", "-p", "26379", "-n", "400000", "-c", "50", "-q", "-t", "set,get")
        serve = (
            "redis-server",
            "--port",
            "26379",
            "--io-threads",
            "2",
            "--save",
            "",
            "--appendonly",
            "no",
        )
        yield Program("redis", serve, load, 26379)
    if have("7z"):
        yield Program("7z", ("7z", "b", "1", "-mmt2", "-md20"))
    script = work / "threads.py"
    script.write_text(PYTHON, encoding="utf-8")
    yield Program("python", (sys.executable, str(script)))


def wait_for_port(port: int) -> None:
    """Block until a server listens."""
    import socket

    for _ in range(500):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    sys.exit(f"nothing listens on port {port}")


def run(program: Program, prefix: list[str], env: dict[str, str], errors: Path) -> float:
    """Time one run; of a server, its client's run."""
    with errors.open("w") as err:
        began = time.monotonic()
        if not program.client:
            subprocess.run(
                [*prefix, *program.command],
                env=env,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
            return time.monotonic() - began
        server = subprocess.Popen(
            [*prefix, *program.command], env=env, stdout=subprocess.DEVNULL, stderr=err
        )
        try:
            wait_for_port(program.port)
            began = time.monotonic()
            subprocess.run(
                program.client, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            return time.monotonic() - began
        finally:
            server.terminate()
            server.wait()


@contextmanager
def lttng(work: Path) -> Iterator[bool]:
    """Run an LTTng session with the wrapper's events, default buffers, where it is installed."""
    wrapper = list(Path("/usr/lib").glob(f"*/{LTTNG_WRAPPER}*"))
    if not (have("lttng", "lttng-sessiond") and wrapper):
        yield False
        return

    def tell(*words: str) -> None:
        subprocess.run(["lttng", *words], check=True, stdout=subprocess.DEVNULL)

    session = f"ptt-bench-{os.getpid()}"
    tell("create", session, f"--output={work}/lttng")
    tell("enable-event", "-u", "lttng_ust_pthread:*")
    tell("add-context", "-u", "-t", "vtid")
    tell("start")
    try:
        yield True
    finally:
        tell("destroy", session)


def measure(program: Program, levels: list[str], rounds: int, work: Path) -> dict[str, Figures]:
    """Interleave untraced, traced at each level, and LTTng."""
    env = environment()
    trace, err = work / "trace", work / "stderr"
    lost: list[str] = []

    def traced(level: str) -> float:
        prefix = [*PTT, "record", "--force", "-l", level, "-o", str(trace), "--"]
        seconds = run(program, prefix, env, err)
        last = err.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        if not last or " (0 lost" not in last[0]:
            lost.append(f"{program.name} at level {level}: {last}")
        return seconds

    cases: dict[str, Callable[[], float]] = {
        "untraced": lambda: run(program, [], dict(os.environ), err)
    }
    for level in levels:
        cases[f"level {level}"] = lambda level=level: traced(level)  # type: ignore[misc]
    with lttng(work) as there:
        if there:
            preload = {**os.environ, "LD_PRELOAD": LTTNG_WRAPPER}
            cases["lttng"] = lambda: run(program, [], preload, err)
        figures = interleave(cases, rounds)
    for line in lost:
        print("LOST", line)
    return figures


def main() -> int:
    """Measure every workload; fail where a bound is exceeded beyond the noise of untraced runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=9)
    parser.add_argument("-l", "--level", action="append", default=[])
    parser.add_argument("only", nargs="*", help="names of workloads")
    args = parser.parse_args()
    work = scratch()
    make_input(work)
    bad = 0
    for program in programs(work):
        if args.only and program.name not in args.only:
            continue
        figures = measure(program, args.level or ["1", "2"], args.rounds, work)
        bare = figures["untraced"]
        noise = (max(bare.values) - min(bare.values)) / bare.median / 2
        print(f"{program.name}: untraced {bare} s")
        for name, f in figures.items():
            if name == "untraced":
                continue
            ratio = f.median / bare.median
            bound = BOUND.get(program.name, 1.01) if name == "level 2" else 1.01
            verdict = ""
            if name != "lttng":
                over = ratio > bound + (noise if bound == 1.01 else 0)
                bad |= over
                room = " + noise" if bound == 1.01 else ""
                verdict = f"  bound {bound}{room} {'OVER' if over else 'held'}"
            print(f"    {name:<10}{f} s  × {ratio:.3f}{verdict}")
        keep(f"program-{program.name}", figures, noise=noise)
    shutil.rmtree(work)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
