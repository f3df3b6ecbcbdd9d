"""The lock of CPython's interpreter, and what threads wait for while they hold it."""

from __future__ import annotations

import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import running
from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

LOOKS = 100
# A library that calls back with its lock held; the callback takes the interpreter's lock.
LIBRARY = """
    #include <pthread.h>
    pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
    int poll_device(int (*seen)(int))
    {
        pthread_mutex_lock(&device);
        return seen(1);
    }
    int read_device(void)
    {
        return pthread_mutex_lock(&device);
    }
"""
# The second thread takes the device's lock without the interpreter's lock; the first has both.
CROSSWISE = textwrap.dedent("""\
    import ctypes, sys, threading, time
    slow, quick = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
    begun = threading.Event()
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    def seen(number):
        begun.set()
        time.sleep(0.2)
        return number
    threading.Thread(target=slow.poll_device, args=(seen,), daemon=True).start()
    begun.wait()
    quick.read_device()
""")
BUSY = textwrap.dedent("""\
    import threading
    def work():
        while True:
            pass
    threading.Thread(target=work, daemon=True).start()
    work()
""")


@pytest.mark.parametrize("python", interpreters())
def test_a_deadlock_with_the_interpreters_lock_is_found(
    python: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    if not 8 <= minor_of(python) <= 13:
        pytest.skip("PTT does not read structures of this version")
    path = tmp_path / "prog.py"
    path.write_text(CROSSWISE, encoding="utf-8")
    with running(python, path, compile_c(LIBRARY, "-shared", "-fPIC")) as pid:
        # On a busy machine, the thread may not yet sleep again after a request for the lock.
        texts = (" ".join(ptt("hang", pid, status=None).stdout.split()) for _ in range(LOOKS))
        said = next((text for text in texts if "error: deadlock in process" in text), "")
    assert f"waits for mutex device, held by thread {int(pid)} " not in said
    assert "waits for mutex device, held by thread " in said
    assert f"waits for the GIL, held by thread {pid} " in said


def test_threads_that_share_the_interpreters_lock_are_no_deadlock(ptt: Ptt, tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_text(BUSY, encoding="utf-8")
    with running(sys.executable, path) as pid:
        until = time.monotonic() + 10
        while "waits for the GIL, held by thread" not in (said := ptt("hang", pid).stdout):
            assert time.monotonic() < until, said
    assert "nothing found" in said
