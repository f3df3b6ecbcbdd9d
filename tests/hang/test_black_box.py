"""The black box: who took each lock, when and where, from a process and from a core file."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding.headers import ptt_abi
from nptltrace.analysis.vocabulary.document_types import Hang
from nptltrace.hang.black_box.memory import DamagedBox, read_box
from nptltrace.hang.black_box.saved import save
from nptltrace.hang.black_box.story import Story, with_story
from nptltrace.hang.picture import Picture
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.core import Core
from nptltrace.hang.targets.process import Process
from nptltrace.hang.targets.target import Thread
from nptltrace.hang.thread_picture import Held, ThreadPicture
from nptltrace.hang.waits import Wait
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.ui.shapes import fits
from tests.hang.looking import asleep
from tests.support import Compiler, clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Ptt

HERE = Path(__file__).parent
SOURCE = (HERE / "black_box.c").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    return Compiler(tmp_path_factory.mktemp("boxed"), HERE)(HERE / "black_box.c", "-O1", "-g")


@pytest.fixture(scope="module")
def _cores() -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern.startswith(("|", "/")) or not resource.getrlimit(resource.RLIMIT_CORE)[1]:
        pytest.skip("the kernel writes no core files here")


def line_of(mark: str) -> str:
    """Return the place of a marked line."""
    (number,) = (n for n, line in enumerate(SOURCE, 1) if f"/* {mark} */" in line)
    return f"(black_box.c:{number})"


def preload(ptt: Ptt, box: str = "1") -> dict[str, str]:
    library = ptt("config", "--preload").stdout.strip()
    return clean_environment(LD_PRELOAD=library, PTT_BLACK_BOX=box)


@contextmanager
def started(
    *command: str | Path, env: dict[str, str], cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        list(map(str, command)), env=env, cwd=cwd, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def held_of(answer: dict[str, Any]) -> dict[str, str]:
    """Return the call sites of the held locks, by name."""
    return {hold["name"]: hold["site"] for t in answer["threads"] for hold in t["held"]}


def read(pid: int | str) -> Any:
    """Return the box of a process."""
    process = Process(int(pid))
    return process, read_box(process, Names(Symbols(OneProcess(process))))


def test_a_process_tells_who_took_each_lock_and_where(
    boxed: Path, ptt: Ptt, tmp_path: Path
) -> None:
    command = ptt.command("record", "--black-box", "--", boxed, "deadlock")
    before = set(Path("/dev/shm").iterdir())  # noqa: S108
    with started(*command, env=ptt.environment(), cwd=tmp_path) as process:
        answer = asleep(ptt, str(process.pid), 3)
        # The program is in place of ptt, and has neither files nor a recorder.
        assert Path(f"/proc/{process.pid}/exe").readlink() == boxed
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) == 3
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert not children.read_text(encoding="ascii")
        assert list(tmp_path.iterdir()) == []
        ours = [path for path in set(Path("/dev/shm").iterdir()) - before if "ptt-" in path.name]  # noqa: S108
        assert not any(str(process.pid) in path.name for path in ours)
        text = ptt("hang", "-v", str(process.pid), status=1).stdout
    assert fits(Hang, answer)
    assert answer["black_box"] == "read"
    held = held_of(answer)
    assert held["left"].endswith(line_of("LEFT"))
    assert held["right"].endswith(line_of("RIGHT"))
    taker = next(t for t in answer["threads"] if any(h["name"] == "left" for h in t["held"]))
    assert [event["event"] for event in taker["recent"]][-1] == "MUTEX_WAIT"
    assert 0 <= taker["recent"][-1]["ns_ago"] <= taker["held"][-1]["since_ns_ago"]
    assert [finding["kind"] for finding in answer["findings"]] == ["deadlock"]
    assert "holds mutex left, taken" in text
    assert "what happened last, from the black box:" in text


def test_the_box_knows_readers_whom_the_memory_does_not_name(boxed: Path, ptt: Ptt) -> None:
    """The cycle goes through a reader of the rwlock; the lock only counts its readers."""
    with started(boxed, "reader", env=preload(ptt)) as process:
        answer = asleep(ptt, str(process.pid), 3)
    assert held_of(answer)["table"].endswith(line_of("READ"))
    (finding,) = answer["findings"]
    assert finding["kind"] == "deadlock"
    assert set(finding["object_names"]) == {"table", "busy+0x28"}


def test_a_stopped_process_has_the_findings_of_the_box_too(boxed: Path, ptt: Ptt) -> None:
    """The memory alone tells of the thread that waits for itself, but not of the reader."""
    with started(boxed, "reader", "twice", env=preload(ptt)) as process:
        asleep(ptt, str(process.pid), 4)
        done = ptt("hang", "--stop", "--format", "json", str(process.pid), status=1)
    kinds = [finding["kind"] for finding in json.loads(done.stdout)["findings"]]
    assert sorted(kinds) == ["deadlock", "self-deadlock"]


def test_without_room_for_a_trace_the_picture_is_the_same(boxed: Path, ptt: Ptt) -> None:
    with started(boxed, "deadlock", env=preload(ptt)) as process:
        answer = asleep(ptt, str(process.pid), 3)
        command = ptt.command("hang", "--format", "json", str(process.pid))
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command], check=False,
            env=ptt.environment(), capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 1
    assert f"the black box of process {process.pid} (" in done.stderr
    assert done.stderr.count("\n") == 1
    told = json.loads(done.stdout)
    assert told["black_box"] == "unread"
    assert [f["kind"] for f in told["findings"]] == [f["kind"] for f in answer["findings"]]


@pytest.mark.parametrize(("kind", "owner"), [("rwlock", 2), ("mutex", 0)])
def test_an_older_object_at_the_same_address_has_no_say(kind: str, owner: int) -> None:
    held = Held(0x1000, "", kind, 5, "", ("",), is_shared=True)
    wait = Wait("rwlock", 0x1000, readers=1, writes=True)
    threads = tuple(
        ThreadPicture(1, Thread(tid, tid, "", "S"), wait if tid == 1 else None, "", (), "")
        for tid in (1, 2)
    )
    picture = with_story(Picture(1, "", "", threads), Story({2: (held,)}, {}))
    assert picture.threads[0].wait == wait._replace(owner=owner)


def test_the_box_is_saved_as_a_trace(boxed: Path, ptt: Ptt, tmp_path: Path) -> None:
    trace = tmp_path / "box.ptt"
    with started(boxed, "deadlock", env=preload(ptt)) as process:
        asleep(ptt, str(process.pid), 3)
        done = ptt("hang", "--save", trace, str(process.pid), status=1)
        again = ptt("hang", "--save", trace, str(process.pid), status=2)
        ptt("hang", "--save", trace, "--force", str(process.pid), status=1)
    assert f"events in {trace}" in done.stderr
    assert "not empty" in again.stderr or "--force" in again.stderr
    findings = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)["findings"]
    assert "deadlock" in [finding["kind"] for finding in findings]
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["processes"][0]["pid"] == process.pid
    assert stat["events"] > 500
    assert "mutex left" in ptt("view", trace).stdout


def test_nothing_is_saved_without_a_box(ptt: Ptt, tmp_path: Path) -> None:
    with started("sleep", "60", env=clean_environment()) as process:
        done = ptt("hang", "--save", tmp_path / "x.ptt", str(process.pid), status=2)
        assert ptt("hang", "--force", str(process.pid), status=2).stderr.count("\n") == 1
    assert "it has no black box" in done.stderr
    assert not (tmp_path / "x.ptt").exists()


def core_of(place: Path, program: Path, how: str, env: dict[str, str]) -> Path:
    """Let a program end with a core file; return the file."""
    place.mkdir()
    command = ("sh", "-c", 'ulimit -s 1024; ulimit -c unlimited; exec "$@"', "sh", program, how)
    with started(*command, env=env, cwd=place) as process:
        process.wait(timeout=60)
    (core,) = place.glob("core*")
    return core


@pytest.mark.usefixtures("_cores")
@pytest.mark.parametrize(
    ("how", "ended"),
    [("segv", "SIGSEGV"), ("overflow", "SIGSEGV"), ("handler", "SIGABRT")],
)
def test_core_files_have_the_box(
    how: str, ended: str, boxed: Path, ptt: Ptt, tmp_path: Path
) -> None:
    core = core_of(tmp_path / "place", boxed, how, preload(ptt))
    done = ptt("hang", "--format", "json", core, status=1)
    answer = json.loads(done.stdout)
    held = held_of(answer)
    assert held["left"].endswith(line_of("LEFT"))
    assert held["right"].endswith(line_of("RIGHT"))
    assert "deadlock" in [finding["kind"] for finding in answer["findings"]]
    text = ptt("hang", core, status=1).stdout
    assert ended in text
    assert "before the last event" in text


@pytest.mark.usefixtures("_cores")
def test_a_trace_of_a_core_says_nothing_of_this_machine(
    boxed: Path, ptt: Ptt, tmp_path: Path
) -> None:
    core = Core(core_of(tmp_path / "place", boxed, "segv", preload(ptt)))
    box = read_box(core, Names(Symbols(OneProcess(core))))
    assert box is not None
    # As if the core file were a month old, and from a machine that counts twice as fast.
    head = box.head
    head.start_unix_ns -= 30 * 86400 * 10**9
    head.start_monotonic_ns, head.start_clock = 10**12, 10**12
    head.later_monotonic_ns, head.later_clock = 2 * 10**12, 3 * 10**12
    for clock, frequency in ((ptt_abi.PTT_CLOCK_TSC, 2), (ptt_abi.PTT_CLOCK_MONOTONIC, 1)):
        head.clock = clock
        trace = tmp_path / f"{clock}.ptt"
        save(box, core, trace)
        facts = json.loads((trace / "info/session.json").read_text("utf-8"))
        assert [facts[name] for name in ("hostname", "kernel", "libc", "boot_id")] == [""] * 4
        assert facts["level"] == ""
        assert facts["clock"]["frequency"] == frequency * 10**9
        begun_ns = facts["clock"]["unix_ns_at_zero"] + head.start_clock // frequency
        assert begun_ns == head.start_unix_ns
        # The clock is no clock of this boot: other traces cannot share it.
        _, _, text = (trace / "metadata").read_text("utf-8").partition("clock {")
        assert f'uuid = "{facts["uuid"]}"' in text
    assert not core.remarks
    head.clock, head.later_clock = ptt_abi.PTT_CLOCK_TSC, 0
    save(box, core, tmp_path / "unknown.ptt")
    assert [remark for remark in core.remarks if "speed of the clock" in remark]


def damaged(data: bytes, places: list[range], dice: random.Random) -> bytes:
    """Return a core file with other bytes in its box."""
    new = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.choice(dice.choice(places)) & ~3
        size = dice.choice((4, 8))
        value = dice.choice((0, 1, 2**64 - 1, 2**63, 1 << dice.randrange(64), dice.getrandbits(64)))
        if dice.random() < 0.3:
            value = int.from_bytes(new[at : at + size], "little") + dice.choice((-1, 1, 16, 4096))
        new[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(new)


@pytest.mark.usefixtures("_cores")
def test_a_damaged_box_claims_nothing_and_breaks_nothing(
    boxed: Path, ptt: Ptt, tmp_path: Path
) -> None:
    core = core_of(tmp_path / "place", boxed, "segv", preload(ptt))
    sound = core.read_bytes()
    heads = {
        at: ptt_abi.Segment.from_buffer_copy(sound[at : at + 384])
        for at in places_of(sound, b"PTTSEGM2")
        if at % 4096 == 0
    }
    ((segment, head),) = ((at, head) for at, head in heads.items() if head.box == 1)
    roots = [range(at, at + 64) for at in places_of(sound, b"PTTBBOX1")]
    chunks = segment + head.chunk_offset
    places = [
        *roots, range(segment, segment + 384), range(segment, segment + 384),
        range(segment + head.process_offset, segment + head.process_offset + 40),
        range(segment + head.thread_offset, segment + head.thread_offset + 128 * 3),
        range(segment + head.thread_owner_offset, segment + head.thread_owner_offset + 12),
        range(segment + head.chunk_state_offset, segment + head.chunk_state_offset + 32),
        range(chunks, chunks + 256), range(chunks + 8192, chunks + 8192 + 64),
        range(chunks, chunks + 6 * 8192),
    ]  # fmt: skip
    dice, outcomes = random.Random(1), set()  # noqa: S311 -- no secrets
    count = int(float(os.environ.get("PTT_FUZZ_SECONDS", "0"))) * 20 or 60
    for number in range(count):
        core.write_bytes(damaged(sound, places, dice))
        target = Core(core)
        began = time.process_time()
        try:
            box = read_box(target, Names(Symbols(OneProcess(target))))
        except DamagedBox:
            outcomes.add("damaged")
            continue
        if box is not None:
            stats = save(box, target, tmp_path / f"{number}.ptt")
            outcomes.add("read")
            assert stats.events <= 6 * 512 * 2
        assert time.process_time() - began < 5
    assert outcomes == {"damaged", "read"}
    # The command says it in one line, and goes on without the box.
    wrong = bytearray(sound)
    wrong[segment + 16 : segment + 24] = struct.pack("<Q", 1)
    wrong[segment + 24 : segment + 28] = struct.pack("<I", 12345)
    core.write_bytes(wrong)
    done = ptt("hang", "--format", "json", core, status=1)
    assert "damaged black box: its head makes no sense; nothing of it is used" in done.stderr
    answer = json.loads(done.stdout)
    assert answer["black_box"] == "damaged"
    assert not held_of(answer)
    assert "damaged" in ptt("hang", "--save", tmp_path / "no.ptt", core, status=2).stderr


def places_of(data: bytes, text: bytes) -> list[int]:
    places, at = [], data.find(text)
    while at >= 0:
        places.append(at)
        at = data.find(text, at + 1)
    return places


def test_busy_threads_are_never_accused(boxed: Path, ptt: Ptt, tmp_path: Path) -> None:
    """The threads go on while the box is read: what is read fits together."""
    with started(boxed, "hot", env=preload(ptt)) as process:
        target, box = read(process.pid)
        names = Names(Symbols(OneProcess(target)))
        until = time.monotonic() + 60
        while box is None or len(box.lives) < 6:
            assert time.monotonic() < until
            target, box = read(process.pid)
        for number in range(6):
            box = read_box(target, names)
            assert box is not None
            trace = tmp_path / f"{number}.ptt"
            save(box, target, trace)
            # No lock has two holders, and no thread waits for itself. On a busy machine, a thread
            # may hold a lock for long.
            done = ptt("check", "--format", "json", trace, status=None)
            assert done.returncode in {0, 1}
            findings = json.loads(done.stdout)["findings"]
            assert {finding["kind"] for finding in findings} <= {"long-hold"}
        assert not json.loads(ptt("hang", "--format", "json", str(process.pid)).stdout)["findings"]


def test_a_forked_child_begins_a_box_of_its_own(boxed: Path, ptt: Ptt) -> None:
    with started(boxed, "fork", env=preload(ptt)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        child = int(children.read_text(encoding="ascii"))
        try:
            of_child = json.loads(ptt("hang", "--format", "json", str(child), status=None).stdout)
            of_parent = json.loads(
                ptt("hang", "--format", "json", str(process.pid), status=None).stdout
            )
        finally:
            os.kill(child, signal.SIGKILL)
    assert held_of(of_child) == {"busy+0x28": held_of(of_child)["busy+0x28"]}
    assert held_of(of_child)["busy+0x28"].endswith(line_of("CHILD"))
    assert list(held_of(of_parent)) == ["busy+0x50"]


def test_threads_that_ended_do_not_fill_the_memory(boxed: Path, ptt: Ptt) -> None:
    with started(boxed, "brief", env=preload(ptt)) as process:
        asleep(ptt, str(process.pid), 1)
        _, box = read(process.pid)
    assert box.head.thread_high <= ptt_abi.PTT_BOX_ENDED + 8
    assert len(box.lives) > ptt_abi.PTT_BOX_ENDED // 2


@pytest.mark.parametrize(
    ("box", "limit", "says"),
    [
        ("events=0", "unlimited", "events=0 is neither"),
        ("memory=9x", "unlimited", "memory=9x is neither"),
        ("events=16384,memory=1M", "unlimited", "events=16384 needs memory=2048K or more"),
        ("a:b", "unlimited", "PTT_BLACK_BOX has no such options"),
        ("0", "unlimited", ""),
        ("events=16384,memory=1G,stacks=0", "unlimited", ""),
        # The box takes a part of few addresses, or none.
        ("1", "200000", ""),
    ],
)
def test_the_program_runs_whatever_is_asked_for(box: str, limit: str, says: str, ptt: Ptt) -> None:
    command = ("sh", "-c", f"ulimit -v {limit}; exec echo done")
    done = subprocess.run(
        command, env=preload(ptt, box), check=True, capture_output=True, text=True
    )
    assert done.stdout == "done\n"
    assert says in done.stderr
    assert done.stderr.count("\n") == (2 if says else 0)  # the shell, and echo


def test_a_box_has_no_filter(boxed: Path, ptt: Ptt) -> None:
    """Without the releases, every lock that a thread took would seem held."""
    environment = preload(ptt, "0") | {"PTHREAD_NPTL_TRACE": "ring:black-box:2:filter=rwlock=8"}
    with started(boxed, "reader", env=environment) as process:
        answer = asleep(ptt, str(process.pid), 3)
    assert (answer["black_box"], held_of(answer)) == ("none", {})


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "x"), ("--force",), ("--handler", "text"), ("--duration", "1s"), ("--sched", "none"),
        ("--stream-full-policy", "loop"), ("--level", "4"), ("--stacks", "all"), ("--ui",),
        ("--buffer-budget", "2G"), ("--black-box-events", "0"), ("--original",),
        ("--filter", "!RWLOCK_FREE"),
        ("--black-box-events", "8193", "--buffer-budget", "1M"),
    ],
)  # fmt: skip
def test_options_of_recordings_are_refused(options: tuple[str, ...], ptt: Ptt) -> None:
    done = ptt("record", "--black-box", *options, "--", "true", status=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ptt: error: ")


def test_a_running_process_gets_a_box(boxed: Path, ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "later.c"
    source.write_text(
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
        "int main(void) { char c; while (read(0, &c, 1) > 0) pthread_mutex_lock(&lock);"
        " return 0; }\n",
        encoding="utf-8",
    )
    program = Compiler(tmp_path, tmp_path)(source, "-O1")
    process = subprocess.Popen([program], stdin=subprocess.PIPE)
    try:
        done = ptt("attach", "--black-box", str(process.pid), status=None)
        if done.returncode and "left alone" in done.stderr:
            pytest.skip(done.stderr)
        assert f"ptt hang {process.pid} reads them" in done.stderr
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) == 3
        assert process.stdin is not None
        process.stdin.write(b".")
        process.stdin.flush()
        until = time.monotonic() + 60
        held: dict[str, str] = {}
        while "lock" not in held and time.monotonic() < until:
            done = ptt("hang", "--format", "json", str(process.pid), status=None)
            held = held_of(json.loads(done.stdout))
        assert held["lock"].startswith("main+")
        refused = ptt("attach", "--black-box", str(process.pid), status=2)
        assert "already" in refused.stderr
        assert ptt("attach", "--black-box", "-o", "x", str(process.pid), status=2).stderr
    finally:
        process.kill()
        process.communicate()
