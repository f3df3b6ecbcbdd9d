"""Bad input: one clear line; the program runs untraced if it can; nothing is left behind."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.real import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Compiler, Ptt, Result

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    pthread_mutex_lock(&mutex);
    puts("it runs");
    pthread_mutex_unlock(&mutex);
    return 3;
}
"""
STATUS = 3
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


def left_over(here: Path) -> tuple[list[Path], list[Path]]:
    """Return session directories that dead recorders of traces in `here` left.

    Then, sessions without a location: another test may be removing them at this moment.
    """
    named, unnamed = [], []
    for place in (SHARED_MEMORY, Path("/tmp"), Path("/var/tmp")):  # noqa: S108
        for path in place.glob(f"ptt-{os.getuid()}-*-*"):
            if Path("/proc", path.name.split("-")[2]).exists():
                continue
            try:
                note = (path / "session.json").read_text(encoding="utf-8")
            except OSError:
                unnamed.append(path)
            else:
                named += [path] if str(here) in note else []
    return named, unnamed


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The directory to record in; at the end it must be empty, and no session may be left."""
    directory = tmp_path / "here"
    directory.mkdir()
    before = left_over(directory)
    yield directory
    assert list(directory.iterdir()) == []
    assert set(left_over(directory)[0]) <= set(before[0])
    wait_until(
        lambda: all(path in before[1] or not path.exists() for path in left_over(directory)[1]),
        "a session directory without a note is removed",
    )


@pytest.fixture
def program(compile_c: Compiler) -> Path:
    return compile_c(PROGRAM)


def words(done: Result) -> str:
    """Return the only line on standard error."""
    lines = [
        line for line in done.stderr.splitlines() if not line.startswith("ptt: the recording of ")
    ]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


# ---- programs ---------------------------------------------------------------------------------


def test_static_program(ptt: Ptt, compile_c: Compiler, here: Path) -> None:
    static = compile_c(PROGRAM, "-static")
    done = ptt("record", "--", static, status=STATUS, cwd=here)
    assert done.stdout == "it runs\n"
    assert (
        words(done) == f"ptt: {static} cannot be traced: it is statically linked; it runs untraced"
    )


def test_setuid_program(ptt: Ptt, program: Path, here: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(program, 65534, 65534)
    program.chmod(program.stat().st_mode | stat.S_ISUID)
    done = ptt("record", "--", program, status=STATUS, cwd=here)
    assert done.stdout == "it runs\n"
    assert "other privileges" in words(done)


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_program_that_is_run_as_another_user(
    handler: str, ptt: Ptt, program: Path, trace_dir: Path
) -> None:
    """The recorded program starts it; its buffers are only for the program's own user."""
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    readable = [*other, "test", "-r", str(ptt.native / "lib" / "libnptltrace.so")]
    if os.getuid() != 0 or subprocess.run(readable, check=False, capture_output=True).returncode:
        pytest.skip("needs root, and a tracer that other users can read")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        given = shutil.copy(program, Path(name, "program"))
        options = ("-q", "--handler", handler, "-o", trace_dir)
        done = ptt("record", *options, "--", *other, given, status=STATUS)
    assert done.stdout == "it runs\n"
    assert words(done) == (
        f"ptt: {handler}: it runs as another user than ptt record, and may not join the "
        "recording; the program runs untraced"
    )


def test_32_bit_program(ptt: Ptt, tmp_path: Path, here: Path) -> None:
    source, narrow = tmp_path / "narrow.S", tmp_path / "narrow"
    source.write_text(
        ".globl _start\n_start:\n  movl $1, %eax\n  movl $3, %ebx\n  int $0x80\n", encoding="ascii"
    )
    command = ["gcc", "-m32", "-nostdlib", "-static", str(source), "-o", str(narrow)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("gcc cannot build 32-bit programs here")
    try:
        runs = subprocess.run([narrow], check=False).returncode == STATUS
    except OSError:
        runs = False
    done = ptt("record", "--", narrow, status=STATUS if runs else None, cwd=here)
    assert f"{narrow} cannot be traced: it is built for another architecture" in done.stderr
    assert not runs or words(done)


def test_missing_program(ptt: Ptt, here: Path) -> None:
    done = ptt("record", "--", "./nowhere", status=127, cwd=here)
    assert words(done) == "ptt: error: ./nowhere: program not found"


@pytest.mark.parametrize(
    ("mode", "content", "status", "message"),
    [
        (0o644, b"#!/bin/sh\n", 126, "not executable"),
        (0o755, b"\x7fELF\2\1\1\0", 126, "Exec format error"),
        (0o755, b"no\0 text", 126, "Exec format error"),
        (0o755, b"#!/no/such/interpreter\n", 127, "the interpreter that it names does not exist"),
    ],
    ids=["not executable", "cut off", "no program", "no interpreter"],
)
def test_no_program(
    ptt: Ptt, tmp_path: Path, here: Path, *, mode: int, content: bytes, status: int, message: str
) -> None:
    path = tmp_path / "no-program"
    path.write_bytes(content)
    path.chmod(mode)
    line = words(ptt("record", "--", path, status=status, cwd=here))
    assert line.startswith("ptt: error: ")
    assert str(path) in line
    assert line.endswith(message)


def test_directory(ptt: Ptt, tmp_path: Path, here: Path) -> None:
    done = ptt("record", "--", tmp_path, status=126, cwd=here)
    assert words(done) == f"ptt: error: {tmp_path}: is a directory"


def test_script_that_names_no_interpreter(ptt: Ptt, tmp_path: Path, trace_dir: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$1 from ${0##*/}"; exit 4\n', encoding="ascii")
    script.chmod(0o755)
    done = ptt("record", "-o", trace_dir, "--", script, "hello", status=4)
    assert done.stdout == "hello from script\n"
    assert "ptt: recorded " in done.stderr


# ---- handlers ---------------------------------------------------------------------------------


def test_unknown_handler(ptt: Ptt, program: Path, here: Path) -> None:
    done = ptt("record", "--handler", "nonsense", "--", program, status=2, cwd=here)
    assert words(done).startswith("ptt: error: unknown handler 'nonsense': expected ")
    done = ptt("record", "--handler", "./nonsense.so", "--", program, status=2, cwd=here)
    assert words(done) == "ptt: error: handler ./nonsense.so: no such file"


def test_library_without_a_handler(ptt: Ptt, program: Path, tmp_path: Path, here: Path) -> None:
    handler = tmp_path / "handler.so"
    handler.write_text("no library")
    done = ptt("record", "--handler", str(handler), "--", program, status=STATUS, cwd=here)
    assert done.stdout == "it runs\n"
    assert words(done).startswith("ptt: cannot load the trace handler: ")


@pytest.mark.parametrize("handler", ["text", "text:events.txt", "posix"])
def test_output_of_a_handler_that_writes_no_trace(
    handler: str, ptt: Ptt, program: Path, here: Path
) -> None:
    options = ("--handler", handler, "-o", "run.ptt")
    done = ptt("record", *options, "--", program, status=2, cwd=here)
    assert done.stdout == ""
    assert words(done).startswith("ptt: error: --output is where a trace goes, and handler ")
    assert list(here.iterdir()) == []


# ---- traces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["stat", "view", "cut --count 1 -o out", "split -o out"])
def test_input_that_is_not_a_trace(ptt: Ptt, tmp_path: Path, here: Path, command: str) -> None:
    empty, foreign, file = tmp_path / "empty", tmp_path / "foreign", tmp_path / "file"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "metadata").write_text("/* CTF 1.8 */ trace { major = 1; minor = 8; };\n")
    file.write_text("no trace")
    for path in (tmp_path / "nowhere", empty, foreign, file):
        line = words(ptt(*command.split(), path, status=2, cwd=here))
        assert line.startswith("ptt: error: ")
        assert str(path) in line


def test_trace_without_read_permission(ptt: Ptt, tmp_path: Path, here: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may read everything")
    trace = tmp_path / "trace"
    ptt("record", "-o", trace, "--", "true")
    (trace / "metadata").chmod(0)
    assert "Permission denied" in words(ptt("stat", trace, status=2, cwd=here))


# ---- places -----------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(ptt: Ptt, program: Path, here: Path) -> Callable[..., Result]:
    """Runner of `ptt record -- PROGRAM` with other file systems mounted; needs root."""

    def run(*mounts: str, options: str = "") -> Result:
        record = shlex.join([*ptt.command("record"), *options.split(), "--", str(program)])
        script = " && ".join([*mounts, record])
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            env=ptt.environment({"TMPDIR": None}),
            cwd=here,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    try:
        allowed = run("mount -t tmpfs tmpfs /mnt && exit 77").returncode == 77
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("needs root to mount file systems")
    return run


def _trace(here: Path) -> None:
    """Insist on a complete trace, and remove the trace."""
    (trace,) = here.iterdir()
    assert (trace / "stream-00000").stat().st_size
    subprocess.run(["rm", "-r", trace], check=True)


@pytest.mark.parametrize("size", ["size=64k", "size=1m", "size=1m,ro"])
def test_shared_memory_too_small(elsewhere: Callable[..., Result], here: Path, size: str) -> None:
    done = elsewhere(f"mount -t tmpfs -o {size} tmpfs /dev/shm")
    assert (done.stdout, done.returncode) == ("it runs\n", STATUS)
    assert words(done).startswith("ptt: recorded ")
    _trace(here)


def test_no_shared_memory(elsewhere: Callable[..., Result], here: Path) -> None:
    done = elsewhere("mount -t tmpfs tmpfs /dev", "mknod -m 666 /dev/null c 1 3")
    assert (done.stdout, done.returncode) == ("it runs\n", STATUS)
    assert words(done).startswith("ptt: recorded ")
    _trace(here)


def test_no_space_in_any_directory(
    ptt: Ptt, elsewhere: Callable[..., Result], program: Path, here: Path
) -> None:
    # /tmp may hold the program, the tree or the trace: the test fills it instead.
    places = [place for place in ("/dev/shm", "/var/tmp") if Path(place).is_dir()]  # noqa: S108
    small = [f"mount -t tmpfs -o size=200k tmpfs {place}" for place in places]
    unwritable = "mount --bind -o ro /tmp /tmp && mount -o remount,bind,ro /tmp"
    kept = f"mount -t tmpfs -o size=1m tmpfs /mnt && mount --bind {here} /mnt"
    done = elsewhere(*small, kept, unwritable, options="-o /mnt/trace")
    assert (done.stdout, done.returncode) == ("it runs\n", STATUS)
    line = words(done)
    assert line.startswith("ptt: cannot record: ")
    assert line.endswith("; the program runs untraced")


def test_limited_file_size(ptt: Ptt, program: Path, here: Path) -> None:
    record = shlex.join([*ptt.command("record"), "--", str(program)])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 100; {record}"],
        env=ptt.environment(),
        cwd=here,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.stdout, done.returncode) == ("it runs\n", STATUS)
    line = words(done)
    assert line.startswith("ptt: cannot record: ")
    assert line.endswith("; the program runs untraced")


def test_full_disk_before_the_first_byte(elsewhere: Callable[..., Result], here: Path) -> None:
    full = "mount -t tmpfs -o size=8k tmpfs /mnt"
    done = elsewhere(full, "(head -c 16384 /dev/zero > /mnt/full; true) 2>/dev/null",
                     options="-o /mnt/trace")  # fmt: skip
    assert (done.stdout, done.returncode) == ("it runs\n", STATUS)
    line = words(done)
    assert line.startswith("ptt: cannot record: /mnt/trace: ")
    assert line.endswith("; the program runs untraced")


@pytest.mark.parametrize("output", ["/proc/trace", "/dev/null/trace"])
def test_trace_directory_that_cannot_be_made(
    ptt: Ptt, program: Path, here: Path, output: str
) -> None:
    done = ptt("record", "-o", output, "--", program, status=2, cwd=here)
    assert done.stdout == ""
    assert words(done).startswith(f"ptt: error: cannot make the trace directory {output}: ")
