"""An interpreter of a version that PTT does not know: PTT says so, and judges none of its waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# A library with the exports of CPython 3.16. Its threads wait at semaphores, as those of 3.15 do.
INTERPRETER = r"""
#include <semaphore.h>
#include <string.h>

const unsigned long Py_Version = 0x031000f0;
struct { char cookie[8]; unsigned long words[127]; } _PyRuntime = {"xdebugpy", {0x031000f0}};

const char *Py_GetVersion(void) { return "3.16.0 (main)"; }
void _PyEval_EvalFrameDefault(void) { }
void *PyGILState_GetThisThreadState(void) { return 0; }
char PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512];
void make(sem_t *at) { sem_init(at, 0, 0); }
void _PyParkingLot_Park(sem_t *at) { sem_wait(at); }
void _PyParkingLot_Unpark(sem_t *at) { sem_post(at); }
"""
PROGRAM = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

void make(sem_t *at), _PyParkingLot_Park(sem_t *at), _PyParkingLot_Unpark(sem_t *at);
static sem_t parked;
static void *waits(void *none) { _PyParkingLot_Park(&parked); return none; }

int main(int count, char **arguments)
{
	pthread_t thread;

	make(&parked);
	pthread_create(&thread, NULL, waits, NULL);
	usleep(30000);
	if (count > 1)
		pause();
	_PyParkingLot_Unpark(&parked);
	return pthread_join(thread, NULL);
}
"""
SAID = "Python 3.16 are not known to this version of PTT"


@pytest.fixture
def server(compile_c: Compiler, tmp_path: Path) -> Path:
    library = compile_c(INTERPRETER, "-shared", "-fPIC", name="libpython3.16.so.1.0")
    return compile_c(PROGRAM, str(library), f"-Wl,-rpath,{library.parent}", name="server")


@pytest.mark.alone
def test_a_recording_says_that_the_class_of_waits_is_unknown(
    server: Path, ptt: Ptt, trace_dir: Path
) -> None:
    said = " ".join(ptt("record", "-o", trace_dir, server).stderr.split())
    assert SAID in said
    query = "SELECT class FROM waits WHERE kind = 'semaphore'"
    rows = json.loads(ptt("sql", "--format", "json", trace_dir, query).stdout)
    assert [row["class"] for row in rows] == ["unknown"]
    for command in ("report", "check", "stat"):
        assert SAID in " ".join(ptt(command, trace_dir).stdout.split())


def test_hang_says_that_owners_are_unknown(server: Path, ptt: Ptt) -> None:
    with running(server, "stay") as pid:
        answer = asleep(ptt, pid, 2)
    assert answer["findings"] == []
    assert any(SAID in item["why"] for item in answer["uncovered"])
