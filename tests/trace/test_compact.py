"""Compact traces: the same trace in fewer bytes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import struct
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from nptltrace._files.directories import Directory
from tests.record.packets import processes
from tests.support import Compiler, Ptt
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Recorder

PREFIX, HEAD = 16, 128


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    """A plain trace with threads, waits, stacks and texts."""
    directory = tmp_path_factory.mktemp("compact")
    program = directory / "program.c"
    program.write_text(PROGRAM)
    compiled = Compiler(directory, native_stage / "include")(program)
    trace = directory / "plain"
    options = ("--no-bundle", "--level", "3", "--user-stacks")
    Ptt(native_stage)("record", *options, "-o", trace, "--", compiled)
    return trace


@pytest.fixture(scope="module")
def small(plain: Path, native_stage: Path) -> Path:
    Ptt(native_stage)("compact", "-o", plain.with_name("small"), plain)
    return plain.with_name("small")


PROGRAM = """
#include <nptl_trace.h>
#include <pthread.h>
static pthread_mutex_t mutex[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t barrier;
static void *work(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex[i % 3]);
        pthread_mutex_unlock(&mutex[i % 3]);
        if (i % 250 == 0)
            nptl_trace_say("a text that needs several slots of the trace: 0123456789 abcdefghijk");
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}
int main(void)
{
    pthread_t id[3];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&id[i], NULL, work, "worker");
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    return 0;
}
"""


def _size(trace: Path) -> int:
    return sum(path.stat().st_size for path in trace.glob("stream-*"))


def _contents(trace: Path) -> dict[str, bytes]:
    """Return the files of a trace, without files of the viewer."""
    files = [*trace.glob("stream-*"), trace / "metadata", *(trace / "info").iterdir()]
    return {str(path.relative_to(trace)): path.read_bytes() for path in files if path.is_file()}


def test_plain_comes_back_bit_for_bit(ptt: Ptt, plain: Path, small: Path, tmp_path: Path) -> None:
    assert _size(small) < _size(plain) / 3
    ptt("export", "--format", "ctf", "-o", tmp_path / "back", small)
    assert _contents(plain) == _contents(tmp_path / "back")
    ptt("compact", "-o", tmp_path / "again", small)
    assert _contents(small) == _contents(tmp_path / "again")


def test_force_replaces_a_trace_that_nobody_writes(ptt: Ptt, plain: Path, tmp_path: Path) -> None:
    output = tmp_path / "o"
    ptt("compact", "-o", output, plain)
    (output / ".ptt-view").mkdir()
    (output / ".ptt-view" / "overview-0123456789ab").touch()
    with Directory.open(output) as recorder:
        assert recorder.lock()
        done = ptt("compact", "--force", "-o", output, plain, status=2)
    assert "a recording writes into" in done.stderr
    ptt("compact", "--force", "-o", output, plain)
    assert not (output / ".ptt-view").exists()
    (output / "letter").write_text("mine")
    done = ptt("compact", "--force", "-o", output, plain, status=2)
    assert "do not belong to a trace, such as letter" in done.stderr


@pytest.mark.parametrize("command", ["view", "check", "verify"])
def test_commands_read_it_directly(ptt: Ptt, plain: Path, small: Path, command: str) -> None:
    texts = [
        ptt(command, trace, status=None).stdout.replace(str(trace), "TRACE")
        for trace in (plain, small)
    ]
    assert texts[0] == texts[1]


def test_a_cut_is_plain(ptt: Ptt, small: Path, tmp_path: Path) -> None:
    ptt("cut", "--count", "100", "-o", tmp_path / "cut", small)
    done = subprocess.run(
        ["babeltrace2", tmp_path / "cut"], capture_output=True, encoding="utf-8", check=True
    )
    assert len(done.stdout.splitlines()) >= 100


def test_other_readers_refuse_it(small: Path) -> None:
    done = subprocess.run(
        ["babeltrace2", small], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert b"ptt export --format ctf" in (small / "metadata").read_bytes()[:100]


def test_damage_is_reported_and_nothing_else(ptt: Ptt, small: Path, tmp_path: Path) -> None:
    """Random changes of the codes: a packet is whole, or it is left out."""
    whole = ptt("view", small).stdout.splitlines()
    choice = random.Random(5)  # noqa: S311 -- no secret
    stream = max(small.glob("stream-*"), key=lambda path: path.stat().st_size)
    data = stream.read_bytes()
    trace = tmp_path / "damaged"
    ptt("compact", "-o", trace, small)
    for _ in range(4):
        damaged = bytearray(data)
        for _ in range(choice.randint(1, 4)):
            damaged[choice.randrange(len(damaged))] = choice.randrange(256)
        (trace / stream.name).write_bytes(damaged[: choice.randint(0, len(damaged))])
        done = ptt("view", trace, status=None)
        assert "internal error" not in done.stderr
        assert len(done.stdout.splitlines()) <= len(whole)
    # One bit in the codes of one packet: this packet is reported.
    damaged = bytearray(data)
    damaged[PREFIX + HEAD + 40] ^= 4
    (trace / stream.name).write_bytes(damaged)
    assert "checksum" in ptt("stat", trace).stderr
    done = ptt("compact", "-o", tmp_path / "other", trace, status=2)
    assert "damaged" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.fixture
def three(ptt: Ptt, tmp_path: Path) -> Path:
    """A compact trace with three packets of 200 events in a stream."""
    built = Builder(tmp_path / "built")
    taken = [Event(10**9 + n, "MUTEX_TAKEN", 0x4040, 5) for n in range(600)]
    built.thread(1, taken[:200], taken[200:400], taken[400:])
    ptt("compact", "-o", tmp_path / "three", built.write())
    return tmp_path / "three"


def test_a_packet_with_a_wrong_size_hides_no_other_packet(ptt: Ptt, three: Path) -> None:
    (stream,) = three.glob("stream-*")
    data = bytearray(stream.read_bytes())
    struct.pack_into("<I", data, 4, struct.unpack_from("<I", data, 4)[0] + 8)
    stream.write_bytes(data)
    done = ptt("stat", "--format", "json", three)
    assert json.loads(done.stdout)["events"] == 400
    assert "byte 0: the checksum of this packet is wrong" in done.stderr


SMALL_MACHINE = """
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PHYS_PAGES ? 8192 / real(_SC_PAGESIZE) : real(name);
}
"""


def test_plain_events_have_a_limit(
    ptt: Ptt, compile_c: Compiler, three: Path, tmp_path: Path
) -> None:
    """Commands stop in place of taking all memory; the plain trace comes back all the same."""
    preload = compile_c(SMALL_MACHINE, "-D_GNU_SOURCE", "-shared", "-fPIC", "-ldl")
    small = {"LD_PRELOAD": str(preload)}
    done = ptt("stat", three, status=2, env=small, fork=False)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "too large to be read on this machine; write the plain trace" in done.stderr
    export = ("export", "--format", "ctf", "-o", tmp_path / "back", three)
    ptt(*export, env=small, fork=False)
    assert _contents(tmp_path / "back") == _contents(tmp_path / "built")


PAUSES = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    pause();
}
"""


def test_recovery_by_packet(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    with subprocess.Popen(
        ptt.command("record", "--compact", "-o", trace, "--", compile_c(PAUSES)),
        env=ptt.environment(), stderr=subprocess.DEVNULL,
    ) as recorder:  # fmt: skip
        end = time.monotonic() + 60
        log = trace / "info" / "processes.jsonl"
        while not log.exists() or not processes(trace) or _size(trace) < 20_000:
            assert time.monotonic() < end
            time.sleep(0.01)
        recorder.kill()
    os.kill(processes(trace)[0]["pid"], signal.SIGKILL)
    with max(trace.glob("stream-*")).open("ab") as file:
        file.write(b"\xed\xc7\xda\xc0" + bytes(40))  # a torn packet
    for arguments in (["compact"], ["export", "--format", "ctf"]):
        done = ptt(*arguments, "-o", tmp_path / "back", trace, status=2)
        assert f"its recorder was killed: `ptt recover {trace}`" in done.stderr
    ptt("recover", trace)
    done = ptt("stat", trace)
    assert done.stderr == ""
    assert re.search(r"MUTEX_TAKEN +20,000 ", done.stdout)
    ptt("export", "--format", "ctf", "-o", tmp_path / "back", trace)
    subprocess.run(["babeltrace2", tmp_path / "back"], stdout=subprocess.DEVNULL, check=True)


def test_record_compact_with_rotation_and_snapshots(
    ptt: Ptt, record: Recorder, compile_c: Compiler, tmp_path: Path
) -> None:
    program = compile_c(PROGRAM)
    trace = record(program, options=("--compact", "--level", "3", "--max-file-size", "64K"))
    files = [path.stat().st_size for path in trace.glob("stream-*")]
    assert max(files) <= 64 << 10
    assert "no events lost" in ptt("stat", trace).stdout
    reason = ("--stream-full-policy", "loop", "--snapshot-on", "user:a text")
    ptt("record", "--compact", *reason, "-o", tmp_path / "t", "--", program)
    for snapshot in (tmp_path / "t", tmp_path / "t-snapshot-1"):
        stream = max(snapshot.glob("stream-*"), key=lambda path: path.stat().st_size)
        assert stream.read_bytes()[:4] == b"\xed\xc7\xda\xc0"
        assert "damaged" not in ptt("check", snapshot, status=None).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["record", "--compact", "--handler", "shared", "--", "true"], "--compact needs handler"),
        (["export", "--format", "ctf", "--tid", "1", "-o", "o", "TRACE"], "whole trace"),
        (["export", "--format", "ctf", "-o", "-", "TRACE"], "standard output"),
        (["compact", "-o", "o", "o"], "does not exist"),
    ],
)
def test_what_makes_no_sense(
    ptt: Ptt, small: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    words = [str(small) if word == "TRACE" else word for word in arguments]
    assert message in ptt(*words, status=2, cwd=tmp_path).stderr
