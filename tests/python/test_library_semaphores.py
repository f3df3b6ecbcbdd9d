"""Semaphores of C libraries have the same purpose below Python as in C programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

pytestmark = pytest.mark.alone

LIBRARY = r"""
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t work, done;
static pthread_t threads[2];

static void *serve(void *none)
{
	sem_wait(&work); /* waits */
	sem_post(&done);
	return none;
}

void pool_start(void)
{
	sem_init(&work, 0, 0);
	sem_init(&done, 0, 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, NULL);
	usleep(50000);
	for (int i = 0; i < 2; i++)
		sem_post(&work);
	for (int i = 0; i < 2; i++)
		sem_wait(&done);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
"""
PROGRAM = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).pool_start()
"""


@pytest.mark.parametrize("minor", [11, 13])
def test_an_idle_pool_of_a_library_is_idle(
    minor: int, compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    python = next((path for path in interpreters() if minor_of(path) == minor), None)
    if python is None:
        pytest.skip(f"no CPython 3.{minor} is installed")
    library = compile_c(LIBRARY, "-shared", "-fPIC", name="pool.so")
    trace = record(python, "-c", PROGRAM, library)
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    work = next(item for item in report["objects"] if item["name"] == "work")
    assert (work["kind"], work["waits"], work["idle_waits"]) == ("semaphore", 0, 2)
    assert all("first waited for" not in item["name"] for item in report["objects"])
