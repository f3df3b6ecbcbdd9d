"""Traces of a small program, which tests put into stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support import Compiler, Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# Threads take locks in the order that the first argument says, or under a guard, and hold them for
# as many µs as the second argument. On a busy machine one could be at the end before the next one
# begins: the first lock is held until a thread waits for it, as glibc's 2 in a mutex says.
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
        forth: Take red and then blue.
        reverse: Takes blue and then red.
        guards: Each order once, each time under the guard.
        alone: Takes blue and then red before there are other threads, which do not.
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
    """Place for a store; nothing is there yet."""
    return str(tmp_path / "store")
