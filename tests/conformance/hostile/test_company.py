"""Runtimes, allocators, other preloaded libraries and sanitizers work together with the tracer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import sanitized

if TYPE_CHECKING:
    from tests.conformance.hostile.programs import Hostile

_PLACES = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]

PYTHON = """\
import queue, threading
from concurrent.futures import ThreadPoolExecutor

q = queue.Queue(4)
total = []

def run():
    while (item := q.get()) is not None:
        total.append(item)

threads = [threading.Thread(target=run) for _ in range(4)]
for t in threads:
    t.start()
for i in range(500):
    q.put(i)
for _ in threads:
    q.put(None)
for t in threads:
    t.join()
with ThreadPoolExecutor(4) as pool:
    print(sum(total), sum(pool.map(abs, range(100))))
"""
NODE = """\
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (isMainThread) {
  const w = new Worker(__filename);
  w.on('message', m => console.log(m));
} else {
  parentPort.postMessage([...Array(1000).keys()].reduce((a, b) => a + b));
}
"""
JAVA = """\
import java.util.concurrent.*;
import java.util.stream.*;
public class Company {
  static int count;
  static synchronized void up() { count++; }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    for (int i = 0; i < 200; i++) pool.submit(Company::up);
    pool.shutdown();
    pool.awaitTermination(60, TimeUnit.SECONDS);
    System.out.println(count + " " + IntStream.range(0, 1000).parallel().sum());
  }
}
"""


QT = """\
import sys
from PyQt5.QtCore import QMutex, QMutexLocker, QRunnable, QThread, QThreadPool, QTimer
from PyQt5.QtGui import QColor, QGuiApplication, QImage, QPainter

application = QGuiApplication(sys.argv)
mutex, total, threads = QMutex(), [0], set()

class Paint(QRunnable):
    def run(self):
        image = QImage(64, 64, QImage.Format_RGB32)
        painter = QPainter(image)
        painter.fillRect(0, 0, 64, 64, QColor(1, 2, 3))
        painter.end()
        locker = QMutexLocker(mutex)
        total[0] += image.pixelColor(5, 5).blue()
        threads.add(int(QThread.currentThreadId()))

pool = QThreadPool.globalInstance()
pool.setMaxThreadCount(4)
for _ in range(200):
    pool.start(Paint())
pool.waitForDone()
QTimer.singleShot(0, application.quit)
print(application.exec_(), total[0], len(threads) > 0)
"""


def _library(pattern: str) -> str:
    for place in _PLACES:
        for path in sorted(place.glob(pattern)):
            return str(path)
    pytest.skip(f"{pattern}: not installed")


def _need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program}: not installed")


@pytest.mark.parametrize(
    "pattern", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2*"]
)
def test_other_allocators_work(pattern: str, hostile: Hostile) -> None:
    if sanitized.BUILD:
        pytest.skip("a sanitizer is an allocator itself")
    env = {"LD_PRELOAD": _library(pattern)}
    hostile.same(hostile.program("destructors.cc"), env=env)
    hostile.same(hostile.program("forks.c"), "20", env=env)


def test_the_programs_own_allocator_works(hostile: Hostile) -> None:
    if sanitized.BUILD:
        pytest.skip("a sanitizer allocates, and is an allocator itself")
    assert hostile.same(hostile.program("allocator.c")).out == "allocated nothing\n"


def test_another_interposer_works(hostile: Hostile) -> None:
    library = hostile.program("interposer.c", "-shared", "-fPIC")
    module = hostile.program("module.c", "-shared", "-fPIC")
    # through env(1), because otherwise ptt itself would load the interposer
    words = ("env", f"LD_PRELOAD={library}", hostile.program("modules.c"), module)
    assert "counted" in hostile.same(*words, "now", "2").out


def test_openmp_works(hostile: Hostile) -> None:
    hostile.same(hostile.program("parallel.c", "-fopenmp"))


def test_threading_building_blocks_work(hostile: Hostile) -> None:
    if not Path("/usr/include/tbb").is_dir():
        pytest.skip("TBB: not installed")
    hostile.same(hostile.program("blocks.cc", "-ltbb"))


def test_rust_works(hostile: Hostile) -> None:
    _need("rustc")
    # A wrapper of rustup may exist without a compiler.
    if subprocess.run(["rustc", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("rustc: does not run")
    assert hostile.same(hostile.program("standard.rs")).out == "6 2000 true true 104\n"


def test_python_works(hostile: Hostile, tmp_path: Path) -> None:
    script = tmp_path / "company.py"
    script.write_text(PYTHON)
    assert hostile.same(sys.executable, "-I", script).out == "124750 4950\n"


def test_qt_works(hostile: Hostile, tmp_path: Path) -> None:
    script = tmp_path / "company.py"
    script.write_text(QT)
    python = "/usr/bin/python3"
    command = [python, "-I", "-c", "import PyQt5.QtGui"]
    if not Path(python).exists() or subprocess.run(command, check=False).returncode:
        pytest.skip("PyQt5: not installed")
    ran = hostile.same(python, "-I", script, env={"QT_QPA_PLATFORM": "offscreen"})
    assert ran.out == "0 600 True\n"


def test_a_program_with_other_shared_memory_runs_untraced(hostile: Hostile) -> None:
    inside = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh")
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no other mounts are allowed here")
    command = (*inside, hostile.program("forks.c"), "20")
    was, now = hostile.plain(*command), hostile.traced(*command)
    assert (now.out, now.status) == (was.out, was.status)
    # The tracer cannot enter the program and the program it executes. Both say so, and the recorder
    # counts them.
    counted, said = sorted(set(now.err.splitlines()))
    assert counted == "ptt: 2 processes ran untraced: they could not join the recording"
    assert said.startswith("ptt: ring: cannot join the recording: ")


def test_node_works(hostile: Hostile, tmp_path: Path) -> None:
    _need("node")
    script = tmp_path / "company.js"
    script.write_text(NODE)
    assert hostile.same("node", script).out == "499500\n"


def test_java_works(hostile: Hostile, tmp_path: Path) -> None:
    _need("javac")
    script = tmp_path / "Company.java"
    script.write_text(JAVA)
    assert hostile.same("java", "-XX:TieredStopAtLevel=1", script).out == "200 499500\n"


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_sanitizers_work(sanitizer: str, hostile: Hostile) -> None:
    if sanitized.BUILD:
        pytest.skip("one sanitizer is enough")
    came = hostile.same(hostile.program("exits.c", f"-fsanitize={sanitizer}"), "atexit")
    assert "at exit: 200" in came.out
