#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how the processor time and memory of commands grow with n things in a trace.

The script makes traces of n and of 2n processes, threads, locks held at once and so on. `ptt stat`,
`report`, `check` and `sql` read these traces. The script also records programs with n and 2n such
things, and reads the traces with many modules. Linear growth takes twice as much. Time is the
processor time of the fastest round, in user and system mode.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from support.common import HERE, PTT, compile_c, environment, scratch_directory

LIMIT = 2.2
COMMANDS: dict[str, list[str]] = {
    "stat": ["stat"],
    "report": ["report"],
    "check": ["check"],
    "sql": ["sql", "select count(*) from waits"],
}
# The things that grow in made traces; support/stories.py makes the traces.
MADE = (
    "processes",
    "threads",
    "chain of creators",
    "locks held at once",
    "objects",
    "call sites",
    "modules",
)

# The program to record: the first argument names the things that grow, the last their number.
PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Each ends at once, or when all have begun. */
static void have_processes(int n, int together)
{
	int begun[2], end[2];
	char byte = 0;

	if (pipe(begun) || pipe(end))
		abort();
	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (child < 0)
			abort();
		if (!child) {
			once(NULL);
			close(end[1]);
			if (together && (write(begun[1], &byte, 1) != 1 || read(end[0], &byte, 1) < 0))
				abort();
			_exit(0);
		}
		if (!together)
			waitpid(child, NULL, 0);
	}
	for (int i = 0; together && i < n; i++)
		if (read(begun[0], &byte, 1) != 1)
			abort();
	close(end[1]);
	while (wait(NULL) > 0)
		;
}

static void have_threads(int n, int together)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		if (pthread_create(&threads[i], &small, together ? meet : once, NULL))
			abort();
		if (!together)
			pthread_join(threads[i], NULL);
	}
	if (!together)
		return;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void have_locks(int n)
{
	pthread_mutex_t *locks = calloc(n, sizeof(*locks));

	for (int i = 0; i < n; i++)
		pthread_mutex_lock(&locks[i]);
	for (int i = 0; i < n; i++)
		pthread_mutex_unlock(&locks[i]);
}

static void have_modules(const char *directory, int n)
{
	char path[4096];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", directory, i);
		if (!dlopen(path, RTLD_NOW))
			abort();
	}
}

int main(int argc, char **argv)
{
	int n = atoi(argv[argc - 1]), together = strstr(argv[1], "at once") != NULL;

	if (strstr(argv[1], "processes"))
		have_processes(n, together);
	else if (strstr(argv[1], "threads"))
		have_threads(n, together);
	else if (strstr(argv[1], "locks"))
		have_locks(n);
	else
		have_modules(argv[2], n);
	return 0;
}
"""
# A very small library that takes a lock when a program loads it.
MODULE = r"""
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void use(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}
"""
BUILD_ID = bytes([0x11] * 20)

# The things that grow in recorded programs, with a factor on n: a system has no room for n
# processes at once.
RECORDED = {
    "processes": 1.0,
    "processes at once": 0.25,
    "threads": 1.0,
    "threads at once": 1.0,
    "locks held at once": 1.0,
    "modules loaded at once": 0.5,
}


class Cost(NamedTuple):
    """The cost of a command.

    Attributes:
        seconds: Processor time, in user and in system mode.
        memory: Peak of its resident memory in MB.
    """

    seconds: float
    memory: float


def measure(command: list[str]) -> Cost:
    """Run a command."""
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


class Growth:
    """Measures commands for n and for 2n, and prints each command as a line of a table.

    Args:
        rounds: How often each command runs; the least cost counts.

    Attributes:
        worst: The largest growth so far.
    """

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.worst = 0.0

    def compare(
        self,
        subject: str,
        name: str,
        commands: tuple[list[str], list[str]],
        bare: tuple[list[str], list[str]] | None = None,
    ) -> None:
        """Compare a command for n with the command for 2n.

        Args:
            subject: The things that grow.
            name: The name of the command.
            commands: The command for n and for 2n; ROUND in it stands for the number of the round.
            bare: The programs that they run; the time of the programs alone does not count.
        """
        costs: list[list[Cost]] = [[], []]
        own: list[list[float]] = [[], []]
        for number in range(self._rounds):
            for i in range(2):
                words = [word.replace("ROUND", str(number)) for word in commands[i]]
                costs[i].append(measure(words))
                own[i].append(measure(bare[i]).seconds if bare else 0.0)
        time, time2 = (
            min(cost.seconds for cost in some) - min(program)
            for some, program in zip(costs, own, strict=True)
        )
        memory, memory2 = (min(cost.memory for cost in some) for some in costs)
        self.worst = max(self.worst, time2 / time, memory2 / memory)
        print(
            f"{subject:<24}{name:<8}{time:>7.2f}s{time2:>8.2f}s{time2 / time:>6.2f}x"
            f"{memory:>7.0f} MB{memory2:>8.0f} MB{memory2 / memory:>6.2f}x",
            flush=True,
        )


def read_by_all(growth: Growth, subject: str, traces: list[Path]) -> None:
    """Compare all commands that read a trace."""
    for name, words in COMMANDS.items():
        first, second = ([*PTT, words[0], str(trace), *words[1:]] for trace in traces)
        growth.compare(subject, name, (first, second))


def measure_made(growth: Growth, subject: str, n: int, directory: Path) -> None:
    """Compare the reading of made traces."""
    traces = [directory / f"{count}.ptt" for count in (n, 2 * n)]
    for count, trace in zip((n, 2 * n), traces, strict=True):
        # In a new process: the memory of a command counts from its fork on, so it includes at
        # least the memory of the parent.
        make = [
            sys.executable,
            str(HERE / "support" / "stories.py"),
            subject,
            str(count),
            str(trace),
        ]
        subprocess.run(make, check=True)
    read_by_all(growth, subject, traces)


def measure_recorded(growth: Growth, subject: str, n: int, directory: Path) -> None:
    """Compare recordings."""
    counts = (n, 2 * n)
    program = str(directory / "program")
    words = [program, subject]
    if "modules" in subject:
        make_modules(directory, 2 * n)
        words.append(str(directory))
    runs = [[*words, str(count)] for count in counts]
    # Each run has a directory of its own: after the deletion of many files, some file systems take
    # long to create as many files again.
    first, second = (
        [*PTT, "record", "-q", "-o", str(directory / f"{count}-ROUND.ptt"), "--", *run]
        for count, run in zip(counts, runs, strict=True)
    )
    # The dynamic linker's time grows with the square of the number of loaded modules.
    bare = (runs[0], runs[1]) if "modules" in subject else None
    growth.compare(subject, "record", (first, second), bare)
    if "modules" in subject:
        read_by_all(growth, subject, [directory / f"{count}-0.ptt" for count in counts])


def make_modules(directory: Path, count: int) -> None:
    """Make libraries that differ in their build-ids."""
    source = directory / "module.c"
    source.write_text(MODULE, encoding="utf-8")
    flags = ["-shared", "-fPIC", "-nostdlib", "-s", f"-Wl,--build-id=0x{BUILD_ID.hex()}"]
    # Each library has two segments: a process may have 65,530 mappings.
    flags += ["-Wl,-z,noseparate-code", "-Wl,-z,norelro"]
    module = compile_c(source, directory / "module.so", *flags).read_bytes()
    for number in range(count):
        own = module.replace(BUILD_ID, number.to_bytes(len(BUILD_ID), "big"))
        (directory / f"{number}.so").write_bytes(own)


def main() -> int:
    """Print a table; return 1 if a cost grows by more than the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("-k", default="", metavar="NAME", help="only subjects with NAME in them")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    options = parser.parse_args()
    growth = Growth(options.rounds)
    print(f"{'':<24}{'command':<8}{'time':>8}{'of 2n':>9}{'':>7}{'memory':>10}{'of 2n':>11}")
    for subject in MADE:
        if options.k in subject:
            with scratch_directory() as directory:
                measure_made(growth, subject, options.n, Path(directory))
    for subject, part in RECORDED.items():
        if options.k in subject:
            with scratch_directory() as name:
                directory = Path(name)
                source = directory / "program.c"
                source.write_text(PROGRAM, encoding="utf-8")
                compile_c(source, directory / "program")
                measure_recorded(growth, subject, int(options.n * part), directory)
    print(f"at most {growth.worst:.2f} x from n to 2n; linear is 2, up to {LIMIT} is allowed")
    return int(growth.worst > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
