"""The end of `ptt`: it finishes its work, also while threads of libraries run."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

# A thread that Python does not know takes the interpreter's lock again and again, as a thread does
# to free buffers. Nothing may end the thread meanwhile.
LIBRARY = r"""
#include <pthread.h>
#include <stdlib.h>

int PyGILState_Ensure(void);
void PyGILState_Release(int state);

static void ended(void *unused)
{
	(void)unused;
	abort();
}

static void *give_back(void *unused)
{
	pthread_cleanup_push(ended, NULL);
	for (;;)
		PyGILState_Release(PyGILState_Ensure());
	pthread_cleanup_pop(0);
	return unused;
}

void begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, give_back, NULL) == 0)
		pthread_detach(thread);
}
"""
PROGRAM = """
import atexit, ctypes, sys, threading, time

ending, shutdown = threading.Event(), threading._shutdown

def begin_shutdown():
    ending.set()
    shutdown()

def late():
    ending.wait()  # however long the command takes
    time.sleep(0.2)
    print("thread")

threading._shutdown = begin_shutdown

atexit.register(print, "registered")
threading.Thread(target=late).start()
ctypes.CDLL(sys.argv.pop(1)).begin()

from nptltrace.cli import entry
entry()
"""


@pytest.mark.parametrize(("command", "status"), [("--version", 0), ("nonsense", 2)])
def test_ptt_ends_while_threads_of_libraries_run(
    ptt: Ptt, compile_c: Compiler, command: str, status: int
) -> None:
    library = compile_c(LIBRARY, "-shared", "-fPIC", name="library.so")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, command],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    # The interpreter's order: it waits for Python's threads, and then calls registered functions.
    assert done.stdout.splitlines()[-2:] == ["thread", "registered"]


INTERRUPTED = """
import os, signal, sys

module = sys.argv.pop(1)

class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt)
signal.signal(signal.SIGINT, signal.default_int_handler)
from nptltrace.__main__ import entry
entry()
"""


@pytest.mark.parametrize(
    ("module", "status"),
    [
        ("nptltrace.cli", -signal.SIGINT),
        ("nptltrace.cli.imports", -signal.SIGINT),
        ("argparse", -signal.SIGINT),
        ("nptltrace.cli.commands.stat", 130),
        ("nptltrace.trace.traceset", 130),
    ],
)
def test_an_interrupt_during_imports_prints_nothing(ptt: Ptt, module: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, "stat", "nothing"],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, "")


def test_an_interrupt_while_an_extension_module_is_imported_prints_nothing(
    ptt: Ptt, record: Recorder
) -> None:
    """NumPy turns an interrupt of the import of `datetime` in C into an ImportError."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "datetime", "report", record("true")],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
