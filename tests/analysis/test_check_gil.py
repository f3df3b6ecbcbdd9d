"""`ptt check` and `ptt report` find a deadlock of the GIL and a lock; a long wait is none."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

LIBRARY = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <stdio.h>
    #include <unistd.h>
    static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
    static int reader;

    int poll_device(int (*callback)(int), int nap_s)
    {
        int result;

        pthread_mutex_lock(&device);
        sleep(nap_s);
        result = callback(1);
        pthread_mutex_unlock(&device);
        return result;
    }

    /* Returns once the reader sleeps; ends the process some time later. */
    void await_reader(void)
    {
        char path[64], state = 0;

        while (state != 'S') {
            int tid = __atomic_load_n(&reader, __ATOMIC_ACQUIRE);
            FILE *file;

            usleep(1000);
            if (!tid)
                continue;
            snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
            file = fopen(path, "r");
            if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
                return;
            fclose(file);
        }
        alarm(3);
    }

    int read_device(void)
    {
        __atomic_store_n(&reader, gettid(), __ATOMIC_RELEASE);
        pthread_mutex_lock(&device);
        pthread_mutex_unlock(&device);
        return 2;
    }
"""
SCRIPT = """
import ctypes, signal, sys, threading, time
library, keeps_gil, nap_s = sys.argv[1], *map(int, sys.argv[2:])
if nap_s:
    signal.alarm(1)
polls = ctypes.CDLL(library)
reads = (ctypes.PyDLL if keeps_gil else ctypes.CDLL)(library)
began = threading.Event()

def seen(n):
    began.set()
    polls.await_reader()
    return n

callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(seen)
poller = threading.Thread(target=lambda: polls.poll_device(callback, nap_s), name="poller")
poller.start()
time.sleep(0.1) if nap_s else began.wait()
reads.read_device()
poller.join()
"""


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        pytest.param(("1", "0"), ["deadlock"], id="kept"),
        pytest.param(("0", "0"), [], id="given-up"),
        pytest.param(("1", "60"), [], id="holder-sleeps"),
    ],
)
def test_a_lock_and_the_gil(
    arguments: tuple[str, ...], kinds: list[str], compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    library = compile_c(LIBRARY, "-shared", "-fPIC", name="libdevice.so")
    trace = tmp_path / "run.ptt"
    command = (sys.executable, "-c", SCRIPT, str(library), *arguments)
    ptt("record", "-q", "-o", trace, "--", *command, status=None)
    report = json.loads(ptt("check", "--format", "json", trace, status=None).stdout)
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert [finding["kind"] for finding in errors] == kinds
    for finding in errors:
        assert "holds GIL and waits for mutex device" in finding["message"]
        assert "(poller) holds mutex device and waits for GIL" in finding["message"]
    cycles = json.loads(ptt("report", "--format", "json", trace).stdout)["deadlocks"]
    assert len(cycles) == len(kinds)
    for cycle in cycles:
        waits = {wait["object_name"]: wait for wait in cycle}
        assert {*waits} == {"device", "GIL"}
        assert waits["GIL"]["owner_tid"] == waits["device"]["tid"]
        assert waits["device"]["owner_tid"] == waits["GIL"]["tid"]
    text = " ".join(ptt("report", trace).stdout.split())
    assert text.count("DEADLOCK") == len(kinds)
    assert ("waits for cond GIL, held by" in text) == bool(kinds)
