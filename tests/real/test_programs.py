"""Compressors, encoders and language runtimes do the same traced as untraced, losslessly."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from tests.real.real import need

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.real import Done, Real


def test_pigz_does_the_same_traced(real: Real, text: Path) -> None:
    need("pigz")
    real.same("pigz", "-p4", "-kc", text)
    found = real.check(at_least=100)
    assert len(found["processes"][0]["threads"]) >= 5  # four compress, one writes, one reads
    assert found["event_types"]["MUTEX_TAKEN"] > 0
    assert found["event_types"]["COND_BROADCAST"] > 0


def test_zstd_does_the_same_traced(real: Real, text: Path) -> None:
    need("zstd")
    done = real.same("zstd", "-q", "-T2", "-9", "-c", text)
    assert done.stdout.startswith(b"\x28\xb5\x2f\xfd")
    found = real.check(at_least=50)
    assert found["event_types"]["NEW_THREAD_CREATED"] >= 2


def test_xz_does_the_same_traced(real: Real, text: Path) -> None:
    need("xz")
    done = real.same("xz", "-T2", "-1", "--block-size=1MiB", "-kc", text)
    assert done.stdout.startswith(b"\xfd7zXZ")
    found = real.check(at_least=50)
    assert found["event_types"]["NEW_THREAD_CREATED"] >= 2


def test_x264_does_the_same_traced(real: Real, clip: Path) -> None:
    need("x264")
    # Rate control makes one untraced run in fifty differ. The last line of output is the speed.
    command = ["x264", "--quiet", "--no-progress", "--preset", "veryfast", "--qp", "24"]
    command += ["--threads", "4"]
    plain, traced = (
        real.run(*command, "-o", "out.264", clip, traced=traced) for traced in (False, True)
    )
    speed = re.compile(r"[\d.]+ fps")
    assert (traced.status, traced.stdout, traced.files) == (0, plain.stdout, plain.files)
    assert speed.sub("", traced.stderr) == speed.sub("", plain.stderr)
    assert traced.files["out.264"]
    found = real.check(at_least=1000)
    assert found["event_types"]["COND_WAIT_IN"] > 0 or found["event_types"]["MUTEX_TAKEN"] > 0


def test_ffmpeg_does_the_same_traced(real: Real, clip: Path) -> None:
    need("ffmpeg")
    encode = ["-c:v", "libx264", "-preset", "veryfast", "-qp", "24", "-threads", "4"]
    done = real.same("ffmpeg", "-nostdin", "-v", "error", "-y", "-i", clip, *encode,
                     "-fflags", "+bitexact", "-flags:v", "+bitexact", "out.mp4")  # fmt: skip
    assert done.status == 0
    assert done.files["out.mp4"]
    real.check(at_least=1000)


def test_7z_does_the_same_traced(real: Real) -> None:
    need("7z")
    # The figures differ from run to run, but the words must not.
    command = ("7z", "b", "1", "-mmt2", "-md10")
    plain, traced = (real.run(*command, traced=traced) for traced in (False, True))

    def words(done: Done) -> list[bytes]:
        return re.findall(rb"[A-Za-z]+:?", done.stdout)

    assert (traced.status, traced.stderr, traced.files) == (plain.status, plain.stderr, plain.files)
    assert traced.status == 0
    assert words(traced) == words(plain)
    found = real.check(at_least=20)
    assert found["event_types"]["NEW_THREAD_CREATED"] >= 2


PYTHON = """
import queue, sys, threading
lock, total = threading.Lock(), 0
def work():
    global total
    for i in range(50_000):
        with lock:
            total += i & 3
threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
q = queue.Queue(10)
def produce():
    for i in range(2000): q.put(i)
    q.put(None)
threading.Thread(target=produce).start()
got = sum(iter(q.get, None))
event = threading.Event()
timer = threading.Timer(0.01, event.set); timer.start()
print(total, got, event.wait(200))
print("to stderr", file=sys.stderr)
sys.exit(7)
"""


def test_python_does_the_same_traced(real: Real) -> None:
    done = real.same(sys.executable, "-c", PYTHON)
    assert done.status == 7
    assert done.stdout == b"300000 1999000 True\n"
    found = real.check(at_least=1000)
    assert found["event_types"]["NEW_THREAD_CREATED"] == 6


NODE = """
const { Worker, isMainThread, workerData, parentPort } = require('node:worker_threads');
const fs = require('node:fs/promises'), zlib = require('node:zlib');
if (!isMainThread) {
  let sum = 0;
  for (let i = 0; i < 2e5; i++) sum += (i * workerData) % 7;
  parentPort.postMessage(sum);
} else {
  const worker = n => new Promise((done, fail) => {
    const w = new Worker(__filename, { workerData: n });
    w.on('message', done); w.on('error', fail);
  });
  const deflate = n => new Promise(done =>
    zlib.deflate(Buffer.alloc(100000, n), (e, b) => done(b.length)));
  (async () => {
    const text = await fs.readFile(__filename, 'utf8');
    console.log(text.length);
    console.log(await Promise.all([1, 2, 3].map(worker)));
    console.log(await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(deflate)));
    process.exitCode = 5;
  })();
}
"""


def test_node_does_the_same_traced(real: Real, tmp_path: Path) -> None:
    need("node")
    script = tmp_path / "work.js"
    script.write_text(NODE)
    done = real.same("node", script)
    assert done.status == 5
    assert done.stderr == ""
    found = real.check(at_least=1000)
    assert found["event_types"]["NEW_THREAD_CREATED"] >= 7  # pool of 4, and 3 workers at least


JAVA = """
import java.util.concurrent.*;
import java.util.stream.*;

public class Work {
    static final Object monitor = new Object();
    static long total;

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        java.util.List<Future<Long>> results = new java.util.ArrayList<>();
        for (int n = 0; n < 32; n++) {
            final long seed = n;
            results.add(pool.submit(() -> {
                long sum = 0;
                for (int i = 0; i < 20000; i++) {
                    sum += (i * seed) % 7;
                    if (i % 100 == 0)
                        synchronized (monitor) { total += seed; }
                }
                return sum;
            }));
        }
        long sum = 0;
        for (Future<Long> result : results)
            sum += result.get();
        pool.shutdown();
        System.out.println(pool.awaitTermination(10, TimeUnit.SECONDS) + " " + sum + " " + total);
        System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> i % 13).sum());
        System.gc();
        System.exit(9);
    }
}
"""


def test_java_does_the_same_traced(real: Real, tmp_path: Path) -> None:
    need("java", "javac")
    (tmp_path / "Work.java").write_text(JAVA)
    real.client("javac", "-d", tmp_path, tmp_path / "Work.java")
    done = real.same("java", "-Xmx128m", "-cp", tmp_path, "Work")
    assert done.status == 9
    found = real.check(at_least=1000)
    assert len(found["processes"][0]["threads"]) > 8
