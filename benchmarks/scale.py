#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how processor time and memory of commands grow with what a trace has much of.

Traces of n and of 2n processes, threads, locks held at once and so on are made by hand, and read
by `ptt stat`, `report`, `check` and `sql`; programs of n and of 2n processes and threads are
recorded. What is linear takes twice as much. Time is that in user mode, of the fastest round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from common import PTT, ROOT, compile_c, environment, scratch

# The traces are made as those of the tests are.
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.analysis.story import MAIN, A, Story  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 2.2
COMMANDS: dict[str, list[str]] = {
    "stat": ["stat"],
    "report": ["report"],
    "check": ["check"],
    "sql": ["sql", "select count(*) from waits"],
}
_HEAP = 0x7F0000000000


def processes(n: int) -> Story:
    """Forked processes, all of the first one."""
    story: Any = Story()
    for number in range(1, n):
        pid = MAIN + number
        story.processes[pid] = {"index": number, "ppid": MAIN, "parent": 0}
        story.do(pid, "PROCESS_START", pid, pid=pid, site=1, ppid=MAIN)
        story.do(pid, "MUTEX_TAKEN", A, pid=pid, site=2).do(pid, "MUTEX_FREE", A, pid=pid, site=3)
    return story


def threads(n: int) -> Story:
    """Threads that the first one creates."""
    story = Story()
    for tid in range(1000, 1000 + n):
        story.create(tid).lock(tid, A, site=2).do(tid, "MUTEX_FREE", A, site=3)
    return story


def chain(n: int) -> Story:
    """Threads that each create the next one."""
    story, creator = Story(), MAIN
    for tid in range(1000, 1000 + n):
        story.create(tid, by=creator)
        creator = tid
    return story


def held(n: int) -> Story:
    """Locks that one thread holds at once."""
    story = Story()
    for number in range(n):
        story.lock(MAIN, _HEAP + 64 * number, site=2)
    for number in range(n):
        story.do(MAIN, "MUTEX_FREE", _HEAP + 64 * number, site=3)
    return story


def objects(n: int) -> Story:
    """Locks, one after the other."""
    story = Story()
    for number in range(n):
        lock = _HEAP + 64 * number
        story.lock(MAIN, lock, site=2).do(MAIN, "MUTEX_FREE", lock, site=3)
    return story


def sites(n: int) -> Story:
    """Call sites, each of which takes the same lock."""
    story = Story()
    for number in range(n):
        story.lock(MAIN, A, site=1 + number).do(MAIN, "MUTEX_FREE", A, site=1 + number)
    return story


def modules(n: int) -> Story:
    """Libraries that a process has loaded, each of which takes the same lock."""
    story: Any = Story()
    story.modules = n
    for number in range(n):
        story.lock(MAIN, A, site=1 + number).do(MAIN, "MUTEX_FREE", A, site=1 + number)
    return story


SUBJECTS: dict[str, Callable[[int], Story]] = {
    "processes": processes,
    "threads": threads,
    "chain of creators": chain,
    "locks held at once": held,
    "objects": objects,
    "call sites": sites,
    "modules": modules,
}


# Short processes one after the other, or threads alive at once.
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *once(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *meet(void *unused)
{
	once(unused);
	pthread_barrier_wait(&barrier);
	return unused;
}

int main(int argc, char **argv)
{
	int n = atoi(argv[argc - 1]);
	pthread_t *threads = calloc(n, sizeof(*threads));
	pthread_attr_t small;

	if (argv[1][0] == 'p') {
		for (int i = 0; i < n; i++) {
			pid_t child = fork();

			if (!child) {
				once(NULL);
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
		return 0;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &small, meet, NULL))
			abort();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""
RECORDED = ("processes", "threads")


def measure(command: list[str]) -> tuple[float, int]:
    """Return the time in user mode in seconds and the memory in kB that a command takes."""
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
    return used.ru_utime, used.ru_maxrss


def growth(rounds: int, commands: tuple[list[str], list[str]]) -> tuple[float, float, float, float]:
    """Return time and memory of a command for n, and both for 2n."""
    seen: list[list[tuple[float, int]]] = [[], []]
    for _ in range(rounds):
        for rows, command in zip(seen, commands, strict=True):
            rows.append(measure(command))
    (time, memory), (time2, memory2) = (
        (min(row[0] for row in rows), min(row[1] for row in rows)) for rows in seen
    )
    return time, memory, time2, memory2


def commands_of(
    subject: str, make: Callable[[int], Story], n: int, directory: Path, program: Path
) -> dict[str, tuple[list[str], list[str]]]:
    """Make the traces; return the commands for n and for 2n, by name."""
    counts = (n, 2 * n)
    traces = [str(make(count).exit().write_to(directory / f"{count}.ptt")) for count in counts]
    commands = {
        name: [[*PTT, words[0], trace, *words[1:]] for trace in traces]
        for name, words in COMMANDS.items()
    }
    if subject in RECORDED:
        out = ["--force", "-o", str(directory / "recorded.ptt")]
        commands["record"] = [
            [*PTT, "record", "-q", *out, str(program), subject, str(count)] for count in counts
        ]
    return {name: (first, second) for name, (first, second) in commands.items()}


def main() -> int:
    """Print a table; return 1 where something grows by more than the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("-k", default="", metavar="NAME", help="only subjects with NAME in them")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    options = parser.parse_args()
    worst = 0.0
    print(f"{'':<20}{'command':<9}{'time':>9}{'of 2n':>9}{'':>7}{'memory':>11}{'of 2n':>11}")
    directory = scratch()
    try:
        source = directory / "program.c"
        source.write_text(PROGRAM, encoding="utf-8")
        program = compile_c(source, directory / "program")
        for subject, make in SUBJECTS.items():
            if options.k not in subject:
                continue
            for name, pair in commands_of(subject, make, options.n, directory, program).items():
                time, memory, time2, memory2 = growth(options.rounds, pair)
                grown, more = time2 / time, memory2 / memory
                worst = max(worst, grown, more)
                print(
                    f"{subject:<20}{name:<9}{time:>8.2f}s{time2:>8.2f}s{grown:>6.2f}x"
                    f"{memory / 1024:>8.0f} MB{memory2 / 1024:>8.0f} MB{more:>6.2f}x",
                    flush=True,
                )
    finally:
        rmtree(directory)
    print(f"at most {worst:.2f} x from n to 2n; linear is 2, up to {LIMIT} is allowed")
    return int(worst > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
