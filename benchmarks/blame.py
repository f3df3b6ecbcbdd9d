"""Checks the blame for waits: against planted times, and against the holds of other threads.

beside N       a program keeps locks for a known time, beside N busy processes. The figures are the
               share of waits with `held_ns` within 5 % or 50 us of the truth, and the share with
               such a `wake_ns`. (An awake thread may wait for a processor before it reads its
               clock.)
overlap        real programs: the share of the blamed time (`held_ns`) in which another thread
               holds the lock, as the table `holds` says
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from support.common import (
    PTT,
    ROOT,
    Figures,
    busy,
    compile_c,
    environment,
    have,
    keep,
    scratch_directory,
)
from support.workloads import free_port, wait_for_port

sys.path.insert(0, str(ROOT / "src"))
import nptltrace

BESIDE = (0, 2, 8)
NEAR, NEAR_NS = 0.05, 50_000
OVERLAP = 0.99


# ---- planted ----------------------------------------------------------------------------------


def contended(trace: Path) -> list[dict[str, Any]]:
    """Return the contended waits of a trace in the order of time."""
    rows = nptltrace.open(trace).table("waits").to_pylist()
    return sorted((row for row in rows if row["class"] == "contended"), key=lambda r: r["t_ns"])


def near(measured: int, planted: int) -> bool:
    """Return whether a time is near enough to the planted time."""
    return abs(measured - planted) <= max(planted * NEAR, NEAR_NS)


def planted_share(program: Path, trace: Path) -> tuple[float, float]:
    """Record the program once, and return the shares of waits with a true held and wake time."""
    record = [*PTT, "record", "-q", "-o", str(trace), "--", str(program)]
    done = subprocess.run(record, env=environment(), check=True, capture_output=True, text=True)
    planted = [line.split()[1:] for line in done.stdout.splitlines()]
    rows = list(zip(contended(trace), planted, strict=True))
    held = [near(row["held_ns"], int(truth)) for row, (truth, _) in rows]
    wake = [near(row["wake_ns"], int(truth)) for row, (_, truth) in rows]
    return sum(held) / len(held), sum(wake) / len(wake)


# ---- overlap ----------------------------------------------------------------------------------


def held_until(holds: np.ndarray[Any, Any], times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return how long any thread held the lock up to each time; holds are rows of begin, end."""
    holds = holds[np.argsort(holds[:, 0])]
    ends = np.maximum.accumulate(holds[:, 1])
    begins = np.maximum(holds[:, 0], np.concatenate(([holds[0, 0]], ends[:-1])))
    lengths = np.maximum(ends - begins, 0)
    before = np.concatenate(([0], np.cumsum(lengths)))
    at = np.searchsorted(begins, times, "right")
    last = np.maximum(at - 1, 0)
    inside = np.clip(times - begins[last], 0, lengths[last])
    return np.where(at > 0, before[last] + inside, 0)


def overlap(trace: Path) -> tuple[float, int]:
    """Return the share of the blamed time in which others held, and the blamed time in ns."""
    traces = nptltrace.open(trace)
    by_others = blamed = 0
    holds: dict[tuple[int, int], list[tuple[int, int]]] = {}
    columns = ("process", "lock_id", "t_ns", "dur_ns")
    for row in traces.table("holds", columns).to_pylist():
        at = holds.setdefault((row["process"], row["lock_id"]), [])
        at.append((row["t_ns"], row["t_ns"] + row["dur_ns"]))
    waits: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for row in contended(trace):
        at_lock = waits.setdefault((row["process"], row["lock_id"]), [])
        at_lock.append((row["t_ns"], row["t_ns"] + row["dur_ns"], row["held_ns"]))
    for lock, rows in waits.items():
        table = np.array(rows)
        blamed += int(table[:, 2].sum())
        if lock in holds:
            ranges = np.array(holds[lock])
            held = held_until(ranges, table[:, 1]) - held_until(ranges, table[:, 0])
            by_others += int(np.minimum(held, table[:, 2]).sum())
    return by_others / blamed if blamed else 1.0, blamed


def fetch(url: str) -> None:
    """Ask a server for a page, whatever it answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- our own server
            answer.read()
    except (urllib.error.URLError, OSError):
        pass


def load(port: int, requests: int) -> None:
    """Ask a server for pages from several threads."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, [f"http://127.0.0.1:{port}/{n % 50}" for n in range(requests)]))


def real_programs(work: Path, seconds: int) -> Iterator[tuple[str, list[str], int]]:
    """Yield the programs that this machine has: name, command, and the port of a server."""
    if have("sysbench"):
        for test in ("mutex", "threads"):
            command = ["sysbench", test, "--threads=4", f"--time={seconds}"]
            more = ["--mutex-num=4", "--mutex-loops=1000"] if test == "mutex" else []
            yield f"sysbench {test}", [*command, *more, "run"], 0
    if have("db_bench"):
        options = [f"--db={work / 'db'}", "--threads=4", f"--num={seconds * 20_000}"]
        yield "rocksdb", ["db_bench", "--benchmarks=fillrandom,readrandom", *options], 0
    if have("nginx"):
        port = free_port()
        text = (
            f"daemon off; master_process on; worker_processes 2; pid {work / 'nginx.pid'};"
            f"error_log /dev/null; thread_pool default threads=4; events {{}}"
            f"http {{ access_log off; aio threads=default; sendfile on;"
            f"server {{ listen 127.0.0.1:{port}; root /usr/share; }} }}"
        )
        (work / "nginx.conf").write_text(text, encoding="ascii")
        yield "nginx", ["nginx", "-c", str(work / "nginx.conf"), "-p", str(work)], port
    if have("varnishd", "gcc"):
        port = free_port()
        text = 'vcl 4.1; backend none none; sub vcl_recv { return (synth(200, "OK")); }'
        (work / "site.vcl").write_text(text, encoding="ascii")
        at = ["-a", f"127.0.0.1:{port}", "-f", str(work / "site.vcl"), "-n", str(work / "varnish")]
        yield "varnish", ["varnishd", "-F", "-j", "none", *at], port
    if have("gunicorn"):
        port = free_port()
        text = """
import threading
lock, seen = threading.Lock(), {}
def app(environ, start_response):
    with lock:
        path = environ["PATH_INFO"]
        seen[path] = seen.get(path, 0) + sum(range(10000))
    start_response("200 OK", [])
    return [b"%d" % seen[path]]
"""
        (work / "pages.py").write_text(text, encoding="ascii")
        at = ["--bind", f"127.0.0.1:{port}", "--chdir", str(work), "--workers", "2"]
        yield "gunicorn", ["gunicorn", *at, "--threads", "4", "pages:app"], port


def record_program(command: list[str], port: int, trace: Path, requests: int) -> None:
    """Record a program until it ends, or a server while it is asked for pages."""
    record = [*PTT, "record", "-q", "-o", str(trace), "--", *command]
    null = subprocess.DEVNULL
    with subprocess.Popen(record, env=environment(), stdout=null, stderr=null) as recorder:
        if port:
            wait_for_port(port, recorder)
            load(port, requests)
            recorder.terminate()


def main() -> int:
    """Measure; fail if a planted time is not found, or if holders get blamed for others' time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=5, help="runs beside so many processes")
    parser.add_argument("-s", "--seconds", type=int, default=3, help="about, of each real program")
    args = parser.parse_args()
    figures, bad = {}, False
    with scratch_directory() as name:
        work = Path(name)
        program = compile_c(ROOT / "tests" / "programs" / "planted.c", work / "planted", "-pthread")
        for beside in BESIDE:
            with busy(beside):
                shares = [
                    planted_share(program, work / f"planted-{beside}-{number}")
                    for number in range(args.rounds)
                ]
            for what, values in zip(("held", "wake"), zip(*shares, strict=True), strict=True):
                figure = figures[f"{what} beside {beside}"] = Figures(tuple(values))
                print(f"beside {beside}: {what} as planted in a share of {figure}")
                bad |= what == "held" and figure.median < 1 - NEAR
        for number, (title, command, port) in enumerate(real_programs(work, args.seconds)):
            trace = work / f"real-{number}"
            record_program(command, port, trace, args.seconds * 1000)
            share, blamed = overlap(trace)
            figures[f"overlap {title}"] = Figures((share,))
            print(f"{title}: {share:.2%} of {blamed / 1e6:.1f} ms that holders are blamed for")
            bad |= share < OVERLAP
    keep("blame", figures)
    print(f"bounds: {'NOT HELD' if bad else 'held'}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
