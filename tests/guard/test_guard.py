"""`ptt guard`: hangs are reported, idle programs are not, and the program is not disturbed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from nptltrace.guard.progress import Progress
from nptltrace.guard.surroundings import file_lines
from nptltrace.guard.tree import MARK, Tree
from nptltrace.recording.interrupts import Interrupts
from tests.hang.looking import asleep, running
from tests.support import Compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

WAITS = Path(__file__).parent.parent / "hang" / "waits.c"
# A thread waits for a lock. Its holder waits on a condition, and the main thread for a descriptor:
# only with --idle this counts as a hang. With an argument, the holder waits for a descriptor, or
# for a semaphore that other processes may post.
HELD = """
    #include <poll.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <unistd.h>
    static sem_t shared;
    static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, quiet = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static volatile int holds;
    static void *hold(void *outside)
    {
        pthread_mutex_lock(&queue);
        holds = 1;
        if (outside && **(char **)outside == 's')
            sem_wait(&shared);
        if (outside)
            poll(NULL, 0, -1);
        pthread_mutex_lock(&quiet);
        for (;;)
            pthread_cond_wait(&never, &quiet);
    }
    static void *want(void *unused)
    {
        pthread_mutex_lock(&queue);
        return unused;
    }
    int main(int count, char **words)
    {
        pthread_t threads[2];
        sem_init(&shared, 1, 0);
        pthread_create(&threads[0], NULL, hold, count > 1 ? &words[1] : NULL);
        while (!holds)
            usleep(1000);
        pthread_create(&threads[1], NULL, want, NULL);
        poll(NULL, 0, -1);
    }
"""
# Idle for the whole time: a sleeper, a reader of a pipe that nobody writes, a server, a pool.
IDLE = """
import queue, socket, subprocess, sys, threading
children = [
    subprocess.Popen(["sleep", "60"]),
    subprocess.Popen(["cat"], stdin=subprocess.PIPE),
    subprocess.Popen(["sh", "-c", "sleep 6; true"]),
]
work = queue.Queue()
for _ in range(3):
    threading.Thread(target=work.get, daemon=True).start()
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(float(sys.argv[1]))
try:
    server.accept()
except TimeoutError:
    pass
for child in children:
    child.kill()
"""


@pytest.fixture(scope="session")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that hangs in many ways."""
    return Compiler(tmp_path_factory.mktemp("waits"), WAITS.parent)(WAITS, "-O0")


@pytest.fixture(scope="session", autouse=True)
def _looking_is_allowed(ptt: Ptt) -> None:
    """Skip the tests if even the user's own processes are closed to inspection."""
    with running("sleep", "60") as pid:
        message = ptt("hang", pid, status=None).stderr
    if "cannot look into" in message:
        pytest.skip(message)


def test_deadlock_in_a_script(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    results = [f"--{name}={tmp_path / name}" for name in ("junit", "sarif", "gitlab")]
    script = f"sleep 60 & {waits} mutexes; echo never"
    done = ptt(
        "guard", "-o", tmp_path / "report", "--then", "kill", "--github", *results,
        "--", "sh", "-c", script, status=124,
    )  # fmt: skip
    assert done.stdout == ""
    line, annotation = done.stderr.splitlines()
    assert line.startswith("ptt: deadlock in process ")
    assert "waits for mutex right" in line
    assert "waits.c:" in line
    assert line.endswith(f"; report in {tmp_path / 'report'}")
    assert annotation.startswith("::error file=")
    assert "waits.c,line=" in annotation

    hangs, *others = json.loads((tmp_path / "report/hang.json").read_text())
    assert hangs["name"].startswith("waits")
    assert [finding["kind"] for finding in hangs["findings"]] == ["deadlock"]
    assert set(hangs["findings"][0]["object_names"]) == {"left", "right"}
    programs = {Path(shutil.which(name) or "").resolve().name for name in ("sh", "sleep")}
    assert {other["name"] for other in others} == programs
    assert not any(other["findings"] for other in others)
    tree = (tmp_path / "report/tree.txt").read_text()
    assert f"  {hangs['pid']} sleeps, 3 threads" in tree
    text = (tmp_path / "report/stacks.txt").read_text()
    assert "cross+" in text
    assert "start_thread" in text or "clone" in text

    junit = ET.fromstring((tmp_path / "junit").read_text())  # noqa: S314 -- our own
    assert junit.find("testsuite/testcase/failure") is not None
    sarif = json.loads((tmp_path / "sarif").read_text())["runs"][0]
    assert sarif["results"][0]["ruleId"] == "deadlock"
    quality = json.loads((tmp_path / "gitlab").read_text())
    assert quality[0]["location"]["path"].endswith("waits.c")


@pytest.mark.parametrize(
    ("case", "kind"), [("stuck", "stuck"), ("shared", "deadlock"), ("ended", "exit-holding-lock")]
)
def test_hangs(ptt: Ptt, waits: Path, tmp_path: Path, case: str, kind: str) -> None:
    place = tmp_path / "report"
    ptt("guard", "-q", "-o", place, "--then", "term", "--", waits, case, status=124)
    kinds = {f["kind"] for each in json.loads((place / "hang.json").read_text())
             for f in each["findings"]}  # fmt: skip
    assert kinds == {kind}


def test_core_file(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    if shutil.which("gcore") is None:
        pytest.skip("gdb is not installed")
    place = tmp_path / "report"
    ptt("guard", "-o", place, "--core", "--then", "kill", "--", waits, "self", status=124)
    (core,) = place.glob("core.*")
    assert "1 finding: self-deadlock" in ptt("hang", core, status=1).stdout


def test_core_file_that_cannot_be_written(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    gcore = tmp_path / "gcore"
    gcore.write_text("#!/bin/sh\necho no room >&2; exit 1\n")
    gcore.chmod(0o755)
    done = ptt(
        "guard", "-o", tmp_path / "report", "--core", "--then", "kill", "--", waits, "self",
        status=124, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert re.search(r"error: cannot write a core file of process \d+: no room\n", done.stderr)
    assert done.stderr.endswith(f"; the report in {tmp_path / 'report'} is not complete\n")
    assert (tmp_path / "report/output.txt").exists()
    assert not [*tmp_path.glob("report/core*")]


def test_first_process_of_a_container(ptt: Ptt, tmp_path: Path) -> None:
    """The first process of a PID namespace gets the orphans, and takes their exit status."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces take root to make")
    orphan = "(sh -c 'sleep 0.1 & echo $! >orphan')"
    wait = "until [ -s orphan ] && ! [ -e /proc/$(cat orphan) ]; do sleep 0.05; done"
    command = [*unshare, *ptt.command("guard", "--", "sh", "-c", f"{orphan}; {wait}; exit 4")]
    done = subprocess.run(command, env=ptt.environment(), cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 4


def test_watchdog_of_systemd(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(address))
        notices.settimeout(60)
        guard = subprocess.Popen(
            ptt.command("guard", "-q", "-o", tmp_path / "report", "--", waits, "self"),
            env=ptt.environment({"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "100000"}),
        )
        try:
            said = [notices.recv(100)]
            while said[-1] == b"WATCHDOG=1":
                said.append(notices.recv(100))
        finally:
            guard.terminate()
            guard.wait()
    assert said[0] == b"WATCHDOG=1"
    assert said[-1] == b"STATUS=self-deadlock"


def test_continue_reports_once(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    place = tmp_path / "report"
    # The last file of a report is there when the report is whole.
    script = f"""
        {waits} self & until [ -e {place}/output.txt ]; do sleep 0.1; done
        sleep 1; kill $!; exit 5
    """
    done = ptt("guard", "-o", place, "--", "sh", "-c", script, status=5)
    assert done.stderr.count("ptt: ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_output_is_kept(ptt: Ptt, tmp_path: Path) -> None:
    place = tmp_path / "report"
    script = "seq 1 9; echo warning >&2; printf 'last of all'; sleep 60"
    options = ("--keep-output", "3", "--after", "0.5s", "--then", "kill")
    done = ptt("guard", "-q", "-o", place, *options, "--", "sh", "-c", script, status=124)
    assert done.stdout == "1\n2\n3\n4\n5\n6\n7\n8\n9\nlast of all"
    assert "warning\n" in done.stderr
    kept = (place / "output.txt").read_text().splitlines()
    assert len(kept) == 3
    assert "9" in kept


def test_all_output_is_passed_on(ptt: Ptt, tmp_path: Path) -> None:
    """The reader of a pipe that does not block is slower than the program."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    guard = subprocess.Popen(
        ptt.command("guard", "--keep-output", "1", "--", "seq", "1", "60000"),
        env=ptt.environment(), stdout=writer,
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as output:
        time.sleep(3.0)
        assert output.read().split() == [str(number) for number in range(1, 60001)]
    assert guard.wait(60) == 0


def test_a_full_disk_does_not_end_the_program(ptt: Ptt) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 -- a device
        done = subprocess.run(
            ptt.command("guard", "--keep-output", "1", "--", "seq", "1", "60000"),
            env=ptt.environment(), stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert b"output of the program is lost: No space left" in done.stderr


def test_faults_of_a_report(ptt: Ptt, tmp_path: Path) -> None:
    """A report that cannot be written does not save the program, and replaces nothing."""
    place = tmp_path / "report"
    script = f"mkdir {place}; echo mine >{place}/core.c; sleep 60"
    options = ("--after", "0.5s", "--then", "kill", "-o", place)
    done = ptt("guard", *options, "--", "sh", "-c", script, status=124)
    assert f"time-limit: the program has not ended after 0.5 s; report in {place}-2" in done.stderr
    assert (tmp_path / "report-2/hang.txt").exists()
    assert [path.name for path in place.iterdir()] == ["core.c"]

    gone = tmp_path / "gone"
    gone.mkdir()
    options = ("--after", "0.5s", "--then", "kill", "-o", gone / "report")
    done = ptt("guard", *options, "--", "sh", "-c", f"rmdir {gone}; sleep 60", status=124)
    assert "error: cannot make the directory" in done.stderr
    assert "time-limit" in done.stderr


def test_results_that_cannot_be_written(ptt: Ptt, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    script = f"rmdir {tmp_path}/results"
    options = ("--junit", tmp_path / "results/junit")
    assert "results/junit" in ptt("guard", *options, "--", "sh", "-c", script, status=2).stderr


def test_a_failed_watch(ptt: Ptt, tmp_path: Path) -> None:
    """A fault of the guard leaves --after and --then in force, and is an error in the results."""
    code = (
        "from nptltrace.guard import watch; from nptltrace.cli import main\n"
        "watch.Watch.search = lambda self, at_once=True: 1 / 0\n"
        "raise SystemExit(main())"
    )
    results = ("--junit", tmp_path / "junit", "--sarif", tmp_path / "sarif")
    command = ptt.command("guard", "-o", tmp_path / "report", *results)
    *python, module, name = command[: command.index("guard")]
    assert (module, name) == ("-m", "nptltrace")
    done = subprocess.run(
        [*python, "-c", code, *command[command.index("guard") :], "--after", "1s", "--then", "kill",
         "--", "sleep", "60"],
        env=ptt.environment(), check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 124
    assert "the watch has failed: ZeroDivisionError" in done.stderr
    assert "time-limit: the program has not ended after 1 s" in done.stderr
    case = ET.fromstring((tmp_path / "junit").read_text()).find("testsuite/testcase")  # noqa: S314
    assert case is not None
    assert [part.tag for part in case][:2] == ["error", "failure"]
    [invocation] = json.loads((tmp_path / "sarif").read_text())["runs"][0]["invocations"]
    assert not invocation["executionSuccessful"]
    assert "the watch has failed" in str(invocation["toolExecutionNotifications"])


def test_locks_of_open_files(tmp_path: Path) -> None:
    with (tmp_path / "locked").open("wb") as file:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # see fcntl(2)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        lines = [*file_lines([os.getpid()])]
        [line] = [line for line in lines if "OFDLCK" in line]
        assert f"process {os.getpid()}, fd {file.fileno()}: OFDLCK" in line


def test_a_process_that_nobody_has_waited_for(ptt: Ptt, tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "1"])
    options = ("-o", tmp_path / "report", "--after", "0.2s", "--then", "wait")
    ptt("guard", "--pid", str(child.pid), *options, status=1)
    assert child.wait() == 0


def test_a_thread_is_no_process(ptt: Ptt, waits: Path) -> None:
    with running(waits, "mutexes") as pid:
        asleep(ptt, pid, 3)
        tid = max(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208 -- names
        assert f"no process {tid}" in ptt("guard", "--pid", str(tid), status=2).stderr


def test_idle_programs(ptt: Ptt, tmp_path: Path) -> None:
    done = ptt(
        "guard", "-o", tmp_path / "report", "--idle", "1s", "--junit", tmp_path / "junit",
        "--", "python3", "-c", IDLE, "4",
    )  # fmt: skip
    assert done.stderr == ""
    assert not (tmp_path / "report").exists()
    junit = ET.fromstring((tmp_path / "junit").read_text())  # noqa: S314 -- our own
    assert junit.get("failures") == "0"


def test_no_progress(ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path) -> None:
    program = compile_c(HELD, "-pthread")
    options = ("--idle", "1s", "--after", "3s", "--then", "kill")
    done = ptt("guard", "-o", tmp_path / "inside", *options, "--", program, status=124)
    assert "no-progress in process" in done.stderr
    assert "waits for mutex queue" in done.stderr
    for holder in ("outside", "shared"):
        done = ptt("guard", "-o", tmp_path / holder, *options, "--", program, holder, status=124)
        assert "time-limit: the program has not ended after 3 s" in done.stderr


@pytest.mark.parametrize("then", ["continue", "wait"])
def test_time_limit(ptt: Ptt, tmp_path: Path, then: str) -> None:
    place = tmp_path / "report"
    script = f"sleep 60 & until [ -e {place}/output.txt ]; do sleep 0.1; done; kill $!; exit 3"
    options = ("--after", "0.5s", "--then", then)
    done = ptt("guard", "-o", place, *options, "--", "sh", "-c", script, status=3)
    assert "time-limit: the program has not ended after 0.5 s" in done.stderr
    assert {"sleep"} <= {each["name"] for each in json.loads((place / "hang.json").read_text())}


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-program"], 127),
        (["/proc"], 126),
    ],
)
def test_exit_status(ptt: Ptt, command: list[str], status: int) -> None:
    ptt("guard", "--", *command, status=status)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "no program given"),
        (["--pid", "1", "true"], "alone"),
        (["--all-of-user", "--then", "kill"], "would end all"),
        (["--pid", "4194304"], "there is no process"),
        (["--source-root", ".", "true"], "goes with --sarif"),
        (["--force", "true"], "give -o DIR"),
        (["-o", "/no/such/place", "true"], "there is no directory"),
        (["-o", "/proc", "true"], "is not empty"),
        (["--junit", "/no/such/file", "true"], "there is no directory"),
        (["--sarif", "/proc", "true"], "is a directory"),
        (["--idle", "0", "true"], "above 0"),
    ],
)
def test_refused(ptt: Ptt, options: list[str], why: str) -> None:
    assert why in ptt("guard", *options, status=2).stderr


def test_signals_are_passed_on(ptt: Ptt, tmp_path: Path) -> None:
    traps = "trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM"
    script = f"{traps}; echo ready; while :; do sleep 0.05; done"
    guard = subprocess.Popen(
        ptt.command("guard", "-o", tmp_path / "report", "--", "sh", "-c", script),
        env=ptt.environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert guard.stdout is not None
    assert guard.stdout.readline() == "ready\n"
    guard.send_signal(signal.SIGUSR1)
    assert guard.stdout.readline() == "usr1\n"
    guard.send_signal(signal.SIGTERM)
    assert guard.stdout.read() == "term\n"
    guard.stdout.close()
    assert guard.wait(60) == 9


def test_signal_for_the_process_of_another_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    monkeypatch.setattr(os, "kill", refuse)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.forward(os.getpid()) == {signal.SIGTERM}
    assert "cannot pass SIGTERM on to process" in capsys.readouterr().err


def test_stopped_process_is_no_hang(ptt: Ptt, waits: Path, tmp_path: Path) -> None:
    place = tmp_path / "report"
    with running(waits, "mutexes") as pid:
        assert asleep(ptt, pid, 3)["findings"]
        os.kill(int(pid), signal.SIGSTOP)
        ptt("guard", "--pid", pid, "-o", place, "--after", "3s", "--then", "kill", status=124)
        assert "time-limit" in (place / "hang.txt").read_text().splitlines()[0]


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize("has_clocks", [True, False])
def test_process_comes_to_rest_once(
    ptt: Ptt, waits: Path, monkeypatch: pytest.MonkeyPatch, *, has_clocks: bool
) -> None:
    """Some kernels do not have the clocks of other processes."""
    if not has_clocks:
        monkeypatch.setattr("nptltrace.guard.progress._ran_ns", lambda _: None)
    progress, rested = Progress(), list[int]()
    with running(waits, "mutexes") as pid:
        asleep(ptt, pid, 3)
        progress.add([int(pid)], 0.0)
        until = time.monotonic() + 60
        while len(rested) < 1:
            assert time.monotonic() < until
            rested, gone = progress.look(0.0)
            assert not gone
            time.sleep(0.2)
        assert rested == [int(pid)]
        # Reviews come after a time, and this time does not pass.
        assert progress.look(0.0) == progress.look(0.0) == ([], [])
    assert progress.look(0.0) == ([], [int(pid)])


def test_the_guard_is_not_in_its_tree() -> None:
    tree = Tree([os.getppid()])
    tree.search(time.monotonic())
    assert os.getpid() not in tree.members


def test_orphans_belong_to_the_tree() -> None:
    """A daemon is known by its environment, though its parents have ended long ago."""
    tree = Tree([os.getpid()], "test-guard")
    env = {**os.environ, MARK: "test-guard"}
    script = "setsid sh -c 'sleep 60 >&- & echo $!'"
    pid = int(
        subprocess.run(["sh", "-c", script], env=env, check=True, stdout=subprocess.PIPE).stdout
    )
    try:
        assert pid in tree.search(time.monotonic())
    finally:
        os.kill(pid, signal.SIGKILL)
