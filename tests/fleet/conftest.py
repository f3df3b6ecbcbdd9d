"""Traces of a small program for stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support import Compiler, Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# Threads take locks in the order that the first argument says, or under a guard. They hold the
# locks for as many µs as the second argument. On a busy machine, a thread could end before the
# next thread begins. So the first thread holds its first lock until another thread waits for it:
# glibc then writes 2 into the mutex.
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t red = PTHREAD_MUTEX_INITIALIZER, blue = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static const char *how;
static int hold_us;

static void pair(pthread_mutex_t *a, pthread_mutex_t *b)
{
	pthread_mutex_lock(a);
	pthread_mutex_lock(b);
	usleep(hold_us);
	pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
}

static void *work(void *unused)
{
	for (int i = 0; i < 5; i++) {
		if (strstr(how, "guarded"))
			pthread_mutex_lock(&guard);
		if (strstr(how, "reverse"))
			pair(&blue, &red);
		else
			pair(&red, &blue);
		if (strstr(how, "guarded"))
			pthread_mutex_unlock(&guard);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_mutex_t *first;
	pthread_t threads[3];

	how = argv[1];
	hold_us = atoi(argv[2]);
	if (strstr(how, "alone"))
		pair(&blue, &red);
	first = strstr(how, "guarded") ? &guard : strstr(how, "reverse") ? &blue : &red;
	pthread_mutex_lock(first);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (*(volatile int *)&first->__data.__lock != 2)
		usleep(100);
	pthread_mutex_unlock(first);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Traces:
    """Recorded runs of the program.

    Attributes:
        forth: Runs that take red and then blue.
        reverse: A run that takes blue and then red.
        guards: A run of each order, both under the guard.
        alone: A run that takes blue and then red while it has only one thread; later ones do not.
    """

    forth: list[Path]
    reverse: Path
    guards: list[Path]
    alone: Path

    @property
    def all(self) -> list[Path]:
        """All of them."""
        return [*self.forth, self.reverse, *self.guards, self.alone]


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt) -> Traces:
    """Recorded runs."""
    place = tmp_path_factory.mktemp("fleet")
    program = Compiler(place, ptt.native / "include")(PROGRAM, name="pairs")
    (place / "traces").mkdir()
    record = Recorder(ptt, place / "traces")
    return Traces(
        forth=[record(program, "forth", us) for us in ("100", "200", "20000", "25000")],
        reverse=record(program, "reverse", "100"),
        guards=[record(program, f"{order} guarded", "100") for order in ("forth", "reverse")],
        alone=record(program, "forth alone", "100"),
    )


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Path of a store that does not exist yet."""
    return str(tmp_path / "store")
