"""The programs of `guard.py`: hangs with their expected findings, servers, idle and slow programs.

The sources are in `guarded/`. Comments in the sources of hangs say which finding is right, and
mark the lines where threads hang; the head of `hangs.c` explains the comments.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.common import HERE, have

__all__ = [
    "AFTER",
    "INNOCENT",
    "OTHERS",
    "SERVERS",
    "WAYS",
    "Hang",
    "build",
    "command_of",
    "hangs",
    "way_to",
]

SOURCES = HERE / "guarded"
C = ("gcc", "-g", "-O1", "-pthread")
CPP = ("g++", "-g", "-O1", "-std=c++20", "-pthread")
# The sources: their language, the compiler, and how the result is run.
_HANGS = {
    "hangs.c": ("C", (*C, "{source}", "-o", "{place}/hangs-c"), "{place}/hangs-c"),
    "hangs.cc": ("C++", (*CPP, "{source}", "-o", "{place}/hangs-cc"), "{place}/hangs-cc"),
    "hangs.py": ("Python", (), f"{sys.executable} {SOURCES}/hangs.py"),
    "hangs.rs": (
        "Rust", ("rustc", "-g", "--edition", "2021", "{source}", "-o", "{place}/hangs-rs"),
        "{place}/hangs-rs",
    ),
    "Hangs.java": ("Java", ("javac", "-g", "-d", "{place}", "{source}"), "java -cp {place} Hangs"),
}  # fmt: skip
OTHERS = {
    "innocent.c": (*C, "{source}", "-o", "{place}/innocent"),
    "Innocent.java": ("javac", "-d", "{place}", "{source}"),
}
_CASE = re.compile(r"^(?: \*|//|) ?case (\w+): ([\w|-]+)$", re.MULTILINE)
_MARK = re.compile(r"hangs: (\w+)(?: (\w+))?")
# The kind of a hang without a finding.
AFTER = "after"
# How the programs are run. The test of pytest runs a program of Python in its own process.
WAYS = ("plain", "ctest", "pytest", "sh")

# Servers without work. A server that is not installed is left out.
SERVERS = {
    "redis": "redis-server --port {port} --save '' --io-threads 2",
    "memcached": "memcached -t 16 -u nobody -l 127.0.0.1 -p {port}",
    "nginx": "nginx -p {place} -c {place}/nginx.conf",
    "nginx with workers": "nginx -p {place} -c {place}/nginx.conf -g 'worker_processes 2;'",
    "postgres": "setpriv --reuid nobody --clear-groups postgres -D {place}/pg -k {place} "
    "-p {port}",
    "mariadb": "mariadbd --no-defaults --user=root --datadir={place}/data --socket={place}/s "
    "--port={port} --bind-address=127.0.0.1 --skip-grant-tables",
    "http.server": "{python} -m http.server --bind 127.0.0.1 {port}",
    "gunicorn": "gunicorn -b 127.0.0.1:{port} -w 2 --threads 4 wsgiref.simple_server:demo_app",
    "waitress": "waitress-serve --listen 127.0.0.1:{port} wsgiref.simple_server:demo_app",
    "uvicorn": "uvicorn --port {port} --interface wsgi wsgiref.simple_server:demo_app",
    "node": "node {attached}/server.js {port}",
    "java": "java {attached}/Server.java {port}",
    "socket server of Python": "{python} {attached}/server.py {port}",
    "sshd": "{sshd} -D -f /dev/null -h {place}/key -p {port} -o ListenAddress=127.0.0.1",
    "dbus-daemon": "dbus-daemon --session --nofork --address=unix:path={place}/bus",
    "cron": "cron -f",
    "ssh-agent": "ssh-agent -D -a {place}/agent",
    "rsync": "rsync --daemon --no-detach --address=127.0.0.1 --port={port} --config=/dev/null",
    "haproxy": "haproxy -db -f {place}/haproxy.cfg",
    "lighttpd": "lighttpd -D -f {place}/lighttpd.conf",
    "apache": "apache2 -X -d {place} -f {place}/apache.conf",
    "mosquitto": "mosquitto -p {port}",
    "beanstalkd": "beanstalkd -l 127.0.0.1 -p {port}",
    "dnsmasq": "dnsmasq -k -C /dev/null -R -h -p {port} -a 127.0.0.1 -u root -x {place}/pid",
    "openssl": "openssl s_server -accept {port} -nocert -tls1_2 -cipher aNULL",
    "gpg-agent": "gpg-agent --homedir {place} --server",
    "perl": "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => {port}, "
    "Listen => 5); $s->accept while 1'",
    "ruby": "ruby -rsocket -e 's = TCPServer.new({port}); loop {{ Thread.new(s.accept) {{ }} }}'",
}  # fmt: skip
_C = (
    "sleeps selects polls-timer pool pool-of-semaphore computes held-at-work held-asleep readers "
    "barrier joins-worker disk child timed-wait timed-semaphore pauses posted-by-timer "
    "reads-signals watches-files slow-reader slow-writer file-lock shared-memory backs-off terminal"
)
_PYTHON = (
    "sleeps thread_pool process_pool pool_of_multiprocessing workers timer event_loop "
    "server_of_threads collects computes child reads_child held_asleep"
)
# Programs that are idle or slow. Their standard input is a terminal where nobody types.
INNOCENT = {
    **{f"C: {name}": f"{{built}}/innocent {name}" for name in _C.split()},
    **{
        f"Python: {name}": f"{{python}} {SOURCES}/innocent.py {name}" for name in _PYTHON.split()
    },
    **{
        f"Java: {name}": f"java -Xmx256m -cp {{built}} Innocent {name}"
        for name in ("pool", "schedule", "collects", "held-asleep", "takes")
    },
    "cat": "cat",
    "sh": "sh -i",
    "python": "{python} -q",
    "node": "node -i",
    "sqlite3": "sqlite3",
    "gdb": "gdb -nx -q",
    "bc": "bc -q",
    "jshell": "jshell -s",
    "vim": "vim -u NONE",
    "tail": "tail -f /dev/null",
    "sleep in a pipe": "sh -c 'sleep 1000000 | cat'",
    "loop of the shell": "sh -c 'while :; do sleep 2; done'",
    "jobs of the shell": "sh -c 'sleep 1000000 & sleep 1000000 & wait'",
    "xargs": "sh -c 'echo 1000000 1000000 | xargs -n 1 -P 2 sleep'",
    "make": "make -f {place}/Makefile -j 2",
    "ctest": "ctest --test-dir {place}/ctest -j 2",
    "pytest": "{python} -m pytest -q -p no:cacheprovider {place}/test_slow.py",
    "pytest-xdist": "{python} -m pytest -q -p no:cacheprovider -n 2 {place}/test_slow.py",
    "flock": "flock {place}/Makefile sleep 1000000",
    "SIGSTOP": "sh -c 'kill -STOP $$'",
    "stopped by gdb": "gdb -nx -q -ex 'break pthread_create' -ex run --args "
    "{built}/innocent held-asleep",
    "watch": "watch -n 3 true",
    "timeout": "timeout 1000000 sleep 1000000",
}  # fmt: skip
_FILES = {
    "nginx.conf": """
        daemon off; pid {place}/pid; error_log {place}/error.log; thread_pool default threads=8;
        events {{ worker_connections 64; }}
        http {{
            access_log off; server {{ listen 127.0.0.1:{port}; root {place}; aio threads; }}
            client_body_temp_path {place}/1; proxy_temp_path {place}/2; fastcgi_temp_path {place}/3;
            uwsgi_temp_path {place}/4; scgi_temp_path {place}/5;
        }}
    """,
    "haproxy.cfg": """
        defaults
            timeout connect 5s
            timeout client 5s
            timeout server 5s
        frontend all
            mode http
            bind 127.0.0.1:{port}
    """,
    "lighttpd.conf": 'server.document-root="{place}"\nserver.port={port}\nserver.bind="127.0.0.1"',
    "apache.conf": """
        LoadModule mpm_event_module {modules}/mod_mpm_event.so
        LoadModule authz_core_module {modules}/mod_authz_core.so
        Listen 127.0.0.1:{port}
        ServerName localhost
        PidFile {place}/pid
        ErrorLog {place}/error.log
        User nobody
    """,
    "Makefile": "all: a b\na b:\n\t@sleep 1000000\n",
    "test_slow.py": "import time\ndef test_a(): time.sleep(1e6)\ndef test_b(): time.sleep(1e6)\n",
    "ctest/CTestTestfile.cmake": "add_test(a sleep 1000000)\nadd_test(b sleep 1000000)\n",
}
# Commands that prepare a server.
_PREPARED = {
    "postgres": "sh -c 'mkdir {place}/pg && chown nobody {place} {place}/pg && setpriv --reuid "
    "nobody --clear-groups initdb -D {place}/pg'",
    "mariadb": "mariadb-install-db --no-defaults --user=root --datadir={place}/data",
    "sshd": "sh -c 'mkdir -p /run/sshd && ssh-keygen -q -N \"\" -f {place}/key'",
}


@dataclass(frozen=True, slots=True)
class Hang:
    """A program that hangs.

    Attributes:
        source: The name of the source file.
        language: The language of the source.
        name: The name of the case in the source.
        kinds: The kinds of right findings.
        lines: The lines where threads hang, as `hangs.c:12`.
        objects: The names of the objects that the threads wait for.
        command: The command that runs the program.
    """

    source: str
    language: str
    name: str
    kinds: tuple[str, ...]
    lines: tuple[str, ...]
    objects: frozenset[str]
    command: tuple[str, ...]

    def __str__(self) -> str:
        """Return the text `C++: latch`."""
        return f"{self.language}: {self.name}"


def hangs(place: Path) -> Iterator[Hang]:
    """Yield the programs that hang, of the languages that are installed.

    Args:
        place: The folder of the compiled programs.
    """
    for name, (language, compiler, run) in _HANGS.items():
        if compiler and not have(compiler[0]):
            print(f"{language}: left out, {compiler[0]} is not installed")
            continue
        text = (SOURCES / name).read_text(encoding="utf-8")
        marks = [
            (number, *mark)
            for number, line in enumerate(text.splitlines(), 1)
            for mark in _MARK.findall(line)
        ]
        command = shlex.split(run.format(place=place))
        for case, kinds in _CASE.findall(text):
            own = [(number, what) for number, marked, what in marks if marked == case]
            yield Hang(
                name, language, case, tuple(kinds.split("|")),
                tuple(f"{name}:{number}" for number, _ in own),
                frozenset(what for _, what in own if what), (*command, case),
            )  # fmt: skip


def build(place: Path, sources: Collection[str]) -> None:
    """Compile sources in languages that are installed.

    Args:
        place: The folder for the programs.
        sources: The names of the source files.
    """
    compilers = {name: compiler for name, (_, compiler, _) in _HANGS.items()} | OTHERS
    for name in sources:
        compiler = compilers[name]
        if compiler and have(compiler[0]):
            words = [word.format(place=place, source=SOURCES / name) for word in compiler]
            subprocess.run(words, check=True)


def way_to(way: str, hang: Hang, place: Path) -> list[str]:
    """Return the command that runs a program in one of `WAYS`.

    Args:
        way: The way.
        hang: The program.
        place: An empty folder for files of the way.
    """
    line = shlex.join(hang.command)
    if way == "ctest":
        words = " ".join(f'"{word}"' for word in hang.command)
        (place / "CTestTestfile.cmake").write_text(f"add_test(hangs {words})\n", encoding="utf-8")
        return ["ctest", "--test-dir", str(place)]
    if way == "pytest":
        source = f"import subprocess\ndef test_it():\n    subprocess.run({[*hang.command]})\n"
        if hang.language == "Python":
            source = f"from hangs import CASES\ndef test_it():\n    CASES[{hang.name!r}]()\n"
        (place / "test_it.py").write_text(source, encoding="utf-8")
        quiet = ("-q", "-p", "no:cacheprovider", "-o", f"pythonpath={SOURCES}")
        return [sys.executable, "-m", "pytest", *quiet, str(place / "test_it.py")]
    if way == "sh":
        return ["sh", "-c", f"echo begins; {line} | cat; echo ends"]
    return [*hang.command]


def command_of(name: str, built: Path, place: Path, port: int) -> list[str]:
    """Return the command of a server or of an innocent program, and prepare the command.

    Args:
        name: The name in `SERVERS` or `INNOCENT`.
        built: The folder of the compiled programs.
        place: An empty folder for the files of the command.
        port: A free port.

    Returns:
        An empty list if the program is not installed.
    """
    words: Mapping[str, object] = {
        "built": built, "place": place, "port": port, "python": sys.executable,
        "attached": HERE / "attached", "sshd": _whole("sshd"),
        "modules": Path(_whole("apache2")).parents[1] / "lib/apache2/modules",
    }  # fmt: skip
    command = shlex.split(({**SERVERS, **INNOCENT}[name]).format(**words))
    if not have(command[0]) or (command[0] == "setpriv" and not have("postgres")):
        return []
    for file, text in _FILES.items():
        path = place / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(**words), encoding="utf-8")
    if name in _PREPARED:
        prepares = shlex.split(_PREPARED[name].format(**words))
        subprocess.run(prepares, check=True, capture_output=True)
    return command


def _whole(program: str) -> str:
    """Return the path of a program; a path that does not exist if it is not installed."""
    return shutil.which(program) or f"/usr/sbin/{program}"
