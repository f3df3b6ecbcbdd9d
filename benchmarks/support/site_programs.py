"""More programs with waiting threads, to find the places of the waits: servers and runtimes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from support.common import HERE, have
from support.stack_programs import CLIENT, Subject
from support.workloads import free_port

RUBY = """
account, lock, queue = 0, Mutex.new, Queue.new
6.times { Thread.new { loop { lock.synchronize { 2000.times { account += 1 } }; queue << 1 } } }
loop { queue.pop }
"""
WORKERS = """
import threading, sys
{setup}
def work():
    while True:
        {step}
for _ in range(4):
    threading.Thread(target=work).start()
"""
NUMPY = ("import numpy; a = numpy.ones((600, 600))", "a @ a")
PYARROW = (
    "import pyarrow, pyarrow.compute as pc; t = pyarrow.table({'k': [1, 2, 3] * 50000})",
    "t.group_by('k').aggregate([('k', 'sum')])",
)
DUCKDB = (
    "import duckdb; duckdb.sql('set threads to 4')",
    "duckdb.connect().sql('select sum(a.i * b.i) from range(3000) a(i), range(3000) b(i)').show()",
)
POLARS = (
    "import polars; t = polars.DataFrame({'k': list(range(1000)) * 200})",
    "t.group_by('k').agg(polars.col('k').sum().alias('s')).sort('k')",
)
SERVICE = """
import threading
lock, sums = threading.Lock(), [0]
def add():
    with lock:
        sums[0] += sum(range(20000))
def application(environ, start):
    add()
    start('200 OK', [('Content-Length', '2')])
    return [b'ok']
"""
HAPROXY = """
global
    nbthread 4
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
listen all
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain string ok
"""
UNBOUND = """
server:
    num-threads: 4
    do-daemonize: no
    chroot: ""
    username: ""
    directory: "{work}"
    pidfile: ""
    use-syslog: no
    interface: 127.0.0.1
    port: {port}
    local-zone: "example." static
    local-data: "www.example. A 127.0.0.1"
remote-control:
    control-enable: no
"""
ZONE = """
$TTL 60
@ IN SOA ns.example. root.example. 1 60 60 60 60
@ IN NS ns.example.
ns IN A 127.0.0.1
www IN A 127.0.0.1
"""
NAMED = """
options {{ directory "{work}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
           pid-file none; session-keyfile "{work}/key"; recursion no; }};
zone "example." {{ type primary; file "{work}/zone"; }};
"""
KNOT = """
server:
    rundir: {work}
    listen: 127.0.0.1@{port}
    udp-workers: 4
database:
    storage: {work}
zone:
  - domain: example.
    file: {work}/zone
"""
# Asks a name server for the same name, in many threads: PORT
ASKER = """
import socket, sys, threading
query = b'\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3www\\7example\\0\\0\\1\\0\\1'
def ask():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.2)
    while True:
        s.sendto(query, ('127.0.0.1', int(sys.argv[1])))
        try:
            s.recv(512)
        except OSError:
            pass
for _ in range(6):
    threading.Thread(target=ask).start()
"""
RSYSLOG = """
module(load="imudp")
input(type="imudp" port="{port}" address="127.0.0.1" ruleset="all")
ruleset(name="all" queue.type="LinkedList" queue.workerThreads="4" queue.size="5000"
        queue.dequeueBatchSize="16" queue.workerThreadMinimumMessages="10") {{
    action(type="omfile" file="{work}/messages" queue.type="LinkedList" queue.size="5000")
}}
"""
# Sends messages to a log server: PORT
LOGGER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    s.sendto(b'<13>busy: something happened', ('127.0.0.1', int(sys.argv[1])))
"""
LIBRARIES = {
    "GLib": ("-DGLIB", "-l:libglib-2.0.so.0"),
    "Qt": ("-DQT", "-l:libQt5Core.so.5"),
    "SDL": ("-DSDL", "-l:libSDL2-2.0.so.0"),
    "libuv": ("-DUV", "-l:libuv.so.1"),
    "OpenMP": ("-DOMP", "-l:libgomp.so.1"),
}


def more_subjects() -> dict[str, Callable[[Path], Subject]]:
    """Return the programs that this machine has; each function prepares its program."""
    made: dict[str, tuple[tuple[str, ...], Callable[[Path], Subject]]] = {
        "Ruby": (("ruby",), partial(_script, "ruby", RUBY)),
        "haproxy": (("haproxy",), _haproxy),
        "unbound": (("unbound",), _unbound),
        "bind9": (("named",), _named),
        "knot": (("knotd",), _knot),
        "rsyslog": (("rsyslogd",), _rsyslog),
        "stress-ng": (("stress-ng",), _fixed("stress-ng", "--mutex", "2", "--sem", "2")),
        "GStreamer": (("gst-launch-1.0",), _fixed(
            "gst-launch-1.0", "-q", "videotestsrc", "!", "queue", "!", "videoconvert", "!",
            "video/x-raw,format=I420", "!", "queue", "!", "fakesink")),
        "ImageMagick": (("convert",), _fixed(
            "env", "OMP_NUM_THREADS=4", "convert", "-size", "1500x1500", "plasma:", "-blur", "0x90",
            "-blur", "0x90", "-blur", "0x90", "null:")),
        "SQLite": (("gcc",), partial(_compiled, "gcc", "shelves.c", "-l:libsqlite3.so.0")),
        "Boost.Asio": (("g++",), partial(
            _compiled, "g++", "strands.cc", "-lboost_thread", "-lboost_system")),
        **{name: (("gcc",), partial(_compiled, "gcc", "busy_locks.c", *flags))
           for name, flags in LIBRARIES.items()},
    }  # fmt: skip
    available = {name: make for name, (needed, make) in made.items() if have(*needed)}
    python = {"numpy": NUMPY, "pyarrow": PYARROW, "duckdb": DUCKDB, "polars": POLARS}
    for module, (setup, step) in python.items():
        if importlib.util.find_spec(module):
            text = WORKERS.format(setup=setup, step=step)
            available[module] = partial(_script, sys.executable, text)
    if importlib.util.find_spec("gunicorn"):
        available["gunicorn"] = _gunicorn
    return available


def _fixed(*command: str) -> Callable[[Path], Subject]:
    return lambda _: Subject(command)


def _script(interpreter: str, text: str, work: Path) -> Subject:
    script = work / "busy"
    script.write_text(text)
    return Subject((interpreter, str(script)))


def _compiled(compiler: str, source: str, *rest: str | Path) -> Subject:
    *flags, work = rest
    program = Path(work) / "busy"
    build = [compiler, "-O1", "-g", "-pthread", HERE / "made" / source, "-o", program, *flags]
    subprocess.run(build, check=True)
    return Subject((str(program),))


def _gunicorn(work: Path) -> Subject:
    (work / "service.py").write_text(SERVICE)
    port = free_port()
    serve = (sys.executable, "-m", "gunicorn", "--threads=8", f"--chdir={work}",
             f"--bind=127.0.0.1:{port}", "service:application")  # fmt: skip
    return Subject(serve, (sys.executable, "-c", CLIENT, str(port), "/"), port)


def _configured(work: Path, text: str, port: int) -> str:
    configuration = work / "conf"
    configuration.write_text(text.format(work=work, port=port))
    return str(configuration)


def _haproxy(work: Path) -> Subject:
    port = free_port()
    serve = ("haproxy", "-db", "-f", _configured(work, HAPROXY, port))
    return Subject(serve, (sys.executable, "-c", CLIENT, str(port), "/"), port)


def _asked(port: int, *serve: str) -> Subject:
    return Subject(serve, (sys.executable, "-c", ASKER, str(port)), port)


def _unbound(work: Path) -> Subject:
    port = free_port()
    return _asked(port, "unbound", "-c", _configured(work, UNBOUND, port))


def _named(work: Path) -> Subject:
    port = free_port()
    (work / "zone").write_text(ZONE)
    return _asked(port, "named", "-n", "4", "-g", "-c", _configured(work, NAMED, port))


def _knot(work: Path) -> Subject:
    port = free_port()
    (work / "zone").write_text(ZONE)
    return _asked(port, "knotd", "-c", _configured(work, KNOT, port))


def _rsyslog(work: Path) -> Subject:
    port = free_port()
    serve = ("rsyslogd", "-n", "-f", _configured(work, RSYSLOG, port), "-i", str(work / "pid"))
    # the server listens for datagrams only
    wait = f'sleep 1; exec {sys.executable} -c "$0" {port}'
    return Subject((*serve,), ("sh", "-c", wait, LOGGER))
