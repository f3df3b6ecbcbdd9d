#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the findings of `ptt hang` on the corpus: hung programs, correct programs, idle servers.

planted   each program that hangs, dynamic and static, at -O0 and -O2. `ptt hang` looks at the
          process, and then at its core file. A finding counts as `named` if it has the planted
          kind, threads and objects. It counts as `stuck` if it only says that no thread goes on.
          Any other finding counts by its kind.
correct   the correct programs: `ptt hang` looks again and again while they run, and must not
          accuse them.
servers   servers and other programs without work: `ptt hang` must not accuse them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.common import HERE, ROOT, environment, scratch_directory
from support.workloads import free_port

os.environ.update(environment())
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from nptltrace.cli import main as ptt  # noqa: E402 -- the path comes first
from tests.corpus.programs import (  # noqa: E402 -- as above
    CORPUS,
    Came,
    Expected,
    Program,
    correct,
    planted,
    run,
)

FLAGS = ("-g", "-pthread", f"-I{CORPUS}")
COMPILERS = {".c": ("gcc", "-std=gnu11"), ".cc": ("g++", "-std=c++20")}
WAYS = {
    "-O0": ("-O0",),
    "-O2": ("-O2",),
    "-O0 -static": ("-O0", "-static"),
    "-O2 -static": ("-O2", "-static"),
}
NAMED, NOTHING = "named", "–"
MOST_LOOKS = 30
PATTERN = Path("/proc/sys/kernel/core_pattern")
SERVERS = {
    "redis": "redis-server --port {port} --save '' --io-threads 2",
    "memcached": "memcached -u nobody -l 127.0.0.1 -p {port}",
    "memcached, 16 threads": "memcached -t 16 -u nobody -l 127.0.0.1 -p {port}",
    "nginx": "nginx -p {place} -c {place}/nginx.conf",
    "mariadb": "mariadbd --no-defaults --user=root --datadir={place}/data --socket={place}/s "
    "--port={port} --bind-address=127.0.0.1 --skip-grant-tables",
    "http.server": "{python} -m http.server --bind 127.0.0.1 {port}",
    "socketserver": "{python} {parts}/server.py {port}",
    "thread pool of Python": "{python} -c 'from concurrent.futures import *; import time; "
    "p = ThreadPoolExecutor(8); [*p.map(time.sleep, [0.1] * 8)]; input()'",
    "multiprocessing": "{python} -c 'import multiprocessing as m, time; p = m.Pool(4); "
    "p.map(time.sleep, [0.1] * 4); input()'",
    "queue of Python": "{python} -c 'import queue, threading as t; q = queue.Queue(); "
    "[t.Thread(target=q.get).start() for _ in range(4)]; input()'",
    "asyncio": "{python} -c 'import asyncio; asyncio.run(asyncio.sleep(1000))'",
    "node": "node {parts}/server.js {port}",
    "java": "java {parts}/Server.java {port}",
    "dbus-daemon": "dbus-daemon --session --nofork --address=unix:path={place}/bus",
    "tail -f": "tail -f /dev/null",
    "cat": "cat",
    "sh": "sh -c 'read line'",
    "ssh-agent": "ssh-agent -D -a {place}/agent",
    "gdb": "gdb -nx -q",
    "jshell": "jshell -s",
    "sqlite3": "sqlite3",
    "rsync": "rsync --daemon --no-detach --address=127.0.0.1 --port={port} --config=/dev/null",
    "sshd": "/usr/sbin/sshd -D -f /dev/null -h {place}/key -p {port} -o ListenAddress=127.0.0.1",
    "postgres": "postgres -D {place}/pg -k {place} -p {port}",
    "rabbitmq": "rabbitmq-server",
}
NGINX = """
daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;
thread_pool default threads=8;
events {{ worker_connections 64; }}
http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {place}; aio threads; }} }}
"""


def compiled(directory: Path, program: Program, way: str) -> Path | None:
    """Compile a program in one way; return None if that is impossible.

    A program that loads a library of its own cannot be static.
    """
    if program.module and "-static" in WAYS[way]:
        return None
    place = directory / f"{program.name.replace('/', '-')}{way.replace(' ', '')}"
    place.mkdir()
    target = place / program.source.stem
    compiler = COMPILERS[program.source.suffix]
    if program.module:
        module = f"{target}-module.so"
        source = str(CORPUS / "with" / program.module)
        subprocess.run([*compiler, *FLAGS, "-shared", "-fPIC", source, "-o", module], check=True)
    command = [*compiler, *WAYS[way], *FLAGS, str(program.source), "-o", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{program.name} {way}: {done.stderr}", file=sys.stderr)
        return None
    return target


def looked(*arguments: str) -> list[dict[str, Any]]:
    """Return the findings of `ptt hang`, run in this process to save its start."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = ptt(["hang", "--format", "json", *arguments])
    if status not in {0, 1}:
        return [{"kind": err.getvalue().strip(), "threads": [], "objects": []}]
    findings: list[dict[str, Any]] = json.loads(out.getvalue())["findings"]
    return findings


def judged(expected: Expected, came: Came, findings: Iterable[dict[str, Any]]) -> str:
    """Return the verdict on the findings: `named`, other kinds, or a dash for no finding."""
    threads = {came.threads[name] for name in expected.threads}
    objects = {came.objects[name] for name in expected.objects}
    kinds: list[str] = []
    for finding in findings:
        right = finding["kind"] in expected.kinds
        if right and threads <= {*finding["threads"]} and objects <= {*finding["objects"]}:
            return NAMED
        kinds.append(finding["kind"])
    return ", ".join(dict.fromkeys(kinds)) or NOTHING


class Looks:
    """Looks at the processes of a run, makes each process dump core, and looks at the core files.

    Args:
        place: The directory for core files.
    """

    def __init__(self, place: Path, options: Collection[str]) -> None:
        self._place, self._options = place, options
        self.live: list[dict[str, Any]] = []
        self.cores: list[dict[str, Any]] = []

    def __call__(self, pids: Collection[int]) -> None:
        """Look at processes."""
        for pid in pids:
            self.live += looked(*self._options, str(pid))
        if not has_cores():
            return
        for pid in pids:
            os.kill(pid, signal.SIGABRT)
            with contextlib.suppress(OSError):  # the process is gone
                place = Path(f"/proc/{pid}")
                # The first thread may have ended long before.
                while (
                    len(list((place / "task").iterdir())) > 1
                    or (place / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                ):
                    time.sleep(0.01)
            for core in self._place.glob("core*"):
                self.cores += looked(str(core))
                core.unlink()


def has_cores() -> bool:
    """Return whether the kernel writes core files into the directory of a process."""
    return not PATTERN.read_text(encoding="utf-8").startswith(("|", "/"))


def judge_planted(directory: Path, programs: list[Program], ways: Collection[str]) -> int:
    """Print a table of the verdicts on programs that hang."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    jobs = [(program, way) for program in programs for way in ways]
    width = max(len(program.name) for program in programs)
    print(f"{'':<{width}}  {'planted':<14}" + "".join(f"{way:<24}{'core':<24}" for way in ways))
    sums: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {job: pool.submit(compiled, directory, *job) for job in jobs}
        for program in programs:
            if program.expected is None:
                continue
            line = f"{program.name:<{width}}  {program.expected.kinds[0]:<14}"
            for way in ways:
                path = made[program, way].result()
                if path is None:
                    line += f"{'':<48}"
                    continue
                os.chdir(path.parent)  # core files go there
                looks = Looks(path.parent, ["--stop"] if program.spins else [])
                came = run(program, [str(path)], at_rest=looks)
                for which, findings in (("live", looks.live), ("core", looks.cores)):
                    word = judged(program.expected, came, findings)
                    sums[which, word] += 1
                    line += f"{word:<24}"
                shutil.rmtree(path.parent)
            print(line.rstrip(), flush=True)
    os.chdir(HERE)
    for (which, word), count in sorted(sums.items()):
        print(f"{which}: {count} {word}")
    return 0


def judge_correct(directory: Path, programs: list[Program], rounds: int) -> int:
    """Look at correct programs while they run; return the number of accused programs."""
    findings: list[dict[str, Any]] = []
    looks = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {program: pool.submit(compiled, directory, program, "-O2") for program in programs}
        for program in programs:
            path = made[program].result()
            for _ in range(rounds if path else 0):
                seen = looked_at_work([str(path)])
                looks += len(seen)
                accused = [finding for look in seen for finding in look]
                for finding in accused:
                    print(f"{program.name}: {finding['kind']}: {finding['message']}", flush=True)
                findings += accused
    print(f"{len(programs)} correct programs, {looks} looks: {len(findings)} findings")
    return len(findings)


def looked_at_work(command: list[str]) -> list[list[dict[str, Any]]]:
    """Run a program and look at it while it runs; return the findings of each look."""
    seen: list[list[dict[str, Any]]] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        while process.poll() is None and len(seen) < MOST_LOOKS:
            findings = looked(str(process.pid))
            # If the program has ended meanwhile, `ptt hang` reports an error.
            if all(finding["threads"] for finding in findings):
                seen.append(findings)
        with contextlib.suppress(ProcessLookupError):  # some programs wait until they are killed
            os.killpg(process.pid, signal.SIGKILL)
    return seen


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    return [pid, *(one for child in text.split() for one in descendants(int(child)))]


def judge_servers(directory: Path, names: Collection[str]) -> int:
    """Look at idle servers; return the number of accused servers."""
    seen = accused = 0
    for name in names:
        place, port = directory / f"server{seen}{name.replace(' ', '')}", free_port()
        place.mkdir()
        words = {"place": place, "port": port, "python": sys.executable, "parts": HERE / "attached"}
        command = shlex.split(SERVERS[name].format(**words))
        if not shutil.which(command[0]):
            print(f"{name}: left out, it is not installed")
            continue
        (place / "nginx.conf").write_text(NGINX.format(**words), encoding="utf-8")
        if name == "mariadb":
            install = ("mariadb-install-db", "--no-defaults", "--user=root")
            subprocess.run([*install, f"--datadir={place}/data"], check=True, capture_output=True)
        if name == "sshd":
            subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", place / "key"], check=True)
            Path("/run/sshd").mkdir(exist_ok=True)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=place, start_new_session=True,
        ) as server:  # fmt: skip
            time.sleep(4 if name in {"java", "mariadb", "jshell"} else 1.5)
            pids = descendants(server.pid) if server.poll() is None else []
            findings = [finding for pid in pids for _ in range(3) for finding in looked(str(pid))]
            with contextlib.suppress(ProcessLookupError):  # the server has ended by itself
                os.killpg(server.pid, signal.SIGKILL)
        print(f"{name}: {len(pids)} processes, {len(findings)} findings", flush=True)
        for finding in findings:
            print(f"  {finding['kind']}: {finding.get('message', '')}")
        seen += bool(pids)
        accused += bool(findings)
    print(f"{seen} servers and the like without work: {accused} with a finding")
    return accused


def main() -> int:
    """Judge; fail if `ptt hang` accuses a correct program or a server."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("planted", "correct", "servers")
    parser.add_argument("part", nargs="*", default=parts, metavar="PART", help=", ".join(parts))
    parser.add_argument(
        "-k", default="", metavar="NAME", help="only programs with NAME in their name"
    )
    parser.add_argument("--way", action="append", choices=WAYS, help="(default: all)")
    parser.add_argument("-n", "--rounds", type=int, default=1, help="of correct programs")
    args = parser.parse_args()
    accused = 0
    with scratch_directory() as name:
        directory = Path(name)
        if "planted" in args.part:
            hanging = [p for p in planted() if p.last_words and args.k in p.name]
            judge_planted(directory, hanging, args.way or [*WAYS])
        if "correct" in args.part:
            chosen = [p for p in correct() if args.k in p.name]
            accused += judge_correct(directory, chosen, args.rounds)
        if "servers" in args.part:
            accused += judge_servers(directory, [s for s in SERVERS if args.k in s])
    return int(accused > 0)


if __name__ == "__main__":
    sys.exit(main())
