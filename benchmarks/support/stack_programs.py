"""Programs with threads that wait for one another's locks, to compare their stacks.

Each program runs until somebody ends it, or much longer than a benchmark needs it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.common import HERE, have
from support.workloads import PYTHON_QUEUE, free_port, mariadb

NODE = """
const fs = require('fs'), crypto = require('crypto'), zlib = require('zlib');
const data = crypto.randomBytes(2000);
function hash() { crypto.pbkdf2('secret', 'salt', 20, 32, 'sha256', hash); }
function pack() { zlib.deflate(data, pack); }
function look() { fs.stat('/', look); }
for (let i = 0; i < 16; i++) { hash(); pack(); look(); }
"""
JAVA = """
import java.util.concurrent.locks.ReentrantLock;
class Locks {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static long sum;
    static void add(long n) { for (int i = 0; i < 20000; i++) sum += n ^ i; }
    static void entered(long n) { synchronized (monitor) { add(n); } }
    static void locked(long n) { lock.lock(); try { add(n); } finally { lock.unlock(); } }
    public static void main(String[] none) {
        for (int i = 0; i < 6; i++) {
            final boolean first = i < 3;
            new Thread(() -> {
                for (long n = 0;; n++)
                    if (first) entered(n); else locked(n);
            }).start();
        }
    }
}
"""
PERL = """
use strict; use threads; use threads::shared;
my $account :shared = 0;
sub add { lock($account); $account += $_[0] for 1 .. 200; }
my @threads = map { threads->create(sub { add($_) while 1; }) } 1 .. 6;
$_->join for @threads;
"""
# Asks an HTTP server for the same page, in many threads: PORT PATH
CLIENT = """
import http.client, sys, threading
def ask():
    while True:
        try:
            c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)
            for _ in range(200):
                c.request('GET', sys.argv[2])
                c.getresponse().read()
        except OSError:
            pass
for _ in range(12):
    threading.Thread(target=ask).start()
"""
NGINX = """
daemon off;
master_process off;
error_log {work}/error.log;
pid {work}/pid;
thread_pool default threads=8;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {work};
    proxy_temp_path {work};
    fastcgi_temp_path {work};
    uwsgi_temp_path {work};
    scgi_temp_path {work};
    server {{
        listen 127.0.0.1:{port};
        root {work};
        sendfile off;
        aio threads;
        output_buffers 1 4k;
    }}
}}
"""
VARNISH = """
vcl 4.1;
backend none none;
sub vcl_recv { return (synth(200)); }
"""
# A page that gives a browser's threads work.
PAGE = """
<canvas id=c width=600 height=400></canvas>
<script>
const source = URL.createObjectURL(new Blob(['setInterval(() => postMessage(1), 1)']));
for (let i = 0; i < 6; i++) new Worker(source).onmessage = () => {
    const g = c.getContext('2d');
    g.fillRect(Math.random() * 600, Math.random() * 400, 9, 9);
};
</script>
"""
CROWDS = {
    "C++, -O2": ("-O2",),
    "C++, -O3 -flto": ("-O3", "-flto"),
    "C++, -fomit-frame-pointer": ("-O1", "-fomit-frame-pointer"),
    "C++, stripped": ("-O2", "-s"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to look at.

    Attributes:
        command: The command to trace.
        client: An untraced command that keeps the program busy; empty without a client.
        port: The port for the client.
        settles_s: Seconds until its threads are at work.
    """

    command: tuple[str, ...]
    client: tuple[str, ...] = ()
    port: int = 0
    settles_s: float = 3


def subjects() -> dict[str, Callable[[Path], Subject]]:
    """Return the programs that this machine has; each function prepares its program."""
    made: dict[str, tuple[tuple[str, ...], Callable[[Path], Subject]]] = {
        **{name: (("g++",), _crowd(flags)) for name, flags in CROWDS.items()},
        "chromium": (("chromium",), _chromium),
        "CPython": (("/usr/bin/python3",), _cpython),
        "firefox": (("firefox-esr",), _firefox),
        "Go with cgo": (("go", "gcc"), _go),
        "JVM": (("java", "javac"), _java),
        "mariadb": (("mariadbd", "mariadb-install-db", "mariadb", "sysbench"), _mariadb),
        "nginx": (("nginx",), _nginx),
        "node": (("node",), _node),
        "Perl": (("perl",), _perl),
        "ripgrep (Rust)": (("rg",), _ripgrep),
        "Rust": (("rustc",), _rust),
        "Rust, stripped": (("rustc",), _rust_stripped),
        "rocksdb": (("db_bench",), _rocksdb),
        "sysbench": (("sysbench",), _sysbench),
        "varnish": (("varnishd",), _varnish),
        "x264": (("x264", "ffmpeg"), _x264),
    }
    return {name: make for name, (needed, make) in made.items() if have(*needed)}


def _crowd(flags: tuple[str, ...]) -> Callable[[Path], Subject]:
    def make(work: Path) -> Subject:
        program = work / "crowd"
        build = ["g++", *flags, "-pthread", "-o", program, HERE / "made" / "crowd.cc"]
        subprocess.run(build, check=True)
        return Subject((str(program),))

    return make


def _firefox(work: Path) -> Subject:
    page, profile = work / "page.html", work / "profile"
    page.write_text(PAGE)
    profile.mkdir()
    return Subject(("env", f"HOME={work}", "firefox-esr", "--headless", "--no-remote", "--profile",
                    str(profile), page.as_uri()), settles_s=45)  # fmt: skip


def _chromium(work: Path) -> Subject:
    page = work / "page.html"
    page.write_text(PAGE)
    return Subject(("chromium", "--headless", "--no-sandbox", "--disable-gpu",
                    f"--user-data-dir={work / 'profile'}", "--remote-debugging-port=0",
                    page.as_uri()), settles_s=30)  # fmt: skip


def _go(work: Path) -> Subject:
    shutil.copy(HERE / "made" / "locks.go", work)
    env = {**os.environ, "GOCACHE": str(work / "cache"), "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "build", "-o", "locks", "locks.go"], cwd=work, env=env, check=True)
    return Subject((str(work / "locks"),))


def _rust(work: Path, *options: str) -> Subject:
    program = work / "locks"
    subprocess.run(["rustc", "-O", *options, "-o", program, HERE / "made" / "locks.rs"], check=True)
    return Subject((str(program),))


def _rust_stripped(work: Path) -> Subject:
    return _rust(work, "-C", "strip=symbols", "-C", "panic=abort")


def _rocksdb(work: Path) -> Subject:
    return Subject(
        ("db_bench", "--benchmarks=readwhilewriting", "--threads=12", "--num=5000000",
         "--duration=3600", "--value_size=100", "--write_buffer_size=1000000",
         "--cache_size=500000", "--cache_numshardbits=0", f"--db={work / 'db'}")
    )  # fmt: skip


def _varnish(work: Path) -> Subject:
    port, configuration = free_port(), work / "default.vcl"
    configuration.write_text(VARNISH)
    serve = ("varnishd", "-F", "-j", "none", "-n", str(work / "varnish"), "-f", str(configuration),
             "-a", f"127.0.0.1:{port}", "-s", "malloc,16m", "-p", "thread_pool_min=5",
             "-p", "thread_pool_max=16")  # fmt: skip
    return Subject(serve, _client(port, "/"), port)


def _nginx(work: Path) -> Subject:
    port, configuration = free_port(), work / "nginx.conf"
    configuration.write_text(NGINX.format(work=work, port=port))
    (work / "page").write_bytes(bytes(100_000))
    work.chmod(0o755)
    return Subject(("nginx", "-c", str(configuration)), _client(port, "/page"), port)


def _mariadb(work: Path) -> Subject:
    made = mariadb(work / "mariadb", pwd.getpwuid(os.getuid()).pw_name, 1000)
    serve = (*made.command, "--log-bin", "--query-cache-type=1", "--query-cache-size=4M")
    client = (*made.client[:-1], "--threads=16", made.client[-1])
    return Subject(serve, client, made.port)


def _node(work: Path) -> Subject:
    script = work / "pool.js"
    script.write_text(NODE)
    return Subject(("env", "UV_THREADPOOL_SIZE=8", "node", str(script)))


def _cpython(work: Path) -> Subject:
    script = work / "handed.py"
    script.write_text(PYTHON_QUEUE)
    return Subject(("/usr/bin/python3", str(script), "1000000000"))


def _java(work: Path) -> Subject:
    (work / "Locks.java").write_text(JAVA)
    subprocess.run(["javac", "Locks.java"], cwd=work, check=True)
    return Subject(("java", "-cp", str(work), "Locks"))


def _perl(work: Path) -> Subject:
    script = work / "locks.pl"
    script.write_text(PERL)
    return Subject(("perl", str(script)))


def _ripgrep(work: Path) -> Subject:
    return Subject(("rg", "-j8", "--no-messages", "-uu", "-c", "z.*(q|u)z$", "/usr", str(work)))


def _sysbench(work: Path) -> Subject:
    return Subject(
        ("sysbench", "mutex", "--threads=6", "--mutex-num=1", "--mutex-locks=100000000",
         "--mutex-loops=50", f"--rand-seed={len(str(work))}", "run")
    )  # fmt: skip


def _x264(work: Path) -> Subject:
    clip = work / "clip.y4m"
    source = "testsrc2=size=640x360:rate=30:duration=240"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", clip],
        check=True,
    )
    return Subject(("x264", "--quiet", "--preset", "slow", "--threads", "6", "-o",
                    str(work / "out.264"), str(clip)))  # fmt: skip


def _client(port: int, path: str) -> tuple[str, ...]:
    return (sys.executable, "-c", CLIENT, str(port), path)
