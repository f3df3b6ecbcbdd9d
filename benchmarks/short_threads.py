#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures a program whose threads come and go: untraced, recorded, and beside busy processes.

The program says for how long its threads took. The start and the end of the recorder do not count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.common import (
    PTT,
    ROOT,
    busy,
    compile_c,
    environment,
    interleave,
    keep,
    scratch_directory,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# The threads in all, and how many of them at one time.
THREADS, AT_ONCE = 10_000, 16
QUIET, BUSY = 1.5, 3.0

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *once(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int count = atoi(argv[1]), at_once = atoi(argv[2]);
	pthread_t *threads = calloc(at_once, sizeof(*threads));
	double began = now();

	for (int i = 0; i < count + at_once; i++) {
		if (i >= at_once)
			pthread_join(threads[i % at_once], NULL);
		if (i < count)
			pthread_create(&threads[i % at_once], NULL, once, NULL);
	}
	printf("%.6f\n", now() - began);
	return 0;
}
"""


def timed(command: list[str], env: dict[str, str]) -> Callable[[], float]:
    """Return a function that runs a command and returns the seconds that it prints."""

    def run() -> float:
        return float(subprocess.run(command, env=env, check=True, capture_output=True).stdout)

    return run


def main() -> int:
    """Measure in interleaved rounds; fail if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=11)
    parser.add_argument("--busy", type=int, default=8, help="busy processes (default: 8)")
    parser.add_argument("--tree", type=Path, help="another checkout, built, to compare with")
    args = parser.parse_args()
    over = False
    with scratch_directory() as directory:
        work = Path(directory)
        (work / "program.c").write_text(PROGRAM)
        program = str(compile_c(work / "program.c", work / "program"))
        command = [program, str(THREADS), str(AT_ONCE)]
        cases = {"untraced": timed(command, dict(os.environ))}
        for name, tree in {"recorded": ROOT, "recorded by the other": args.tree}.items():
            if tree is not None:
                record = [*PTT, "record", "-q", "--force", "-o", str(work / "trace"), "--"]
                cases[name] = timed([*record, *command], environment(tree.resolve()))
        for count in dict.fromkeys((0, args.busy)):
            with busy(count):
                figures = interleave(cases, args.rounds)
            bare, bound = figures["untraced"].median, BUSY if count else QUIET
            for name, f in figures.items():
                print(f"{count} busy: {name:<24}{f} s  {f.median / bare:6.2f} ×")
            over |= figures["recorded"].median > bound * bare
            keep(f"short-threads-{count}", figures)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
