"""Detached threads: the trace marks the right threads as detached."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# Prints when a thread is really detached.
BENEATH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

static void *real(const char *name)
{
	if (write(STDERR_FILENO, "really detached\n", 16) != 16)
		_exit(9);
	return dlsym(RTLD_NEXT, name);
}

int pthread_detach(pthread_t thread)
{
	return ((int (*)(pthread_t))real("pthread_detach"))(thread);
}

int thrd_detach(thrd_t thread)
{
	return ((int (*)(thrd_t))real("thrd_detach"))(thread);
}
"""
ONE = r"""
#include <pthread.h>
#include <threads.h>

static void *end(void *arg)
{
	return arg;
}

static int end_c11(void *arg)
{
	return arg != NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	thrd_t c11;

	if (argc > 1 && argv[1][0] == 'c')
		return thrd_create(&c11, end_c11, NULL) != thrd_success || thrd_detach(c11) != thrd_success;
	return pthread_create(&thread, NULL, end, NULL) || pthread_detach(thread);
}
"""


@pytest.mark.parametrize("how", ["posix", "c11"])
def test_detaching_is_reported_before_the_id_may_be_reused(
    how: str, ptt: Ptt, compile_c: Compiler
) -> None:
    beneath = compile_c(BENEATH, "-shared", "-fPIC", name="beneath.so")
    preload = f"{ptt.native / 'lib' / 'libnptltrace.so'}:{beneath}"
    done = subprocess.run(
        [compile_c(ONE, name="one"), how],
        env=clean_environment(LD_PRELOAD=preload, PTHREAD_NPTL_TRACE="text"),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    lines = done.stderr.splitlines()
    (reported,) = (at for at, line in enumerate(lines) if " detached thread " in line)
    assert reported < lines.index("really detached")


@pytest.mark.parametrize("how", ["posix", "c11"])
def test_a_thread_may_be_created_detached(
    how: str, record: Recorder, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = record(program("detach_many"), how, "4000", options=("-l", "1"))
    maker: dict[str, int] = {}
    makers: list[bool] = []
    for line in ptt("view", "--format", "jsonl", trace).stdout.splitlines():
        event = json.loads(line)
        if event["event"] == "NEW_THREAD_CREATED":
            maker[event["object"]] = event["tid"]
        elif event["event"] == "THREAD_DETACH":
            makers.append(maker[event["object"]] == event["tid"])
    assert makers == [True] * 16000
