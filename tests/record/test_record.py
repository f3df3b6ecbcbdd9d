"""`ptt record` on real programs: counts, exit statuses, children, signals, limits."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace.errors import PttError
from tests.record.packets import (
    babeltrace_count,
    babeltrace_lost,
    pairs_by_mutex,
    processes,
    session,
    streams,
)
from tests.support import small_file_system

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.recording.api import Recording
    from tests.support import Compiler, Ptt, Recorder

SUMMARY = re.compile(
    r"ptt: recorded (?P<events>\d+) events? from (?P<processes>\d+) process(es)?, "
    r"(?P<threads>\d+) threads? in (?P<dir>\S+) \((?P<lost>\d+) lost, \d+(\.\d)? [kMG]?B\)"
)

# User events with more data than an event keeps.
LONGEST = """
#include <nptl_trace.h>

int main(void)
{
    static char data[5000];
    struct nptl_trace_event event = {
        .domain = 1, .event = 2, .param = data, .param_size = sizeof(data),
    };

    for (int i = 0; i < 40; i++)
        nptl_trace_send_user_event(event);
    return 0;
}
"""

# A real-time thread with pauses, while other threads fill the buffers as fast as they can.
REAL_TIME = """
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int over;

static void lock_often(int count)
{
    static __thread pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    while (count--) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *fill(void *unused)
{
    while (!over)
        lock_often(1000);
    return unused;
}

static void *in_real_time(void *unused)
{
    for (int i = 0; i < 200; i++) {
        usleep(1000);
        lock_often(100);
    }
    return unused;
}

int main(void)
{
    struct sched_param param = {.sched_priority = 1};
    pthread_t filling[2], real_time;
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &param);
    for (int i = 0; i < 2; i++)
        pthread_create(&filling[i], NULL, fill, NULL);
    usleep(100000);
    if (pthread_create(&real_time, &attr, in_real_time, NULL))
        _exit(77);
    pthread_join(real_time, NULL);
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(filling[i], NULL);
    return 0;
}
"""

# While the recorder does not run, a real-time thread records more than the buffers hold.
UNCOLLECTED = """
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *in_real_time(void *unused)
{
    kill(getppid(), SIGSTOP);
    for (int i = 0; i < 50000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    kill(getppid(), SIGCONT);
    return unused;
}

int main(void)
{
    struct sched_param param = {.sched_priority = 1};
    pthread_t real_time;
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &param);
    if (pthread_create(&real_time, &attr, in_real_time, NULL))
        _exit(77);
    pthread_join(real_time, NULL);
    return 0;
}
"""

# The argument says how many threads live at the same time.
AT_ONE_TIME = """
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *run(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv)
{
    unsigned int count = strtoul(argv[argc - 1], NULL, 10);
    pthread_t *thread = calloc(count, sizeof(*thread));
    pthread_attr_t attr;

    pthread_barrier_init(&barrier, NULL, count + 1);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
    pthread_attr_setguardsize(&attr, 0);
    for (unsigned int i = 0; i < count; i++)
        if (pthread_create(&thread[i], &attr, run, NULL))
            _Exit(77);
    pthread_barrier_wait(&barrier);
    for (unsigned int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
"""


def last_line(stderr: str) -> dict[str, str]:
    """Return the facts of the last line."""
    match = SUMMARY.fullmatch(stderr.splitlines()[-1])
    assert match is not None, stderr
    return match.groupdict()


def children_cpu_s() -> float:
    """Return the processor time of all ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class TestWhole:
    """Every recorded event is in the trace."""

    @pytest.mark.parametrize(("threads", "operations"), [(1, 200_000), (8, 50_000), (64, 5_000)])
    def test_counts(
        self, own: Callable[[str], Path], ptt: Ptt, tmp_path: Path, threads: int, operations: int
    ) -> None:
        trace = tmp_path / "t"
        command = [str(own("counted")), str(tmp_path / "words"), str(threads), str(operations)]
        printed = last_line(ptt("record", "-o", trace, "--", *command).stderr)
        assert pairs_by_mutex(trace) == [operations] * threads
        assert printed["lost"] == "0"
        assert int(printed["threads"]) == threads + 1
        assert babeltrace_count(trace) == int(printed["events"]) == session(trace)["events"]

    def test_the_trace_describes_the_program(
        self, record: Recorder, own: Callable[[str], Path]
    ) -> None:
        words = record.directory.parent / "words"
        trace = record(own("counted"), words, "1", "10", options=("-l", "3,cond=1"))
        facts = session(trace)
        assert facts["state"] == "complete"
        assert facts["level"] == "3,cond=1"
        assert facts["exit_status"] == 0
        assert set(facts["lost"].values()) == {0}
        (process,) = processes(trace)
        assert process["exe"] == str(own("counted"))
        assert process["cmdline"][1:] == [str(words), "1", "10"]
        lines = (trace / "info" / "processes.jsonl").read_text().splitlines()
        modules = next(json.loads(line)["modules"] for line in lines if "modules" in line)
        assert any("libc.so" in m["path"] and m["build_id"] for m in modules["modules"])
        assert any("sites" in json.loads(line) for line in lines)

    def test_starts_fast(self, ptt: Ptt, tmp_path: Path) -> None:
        """As fast as Python itself on this machine at this moment."""
        bare, recording = [], []
        for i in range(30):
            began = time.monotonic()
            subprocess.run([sys.executable, "-c", "import argparse, subprocess"], check=True)
            between = time.monotonic()
            ptt("record", "-o", tmp_path / str(i), "--", "true", fork=False)
            bare.append(between - began)
            recording.append(time.monotonic() - between)
            if i >= 4 and min(recording) < 6 * min(bare):
                break
        assert min(recording) < 6 * min(bare)

    def test_imports_nothing_heavy(self, ptt: Ptt, tmp_path: Path) -> None:
        """Nor modules that would keep the recorder from ending at once."""
        heavy = {"numpy", "pyarrow", "rich", "shutil", "subprocess", "tempfile"}
        heavy |= {"typing", "dataclasses", "inspect", "locale", "gettext", "urllib.parse", "mmap"}
        heavy |= {"logging", "random", "socket", "importlib.metadata"}
        heavy |= {"nptltrace.recording.control", "nptltrace.recording.settings.filters"}
        heavy |= {"atexit", "threading"}
        if sys.version_info >= (3, 14):
            # argparse and ctypes import these themselves
            heavy -= {"dataclasses", "inspect", "threading"}
        code = (
            "import sys; from nptltrace.cli import main; main(sys.argv[1:]); "
            f"print(sorted({heavy} & set(sys.modules)))"
        )
        command = [sys.executable, "-c", code, "record", "-o", str(tmp_path / "t"), "--", "true"]
        done = subprocess.run(
            command, env=ptt.environment(), capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"

    def test_longest_event_fits_in_the_smallest_buffer(
        self, record: Recorder, ptt: Ptt, compile_c: Compiler
    ) -> None:
        program = compile_c(LONGEST, name="longest")
        options = ("--buffer-size", "8K", "--buffer-budget", "64K")
        trace = record(program, options=options, timeout=30)
        printed = ptt("view", "--format", "jsonl", "--event", "USER", trace).stdout
        assert [json.loads(line)["size"] for line in printed.splitlines()] == [5000] * 40

    def test_real_time_threads_lose_nothing_where_others_wait(
        self, ptt: Ptt, compile_c: Compiler, tmp_path: Path
    ) -> None:
        program = compile_c(REAL_TIME, name="real_time")
        options = ("--buffer-budget", "2M", "-o", tmp_path / "t")
        done = ptt("record", *options, "--", program, status=None)
        if done.returncode == 77:
            pytest.skip("real-time policies need a right that is missing here")
        assert (done.returncode, last_line(done.stderr)["lost"]) == (0, "0")

    def test_events_lost_by_real_time_threads_are_reported_as_theirs(
        self, ptt: Ptt, compile_c: Compiler, trace_dir: Path
    ) -> None:
        program = compile_c(UNCOLLECTED, name="uncollected")
        options = ("--buffer-budget", "256K", "-o", trace_dir)
        done = ptt("record", *options, "--", program, status=None)
        if done.returncode == 77:
            pytest.skip("real-time policies need a right that is missing here")
        assert done.returncode == 0
        lost = last_line(done.stderr)["lost"]
        assert int(lost) == session(trace_dir)["lost"]["real_time"] > 50000
        line = f"ptt: {lost} events were lost because threads of a real-time policy do not wait"
        assert [text for text in done.stderr.splitlines() if text.startswith(line)]

    def test_more_threads_than_buffers(self, ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
        """Processor time grows with the number of threads, even if threads reuse buffers."""
        program = compile_c(AT_ONE_TIME, name="at_one_time")
        # Each thread has a file, and some file systems create files slowly.
        memory = Path("/dev/shm")  # noqa: S108 -- for the file system that it is
        place = memory if os.access(memory, os.W_OK) else tmp_path
        spent = []
        for threads in (7000, 14000):
            if subprocess.run([program, str(threads)], check=False).returncode == 77:
                pytest.skip("the system does not permit so many threads")
            with tempfile.TemporaryDirectory(dir=place) as directory:
                before = children_cpu_s()
                command = (program, str(threads))
                done = ptt("record", "-o", Path(directory, "t"), "--", *command, fork=False)
                spent.append(children_cpu_s() - before)
            printed = last_line(done.stderr)
            assert (printed["lost"], printed["threads"]) == ("0", str(threads + 1))
        assert spent[1] < 4 * spent[0]

    def test_empty_packets_report_losses(
        self, record: Recorder, own: Callable[[str], Path]
    ) -> None:
        words = record.directory.parent / "words"
        options = ("--when-full", "drop", "--buffer-budget", "64K")
        trace = record(own("counted"), words, "4", "100000", options=options)
        facts = session(trace)
        reported = sum(packets[-1].discarded for packets in streams(trace))
        assert reported == sum(facts["lost"].values())
        assert reported == babeltrace_lost(trace)
        recorded = sum(packet.events for packets in streams(trace) for packet in packets)
        # Each thread makes 6 events (its life and its mutex), the process 2.
        assert abs(recorded + reported - (4 * 200_000 + 4 + 4 * 5 + 2)) <= 8


class TestExitStatus:
    """The exit status is the program's, or the shell's status for a program that cannot start."""

    @pytest.mark.parametrize(
        ("command", "status"),
        [
            (["true"], 0),
            (["sh", "-c", "exit 7"], 7),
            (["sh", "-c", "kill -9 $$"], 137),
            (["sh", "-c", "kill -SEGV $$"], 139),
        ],
        ids=str,
    )
    def test_of_the_program(
        self, ptt: Ptt, tmp_path: Path, command: list[str], status: int
    ) -> None:
        last_line(ptt("record", "-o", tmp_path / "t", "--", *command, status=status).stderr)

    @pytest.mark.parametrize(
        ("command", "status", "message"),
        [
            (["no-such-program"], 127, "no-such-program: program not found"),
            (["/etc/passwd"], 126, "/etc/passwd: not executable"),
            (["/"], 126, "/: is a directory"),
        ],
        ids=str,
    )
    def test_without_a_program(
        self, ptt: Ptt, tmp_path: Path, command: list[str], status: int, message: str
    ) -> None:
        done = ptt("record", "-o", tmp_path / "t", "--", *command, status=status)
        assert done.stderr == f"ptt: error: {message}\n"
        assert list(tmp_path.iterdir()) == []

    def test_of_a_script_of_python(self, ptt: Ptt, tmp_path: Path) -> None:
        """A script that names no interpreter runs under the Python of ptt."""
        script = tmp_path / "script.py"
        script.write_text("import sys; print(*sys.argv, sys.executable); sys.exit(5)")
        line = f"script.py --hello {sys.executable}\n"
        for mode in (0o644, 0o755):
            script.chmod(mode)
            done = ptt(
                "record", "-o", "t", "--force", "script.py", "--hello", status=5, cwd=tmp_path
            )
            assert done.stdout == line
            last_line(done.stderr)
        script.write_text("#!/bin/sh\necho $1")
        done = ptt("record", "-o", "t", "--force", "./script.py", "--hello", cwd=tmp_path)
        assert done.stdout == "--hello\n"
        script.chmod(0o644)
        done = ptt("record", "-o", "u", "no-such.py", status=127, cwd=tmp_path)
        assert done.stderr == "ptt: error: no-such.py: program not found\n"

    def test_of_a_program_that_cannot_be_traced(
        self, ptt: Ptt, tmp_path: Path, compile_c: Compiler
    ) -> None:
        path = compile_c("int main(void) { return 5; }", "-static")
        done = ptt("record", "-o", tmp_path / "t", "--", path, status=5)
        assert (
            done.stderr
            == f"ptt: {path} cannot be traced: it is statically linked; it runs untraced\n"
        )
        assert not (tmp_path / "t").exists()

    def test_original(self, ptt: Ptt, tmp_path: Path) -> None:
        command = ["record", "--original", "-o", str(tmp_path / "t"), "--", "sh", "-c"]
        done = ptt(*command, 'echo "$LD_PRELOAD"; exit 3', status=3)
        assert (done.stdout, done.stderr) == ("\n", "")

    @pytest.mark.parametrize(
        "options",
        [
            ["--handler", "nonsense"],
            ["--level", "9"],
            ["--max-files", "3"],
            ["--buffer-size", "5000"],
            ["--buffer-size", "4K"],  # too small for the longest event
            ["--buffer-budget", "20K"],
            ["--filter", "mutex,nonsense"],
        ],
        ids=str,
    )
    def test_of_senseless_options(self, ptt: Ptt, tmp_path: Path, options: list[str]) -> None:
        done = ptt("record", *options, "-o", tmp_path / "t", "--", "true", status=2)
        assert len(done.stderr.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []

    def test_force_where_nothing_could_be_written(self, ptt: Ptt, tmp_path: Path) -> None:
        trace = tmp_path / "t.ptt"
        killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        command = ("--handler", "file", "-o", trace, "--", sys.executable, "-c", killed)
        ptt("record", *command, status=137)
        ptt("record", "--force", *command, status=137)

    def test_force(self, ptt: Ptt, tmp_path: Path) -> None:
        trace = tmp_path / "t"
        ptt("record", "-o", trace, "--", "true")
        assert "not empty" in ptt("record", "-o", trace, "--", "true", status=2).stderr
        ptt("record", "--force", "-o", trace, "--", "true")
        (trace / "novel.txt").write_text("mine")
        assert "novel.txt" in ptt("record", "--force", "-o", trace, "--", "true", status=2).stderr
        assert (trace / "metadata").exists()


CHILDREN = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(int argc, char **argv)
{
	int children = atoi(argv[1]), daemons = argc > 2;
	for (int i = 0; i < children; i++)
		if (!fork()) {
			if (daemons) { setsid(); usleep(200000); }
			for (int j = 0; j < 100; j++) {
				pthread_mutex_lock(&mutex);
				pthread_mutex_unlock(&mutex);
			}
			if (i % 2) execl("/bin/true", "true", (char *)0);
			_exit(0);
		}
	if (!daemons)
		while (wait(0) > 0) ;
	return 3;
}
"""


class TestChildren:
    """Children are followed, however they start and end."""

    @pytest.mark.parametrize("mode", [[], ["daemons"]], ids=["waited for", "daemons"])
    def test_all_are_recorded(self, record: Recorder, compile_c: Compiler, mode: list[str]) -> None:
        trace = record(compile_c(CHILDREN), "6", *mode, status=3)
        started = processes(trace)
        assert len(started) == 1 + 6 + 3
        assert sum(Path(process["exe"]).name == "true" for process in started) == 3
        assert pairs_by_mutex(trace) == [100] * 6
        lines = (trace / "info" / "processes.jsonl").read_text().splitlines()
        assert sum('"exit"' in line for line in lines) == len(started)

    def test_children_are_not_recorded_with_no_children(
        self, record: Recorder, compile_c: Compiler
    ) -> None:
        trace = record(compile_c(CHILDREN), "6", options=("--no-children",), status=3)
        assert len(processes(trace)) == 1

    def test_an_interrupt_stops_the_wait_for_a_daemon(self, ptt: Ptt, tmp_path: Path) -> None:
        command = ptt.command(
            "record", "-o", tmp_path / "t", "--", "sh", "-c", "sleep 60 & echo $!"
        )
        with subprocess.Popen(
            command,
            env=ptt.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            sleeper = int(process.stdout.readline())
            line = process.stderr.readline()
            while line.startswith("ptt: the recording of"):  # of another test at this time
                line = process.stderr.readline()
            assert "waiting for what it started" in line
            process.send_signal(signal.SIGINT)
            printed = last_line(process.stderr.readline())
            os.kill(sleeper, signal.SIGTERM)
        assert process.returncode == 0
        assert printed["lost"] == "0"


class TestSignals:
    """Signals reach the program, and the trace is finished."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_pass_on(
        self, ptt: Ptt, tmp_path: Path, own: Callable[[str], Path], number: signal.Signals
    ) -> None:
        if signal.getsignal(number) == signal.SIG_IGN:
            pytest.skip(f"{number.name} is ignored here, as nohup has it, and so in programs")
        trace, words = tmp_path / "t", tmp_path / "words"
        command = ptt.command("record", "-o", trace, "--", own("counted"), words, "2", "0")
        with subprocess.Popen(
            command, env=ptt.environment(), stderr=subprocess.PIPE, text=True
        ) as process:
            while not words.exists() or words.stat().st_size == 0:
                time.sleep(0.01)
            time.sleep(0.1)
            process.send_signal(number)
            assert process.stderr is not None
            printed = last_line(process.stderr.read())
        assert process.returncode == 128 + number
        assert session(trace)["state"] == "complete"
        assert babeltrace_count(trace) == int(printed["events"])


class TestLimits:
    """Bounded files, bounded buffers, full disks."""

    def test_rotation_keeps_the_last_files(
        self, ptt: Ptt, tmp_path: Path, own: Callable[[str], Path]
    ) -> None:
        trace = tmp_path / "t"
        command = [str(own("counted")), str(tmp_path / "words"), "2", "200000"]
        options = ["--max-file-size", "500K", "--max-files", "3"]
        done = ptt("record", "-o", trace, *options, "--", *command)
        files = [file.name for file in trace.glob("stream-*")]
        assert all(re.fullmatch(r"stream-\d{5}\.\d{3}", name) for name in files)
        assert max(file.stat().st_size for file in trace.glob("stream-*")) <= 500 << 10
        assert max(sum(name.startswith(f"stream-{i:05}") for name in files) for i in range(3)) == 3
        assert babeltrace_count(trace) == int(last_line(done.stderr)["events"])
        removed = re.search(r"ptt: (\d+) older events", done.stderr)
        assert removed is not None
        total = int(removed[1]) + session(trace)["events"]
        # A thread that waits for room has an event of the wait at each level.
        assert total - (800_000 + 2 + 2 * 5 + 2) in range(100)

    @pytest.mark.parametrize("policy", ["loop", "until-full"])
    def test_policies(
        self, ptt: Ptt, tmp_path: Path, own: Callable[[str], Path], policy: str
    ) -> None:
        trace = tmp_path / "t"
        options = ["--stream-full-policy", policy, "--buffer-budget", "1M"]
        command = [str(own("counted")), str(tmp_path / "words"), "1", "200000"]
        ptt("record", "-o", trace, *options, "--", *command)
        assert 50_000 < session(trace)["events"] < 66_000
        found = [packet for packets in streams(trace) for packet in packets]
        tids = {packet.tid for packet in found}
        names = {
            name
            for name, ident in _ids().items()
            if any((p.slots[:, 0] & 1023 == ident).any() for p in found)
        }
        assert len(tids) == 2
        assert ("THREAD_END" in names) == (policy == "loop")

    def test_unloaded_library(self, ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
        plugin = compile_c(
            """
            #include <pthread.h>
            int work(void)
            {
                static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

                return pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex);
            }
            """,
            "-shared", "-fPIC", name="plugin.so",
        )  # fmt: skip
        program = compile_c(
            """
            #include <dlfcn.h>
            #include <stdio.h>
            #include <string.h>
            #include <unistd.h>
            static int is_known(const char *list, const char *name)
            {
                static char text[1 << 20];
                FILE *file = fopen(list, "r");
                size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

                if (file)
                    fclose(file);
                text[size] = 0;
                return strstr(text, name) != NULL;
            }
            int main(int argc, char **argv)
            {
                void *library = dlopen(argv[1], RTLD_NOW);
                int (*work)(void) = (int (*)(void))dlsym(library, "work");
                int status = work();

                for (int i = 0; i < 12000 && !is_known(argv[2], "plugin.so\\",\\"start"); i++)
                    usleep(10000);
                return dlclose(library) || status || argc != 3;
            }
            """
        )
        trace = tmp_path / "t"
        ptt("record", "-o", trace, "--", program, plugin, trace / "info" / "processes.jsonl")
        shown = ptt("view", "--event", "MUTEX_TAKEN", "--site", "work", trace).stdout
        assert "at work+0x" in shown

    def test_full_disk(self, ptt: Ptt, tmp_path: Path, own: Callable[[str], Path]) -> None:
        with small_file_system(tmp_path / "small", "4m") as small:
            command = [str(own("counted")), str(tmp_path / "words"), "2", "200000"]
            done = ptt("record", "-o", small / "t", "--", *command)
            assert "cannot write the trace: No space left on device" in done.stderr
            facts = session(small / "t")
            streams(small / "t")
            total = facts["events"] + facts["lost"]["not_written"]
            # A thread that waits for room has an event of the wait at each level.
            assert total - (800_000 + 2 + 2 * 5 + 2) in range(100)

    def test_a_disk_with_room_for_empty_packets_only(
        self, ptt: Ptt, tmp_path: Path, own: Callable[[str], Path]
    ) -> None:
        with small_file_system(tmp_path / "small", "200k") as small:
            command = [str(own("counted")), str(tmp_path / "words"), "6", "50000"]
            ptt("record", "-o", small / "t", "--", *command)
            assert "byte" not in ptt("stat", small / "t").stderr  # and no damaged packet

    def test_many_threads_in_little_room(self, record: Recorder, compile_c: Compiler) -> None:
        program = compile_c(
            """
            #include <pthread.h>
            static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            static pthread_barrier_t barrier;
            static void *work(void *unused)
            {
                pthread_mutex_lock(&mutex);
                pthread_mutex_unlock(&mutex);
                pthread_barrier_wait(&barrier);
                return unused;
            }
            int main(void)
            {
                static pthread_t id[200];
                pthread_barrier_init(&barrier, 0, 200);
                for (int i = 0; i < 200; i++) pthread_create(&id[i], 0, work, 0);
                for (int i = 0; i < 200; i++) pthread_join(id[i], 0);
                return 0;
            }
            """
        )
        trace = record(program, options=("--buffer-budget", "1M"))
        assert session(trace)["threads"] == 201
        assert set(session(trace)["lost"].values()) == {0}


def _ids() -> dict[str, int]:
    from nptltrace.catalog import EVENTS

    return {event.name: event.id for event in EVENTS}


def _fail_once_it_runs(trace: Path) -> None:
    until = time.monotonic() + 120
    while not (trace / "info" / "session.json").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    raise ZeroDivisionError


def _fail_after(run: Recording) -> None:
    run.wait()
    raise ZeroDivisionError


class TestPython:
    """`nptltrace.record()`."""

    @pytest.fixture(autouse=True)
    def _native(self, native_stage: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        monkeypatch.chdir(tmp_path)

    def test_records(self, own: Callable[[str], Path]) -> None:
        with nptltrace.record([own("counted"), "words", "1", "100"], level=2) as run:
            pass
        assert run.returncode == 0
        assert pairs_by_mutex(run.trace) == [100]

    def test_errors_give_the_reason(self) -> None:
        with pytest.raises(PttError, match="program not found"), nptltrace.record(["no-such"]):
            pass

    def test_an_exception_ends_the_program(self) -> None:
        began = time.monotonic()
        with pytest.raises(ZeroDivisionError), nptltrace.record(["sleep", "1000"]) as run:
            _fail_once_it_runs(run.trace)
        assert time.monotonic() - began < 200
        assert session(run.trace)["state"] == "complete"

    def test_an_older_trace_is_not_taken_for_the_new_trace(
        self, own: Callable[[str], Path]
    ) -> None:
        with nptltrace.record([own("counted"), "words", "1", "100"], output="old.ptt"):
            pass
        with pytest.raises(PttError, match="not empty"):
            nptltrace.record([own("counted"), "words", "1", "7"], output="old.ptt").wait()
        with pytest.raises(PttError, match="program not found") as caught:
            nptltrace.record(["no-such"], output="old.ptt", force=True).wait()
        assert caught.value.exit_status == 127
        with pytest.raises(PttError, match="level"):
            nptltrace.record(["true"], output="old.ptt", force=True, level=99).wait()
        assert pairs_by_mutex(Path("old.ptt")) == [100]

    def test_untraceable_programs_run(self, compile_c: Compiler) -> None:
        static = compile_c("int main(void) { return 3; }", "-static")
        run = nptltrace.record(static)
        with pytest.warns(RuntimeWarning, match="statically linked"):
            run.wait()
        assert run.returncode == 3
        assert not run.trace.exists()
        (Path("old.ptt") / "info").mkdir(parents=True)
        Path("old.ptt/metadata").touch()
        with pytest.raises(PttError, match="holds an older trace"):
            nptltrace.record(static, output="old.ptt", force=True).wait()

    def test_standard_streams_are_the_programs(self) -> None:
        script = "cat; head -c 300000 /dev/zero | tr '\\0' x >&2; exit 4"
        run = nptltrace.record(
            ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(b"words")
        run.stdin.close()
        assert run.stderr.read() == b"x" * 300_000
        assert run.stdout.read() == b"words"
        run.stdout.close()
        run.stderr.close()
        assert run.wait() == 4
        assert run.messages[-1].startswith("recorded ")

    def test_standard_error_is_the_callers(self, capfd: pytest.CaptureFixture[str]) -> None:
        run = nptltrace.record(["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x >&2"])
        assert run.wait() == 0
        assert capfd.readouterr().err == "x" * 300_000

    def test_an_exception_after_the_end_stays_itself(self) -> None:
        run = nptltrace.record(["true"])
        with pytest.raises(ZeroDivisionError), run:
            _fail_after(run)
        assert run.wait() == 0

    def test_the_exit_status_appears_without_wait(self) -> None:
        run = nptltrace.record(["sh", "-c", "read line; exit 5"], stdin=subprocess.PIPE)
        with pytest.raises(TimeoutError):
            run.wait(0.01)
        statuses = {run.returncode}
        assert run.stdin is not None
        run.stdin.close()
        until = time.monotonic() + 120
        while 5 not in statuses and time.monotonic() < until:
            time.sleep(0.01)
            statuses.add(run.returncode)
        assert statuses == {None, 5}
        assert run.wait() == 5

    def test_a_program_alone(self, tmp_path: Path) -> None:
        (tmp_path / "inner").mkdir()
        own_true = Path("true")
        own_true.symlink_to("/bin/true")
        runs = [nptltrace.record("./true"), nptltrace.record(own_true.absolute(), cwd="inner")]
        assert [run.wait() for run in runs] == [0, 0]
        assert all((run.trace / "metadata").exists() for run in runs)
        assert runs[0].trace != runs[1].trace
        with pytest.raises(PttError, match="no program"):
            nptltrace.record([])
