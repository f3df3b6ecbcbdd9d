"""PTT reads traces although address space is limited, as batch systems limit it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

KB = 4_000_000
# More rows than a step of each table has.
MANY_LOCKS = """
#include <pthread.h>

static pthread_mutex_t lock[20000], outer = PTHREAD_MUTEX_INITIALIZER;

static void *take_all(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&outer);
        pthread_mutex_lock(&lock[i]);
        pthread_mutex_unlock(&lock[i]);
        pthread_mutex_unlock(&outer);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;

    for (int i = 0; i < 20000; i++)
        pthread_mutex_init(&lock[i], NULL);
    pthread_create(&thread, NULL, take_all, NULL);
    take_all(NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt) -> Path:
    from tests.support import Compiler, Recorder

    directory = tmp_path_factory.mktemp("limited")
    compiler = Compiler(directory, ptt.native / "include")
    return Recorder(ptt, directory)(compiler(MANY_LOCKS, name="many_locks"))


@pytest.mark.parametrize("command", ["check", "report", "verify"])
def test_a_limited_address_space_changes_no_output(ptt: Ptt, trace: Path, command: str) -> None:
    unlimited = ptt(command, trace)
    limited = subprocess.run(
        ["bash", "-c", f'ulimit -v {KB}; exec "$@"', "sh", *ptt.command(command, trace)],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (limited.returncode, limited.stderr) == (0, "")
    assert limited.stdout == unlimited.stdout
