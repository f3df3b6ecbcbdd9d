"""Runtimes, allocators, other preloaded libraries and sanitizers go together with the tracer."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
def test_other_allocators(pattern: str, hostile: Hostile) -> None:
    env = {"LD_PRELOAD": _library(pattern)}
    hostile.same(hostile.program("destructors.cc"), env=env)
    hostile.same(hostile.program("forks.c"), "20", env=env)


def test_allocator_of_the_program(hostile: Hostile) -> None:
    assert hostile.same(hostile.program("allocator.c")).out == "allocated nothing\n"


def test_another_interposer(hostile: Hostile) -> None:
    library = hostile.program("interposer.c", "-shared", "-fPIC")
    module = hostile.program("module.c", "-shared", "-fPIC")
    # by way of env(1), for otherwise ptt itself would have it
    words = ("env", f"LD_PRELOAD={library}", hostile.program("modules.c"), module)
    assert "counted" in hostile.same(*words, "now", "2").out


def test_openmp(hostile: Hostile) -> None:
    hostile.same(hostile.program("parallel.c", "-fopenmp"))


def test_building_blocks(hostile: Hostile) -> None:
    if not Path("/usr/include/tbb").is_dir():
        pytest.skip("TBB: not installed")
    hostile.same(hostile.program("blocks.cc", "-ltbb"))


def test_rust(hostile: Hostile) -> None:
    assert hostile.same(hostile.program("standard.rs")).out == "6 2000 true true 104\n"


def test_python(hostile: Hostile, tmp_path: Path) -> None:
    script = tmp_path / "company.py"
    script.write_text(PYTHON)
    assert hostile.same(sys.executable, "-I", script).out == "124750 4950\n"


def test_node(hostile: Hostile, tmp_path: Path) -> None:
    _need("node")
    script = tmp_path / "company.js"
    script.write_text(NODE)
    assert hostile.same("node", script).out == "499500\n"


def test_java(hostile: Hostile, tmp_path: Path) -> None:
    _need("javac")
    script = tmp_path / "Company.java"
    script.write_text(JAVA)
    assert hostile.same("java", "-XX:TieredStopAtLevel=1", script).out == "200 499500\n"


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_sanitizers(sanitizer: str, hostile: Hostile) -> None:
    came = hostile.same(hostile.program("exits.c", f"-fsanitize={sanitizer}"), "atexit")
    assert "at exit: 200" in came.out
