"""Grace periods of liburcu: the reader that a thread waits for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from tests.support import Ptt

INCLUDE = Path("/usr/include")
# A reader inside a section wants the lock of a thread that waits for the end of all sections.
# Another reader is outside every section.
PROGRAM = """
#include <urcu.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static void *want(void *unused)
{
    rcu_register_thread();
    rcu_read_lock();
    pthread_barrier_wait(&all);
    pthread_mutex_lock(&registry);
    return unused;
}
static void *rest(void *unused)
{
    rcu_register_thread();
    pthread_barrier_wait(&all);
    pause();
    return unused;
}
int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&all, 0, 3);
    pthread_mutex_lock(&registry);
    pthread_create(&threads[0], 0, want, 0);
    pthread_create(&threads[1], 0, rest, 0);
    pthread_barrier_wait(&all);
    rcu_register_thread();
    synchronize_rcu();
    return 0;
}
"""


@pytest.mark.skipif(not [*INCLUDE.glob("**/urcu.h")], reason="liburcu is not installed")
def test_a_grace_period_names_the_reader_it_waits_for(ptt: Ptt, tmp_path: Path) -> None:
    program = tmp_path / "prog"
    flags = ["-g", "-O1", "-pthread", "-D_LGPL_SOURCE", "-x", "c", "-", "-x", "none", "-lurcu"]
    command = ["gcc", *flags, "-o", str(program)]
    subprocess.run(command, input=PROGRAM, encoding="utf-8", check=True)
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 3)["findings"]
    assert (finding["kind"], finding["object_names"][0]) == ("deadlock", "urcu_memb")
    assert "waits for grace period urcu_memb, held up by thread " in finding["message"]
    assert f"held by thread {pid} " in finding["message"]
