"""Gives damaged files to commands: each command soon prints output, or one line with an error.

`python -m tests.fuzz.files KIND` damages copies of sound files for `PTT_FUZZ_SECONDS` seconds, and
runs a command on each copy, in a fork of this process. Kinds are:

* `core`: core files, for `ptt hang`;
* `elf`: programs and their debug files, for a sound trace or core file;
* `trace`: streams, metadata and info files of traces;
* `segment`: shared memory that a killed recorder left, for `ptt recover`.

The sound files stay in `build/fuzz/files/KIND/sound` until the next build of the native files.
Meanwhile, `--first N` starts with the same input N. If a command does something wrong, its input
stays in `build/fuzz/files/KIND/found`, beside a file with the command.
"""

from __future__ import annotations

import argparse
import bisect
import json
import lzma
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests import fork_server
from tests.fuzz.damage import damage
from tests.hang.looking import WAYS, asleep, running
from tests.support import PROGRAMS, ROOT, Compiler, Ptt, clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.fuzz.damage import Field

PLACE = ROOT / "build" / "fuzz" / "files"
WAITS = ROOT / "tests" / "hang" / "waits.c"

ADDRESS_SPACE, OUTPUT_MAX = 4 << 30, 256 << 20
MEMORY_MB, PROCESSOR_S, HANG_S = 1024, 20, 300
FOUND_MAX = 30
# Text that controls a terminal: control characters, and characters that change the direction.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Kind(NamedTuple):
    """Files of one kind.

    Attributes:
        make: Makes sound files in `work`, variant by variant, and yields the names of the variants.
        commands: The commands; each input is for a single command, in the folder of its variant.
    """

    make: Callable[[Path, Ptt], Iterator[str]]
    commands: tuple[str, ...]


class Done(NamedTuple):
    """The result of a command.

    Attributes:
        status: Its exit status, negative for a signal.
        processor_s: The processor time of the command, in seconds.
        memory_mb: The peak memory of the command, in MB.
        hung: Whether the command was killed because it did not end.
        output: Its standard output.
        errors: Its standard error.
    """

    status: int
    processor_s: float
    memory_mb: int
    hung: bool
    output: str
    errors: str


# ------------------------------------------------------------------ sound files


def sh(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def compiled(directory: Path, source: Path, *flags: str) -> Path:
    """Compile a variant of a program; all variants have the same build-id."""
    directory.mkdir(exist_ok=True)
    return Compiler(directory, source.parent)(
        source, "-O1", "-Wl,--build-id=0x12345678", *flags, name="program"
    )


def core_of(place: Path, ptt: Ptt, *command: str | Path, **variables: str) -> None:
    """Write a small core file of a program after three of its threads sleep.

    Args:
        place: The directory of the core file.
        ptt: The runner of `ptt`.
        command: The program and its arguments.
        variables: Variables of its environment.
    """
    small = ("sh", "-c", 'ulimit -s 256; ulimit -c unlimited; exec "$@" >/dev/null', "sh")
    one_heap = clean_environment(MALLOC_ARENA_MAX="1", **variables)
    with running(*small, *command, cwd=place, env=one_heap) as pid:
        asleep(ptt, pid, 3)
        os.kill(int(pid), signal.SIGABRT)
        os.waitid(os.P_PID, int(pid), os.WEXITED | os.WNOWAIT)
    (core,) = place.glob("core*")
    core.rename(place / "core")


def has_cores() -> bool:
    """Return whether the kernel writes core files into the directory of the process."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8")
    return pattern.startswith("core") and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


def make_core(work: Path, ptt: Ptt) -> Iterator[str]:
    for case, way in (("mutexes", "plain"), ("stuck", "optimized"), ("rwlock", "static")):
        core_of(work, ptt, compiled(work, WAITS, *WAYS[way]), case)
        yield case
    preload = ptt("config", "--preload").stdout.strip()
    boxed = compiled(work, WAITS.with_name("black_box.c"), "-g")
    core_of(work, ptt, boxed, "deadlock", LD_PRELOAD=preload, PTT_BLACK_BOX="memory=1M")
    yield "black_box"
    for case in ("starved_pool", "nested_monitor"):
        core_of(work, ptt, sys.executable, PROGRAMS / "python_hangs.py", case)
        yield case


def make_elf(work: Path, ptt: Ptt) -> Iterator[str]:
    """Make variants of a program that ran once. The build-id fits each variant."""
    ran, mix = work.with_name("ran"), PROGRAMS / "mix.c"
    program = compiled(work, mix)
    ptt("record", "-o", work / "run.ptt", "-l", "3", "--stacks", "all", "--", program, "1", "30")
    core_of(work, ptt, compiled(work / "hangs", WAITS), "mutexes")
    shutil.copytree(work, ran)
    yield "plain"
    for name, flags in (
        ("split", ("-gdwarf-5", "-gsplit-dwarf")),
        ("packed", ("-gdwarf-4", "-gz=zlib")),
        ("shared", ()),
    ):
        shutil.copytree(ran, work, dirs_exist_ok=True)
        programs = [compiled(work, mix, *flags), compiled(work / "hangs", WAITS, *flags)]
        for program in programs if name == "packed" else []:
            separate(program)
        if name == "shared" and shutil.which("dwz"):
            sh("dwz", "-m", work / "shared.debug", "-r", *programs)
        yield name
    shutil.rmtree(ran)


def separate(program: Path) -> None:
    """Move debug information to another file, and put packed symbols into the program."""
    debug, packed = program.with_suffix(".debug"), program.with_suffix(".xz")
    sh("objcopy", "--only-keep-debug", program, debug)
    sh("objcopy", "--strip-debug", program, packed)
    packed.write_bytes(lzma.compress(packed.read_bytes()))
    sh("strip", "--strip-all", program)
    sh("objcopy", f"--add-section=.gnu_debugdata={packed}", f"--add-gnu-debuglink={debug}", program)
    packed.unlink()


def make_trace(work: Path, ptt: Ptt) -> Iterator[str]:
    program = compiled(work, PROGRAMS / "mix.c")
    python = (sys.executable, PROGRAMS / "python_corpus" / "condition.py")
    for name, options, command in (
        ("stacks", ("-l", "3", "--stacks", "all"), (program, "2", "20")),
        ("switches", ("--sched", "perf"), (program, "3", "10")),
        ("records", ("--handler", "shared"), (program, "1", "10")),
        ("compact", ("--compact", "-l", "3"), (program, "2", "20")),
        ("python", ("--stacks", "all"), python),
    ):
        compiled(work, PROGRAMS / "mix.c")
        ptt("record", "-o", work / "run.ptt", *options, "--", *command, status=None)
        ptt("bundle", work / "run.ptt", status=None)
        shutil.copytree(work / "run.ptt", work / "other.ptt")
        (work / "program").unlink()
        yield name


def make_segment(work: Path, ptt: Ptt) -> Iterator[str]:
    """Kill recorders, and move their shared memory beside the trace."""
    for handler in ("ring", "shared"):
        program = compiled(work, ROOT / "tests" / "record" / "counted.c")
        options = ("--handler", handler, "--buffer-budget", "256K", "-o", work / "run.ptt")
        command = ptt.command("record", *options, "--", program, work / "words", "2", "0")
        recorder = subprocess.Popen(command, env=ptt.environment(), stderr=subprocess.DEVNULL)
        while not list((work / "run.ptt").glob("stream-*")):
            time.sleep(0.05)
        children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
        for pid in (recorder.pid, *map(int, children.read_text(encoding="ascii").split())):
            os.kill(pid, signal.SIGKILL)
        recorder.wait()
        info = work / "run.ptt" / "info" / "session.json"
        facts = json.loads(info.read_text(encoding="utf-8"))
        session = work / f"ptt-{os.getuid()}-1-0"
        shutil.move(facts["session_dir"], session)
        info.write_text(json.dumps(facts | {"session_dir": str(session)}), encoding="utf-8")
        yield handler


TABLES = ("waits", "holds", "events", "objects", "findings", "lock_cycles", "stacks", "modules")
ON_TRACES = (
    *(f"view {more} run.ptt" for more in ("", "--stacks", "--format jsonl", "--site main")),
    *(f"report {more} run.ptt" for more in ("", "--by stack", "--format json", "--gil")),
    *("check run.ptt", "check --format json run.ptt", "stat run.ptt", "stat --format json run.ptt"),
    *(f"sql run.ptt select+*+from+{table}" for table in TABLES),
)
KINDS = {
    "core": Kind(
        make_core,
        (
            "hang core", "hang --stacks core", "hang --format json core",
            "hang --exe program core", "hang --save box.ptt core",
        ),
    ),
    "elf": Kind(
        make_elf,
        (
            *ON_TRACES, "bundle run.ptt", "hang core", "hang --stacks core",
            "hang --exe hangs/program core", "report --by site --debug-dir . run.ptt",
        ),
    ),
    "trace": Kind(
        make_trace,
        (
            *ON_TRACES, "verify run.ptt", "diff run.ptt --against run.ptt", "top run.ptt",
            "cut --start 9 -o cut.ptt run.ptt", "recover run.ptt",
            "export --format chrome -o out run.ptt", "split --by process -o parts run.ptt",
            "merge -o merged.ptt run.ptt other.ptt", "compact -o small.ptt run.ptt",
            "export --format ctf -o plain.ptt run.ptt",
        ),
    ),
    "segment": Kind(make_segment, ("recover run.ptt", f"recover ptt-{os.getuid()}-1-0")),
}  # fmt: skip


def copy(source: str, place: str) -> None:
    """Copy a file, or link a large core file: no command writes to it."""
    if Path(source).stat().st_size > 1 << 20 and Path(source).name == "core":
        os.link(source, place)
    else:
        shutil.copy(source, place)


def sound_files(kind: str, ptt: Ptt) -> Path:
    """Return the directory of sound files; make new files after a build of the native files."""
    sound, stamp = PLACE / kind / "sound", PLACE / kind / "made"
    newest = max(path.stat().st_mtime for path in ptt.native.rglob("*") if path.is_file())
    if stamp.exists() and stamp.stat().st_mtime > newest:
        return sound
    shutil.rmtree(PLACE / kind, ignore_errors=True)
    sound.mkdir(parents=True)
    work = PLACE / kind / "work"
    work.mkdir()
    for name in KINDS[kind].make(work, ptt):
        work.rename(sound / name)
        work.mkdir()
    stamp.touch()
    return sound


# ------------------------------------------------------------------ commands


def run(command: Sequence[str], environment: dict[str, str], place: Path) -> Done:
    """Run a command in a fork, within limits."""
    paths = [place.with_name(name) for name in ("output", "errors")]
    streams = [os.open("/dev/null", os.O_RDONLY)]
    streams += [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) for path in paths]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        limits = (resource.RLIMIT_AS, ADDRESS_SPACE), (resource.RLIMIT_CPU, PROCESSOR_S + 5)
        for limit, most in (*limits, (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(limit, (most, most))
        fork_server._become({"args": command, "env": environment, "cwd": str(place)}, streams)
    end = os.pidfd_open(pid)
    hung = not select.select([end], [], [], HANG_S)[0]
    if hung:
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    for descriptor in (end, *streams):
        os.close(descriptor)
    texts = [read_some(path) for path in paths]
    return Done(
        os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss >> 10,
        hung, *texts,
    )  # fmt: skip


def read_some(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(OUTPUT_MAX + 1).decode("utf-8", "surrogateescape")


def complaints(done: Done, files_mb: int) -> Iterator[str]:
    """Yield complaints about the result of a command.

    The kernel counts pages of mapped files as memory, but can take such pages back.
    """
    lines = done.errors.splitlines()
    errors = sum(line.startswith("ptt: error: ") for line in lines)
    wrong = {
        "hangs": done.hung,
        f"ends with status {done.status}": done.status not in {0, 1, 2},
        f"takes {done.memory_mb} MB": done.memory_mb > MEMORY_MB + files_mb,
        f"takes {done.processor_s:.0f} s of processor time": done.processor_s > PROCESSOR_S,
        "prints more than anybody reads": len(done.output) > OUTPUT_MAX,
        "says what is not PTT's": any(not line.startswith("ptt: ") for line in lines),
        "does not say in one line why it failed": done.status == 2 and errors != 1,
        "prints what is no UTF-8": re.search("[\ud800-\udfff]", done.output + done.errors),
    }
    yield from (sentence for sentence, applies in wrong.items() if applies)
    for stream in (done.output, done.errors):
        found = OBEYED.search(stream)
        if found:
            yield f"prints {found[0]!r} after {stream[: found.start()][-30:]!r}"


def look_at(place: Path, ptt: Ptt) -> None:
    """Record which words of a core file `ptt hang` reads."""
    from nptltrace.hang.targets.core import Core

    seen: set[Field] = set()
    dumped = Core._dumped

    def noted(core: Core, address: int, size: int) -> bytes:
        number = bisect.bisect_right(core._segments, address, key=lambda s: s.start) - 1
        if number >= 0 and address - core._segments[number].start < core._segments[number].size:
            at = core._segments[number].offset + address - core._segments[number].start
            seen.update((at + n, 8) for n in range(0, min(size, 256), 8))
        return dumped(core, address, size)

    pid = os.fork()
    if pid == 0:
        Core._dumped = noted  # type: ignore[assignment,method-assign]
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        from nptltrace.cli import main

        main(["hang", "--stacks", str(place / "core")])
        (place / "looked-at").write_text(json.dumps(sorted(seen)), encoding="utf-8")
        os._exit(0)
    os.waitpid(pid, 0)


class Fuzzer:
    """Damaged files of one kind.

    Args:
        kind: The kind.
        ptt: The runner of `ptt` that makes sound files.
    """

    def __init__(self, kind: str, ptt: Ptt) -> None:
        self.commands, self.place = KINDS[kind].commands, PLACE / kind
        self.sound, self.work = sound_files(kind, ptt), PLACE / kind / "work"
        self.variants = sorted(path.name for path in self.sound.iterdir())
        os.environ.update(ptt.environment())
        self.environment = clean_environment(
            TMPDIR=str(self.work), HOME=str(self.work), XDG_CACHE_HOME=str(self.place / "cache")
        )
        fork_server._import_everything()
        for place in (self.sound / name for name in self.variants):
            if (place / "core").exists() and not (place / "looked-at").exists():
                shutil.rmtree(self.work, ignore_errors=True)
                shutil.copytree(place, self.work)
                look_at(self.work, ptt)
                shutil.copy(self.work / "looked-at", place)
        self.known: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.memory_mb, self.processor_s = 0, 0.0

    def input(self, number: int) -> list[str]:
        """Make an input in `work`; return the command for the input."""
        dice = random.Random(number)  # noqa: S311 -- no secrets
        variant = self.sound / dice.choice(self.variants)
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(variant, self.work, copy_function=copy)
        command = dice.choice(self.commands).split(" ")
        files = sorted(path for path in variant.rglob("*") if self.is_of(path, variant))
        for path in dice.sample(files, min(len(files), dice.choice((1, 1, 1, 2)))):
            damage(self.work / path.relative_to(variant), path, dice)
        return [word.replace("+", " ") for word in command if word]

    def is_of(self, path: Path, variant: Path) -> bool:
        """Return whether the fuzzer damages a file."""
        inner = path.relative_to(variant)
        if not path.is_file() or path.suffix == ".c" or path.name in {"looked-at", "words"}:
            return False
        if self.place.name == "trace":
            return inner.parts[0] == "run.ptt"
        if self.place.name == "elf":
            return inner.parts[0] not in {"run.ptt", "core"}
        return self.place.name != "core" or path.name in {"core", "program"}

    def attempt(self, number: int) -> None:
        """Make an input, run its command, and keep both if something is wrong."""
        command = self.input(number)
        done = run(command, self.environment, self.work)
        self.statuses[done.status] += 1
        self.memory_mb = max(self.memory_mb, done.memory_mb)
        self.processor_s = max(self.processor_s, done.processor_s)
        sizes = (path.stat().st_size for path in self.work.rglob("*") if path.is_file())
        wrong = [*complaints(done, sum(sizes) >> 20)]
        if not wrong:
            return
        where = ""
        if done.status == 70:
            self.input(number)
            traced = run([*command, "--debug"], self.environment, self.work).errors.splitlines()
            places = [line.strip() for line in traced if "/nptltrace/" in line]
            where = " ".join([*places[-1:], *traced[-1:]])
        signature = re.sub(r"\d+", "N", f"{command[0]} {wrong} {where or done.errors[-300:]}")
        self.known[signature] += 1
        if self.known[signature] > 1 or len(self.known) > FOUND_MAX:
            return
        print(f"fuzz: {self.place.name} {number}: ptt {' '.join(command)}: {'; '.join(wrong)}")
        print(f"    {where or done.errors[-300:]}", flush=True)
        self.input(number)
        kept = self.place / "found" / str(number)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.work, kept, ignore_dangling_symlinks=True)
        (kept / "command").write_text(
            f"{command}\n{done.errors}", encoding="utf-8", errors="replace"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--count", type=int, default=1 << 62, help="so many inputs at most")
    args = parser.parse_args()
    if args.kind in {"core", "elf"} and not has_cores():
        print(f"fuzz: {args.kind} skipped, the kernel writes no core files here")
        return 0
    seconds = float(os.environ.get("PTT_FUZZ_SECONDS", "5"))
    native = Path(os.environ.get("NPTLTRACE_NATIVE_DIR", ROOT / "build/dev/stage")).absolute()
    fuzzer = Fuzzer(args.kind, Ptt(native))
    end, number = time.monotonic() + seconds, args.first
    while time.monotonic() < end and number < args.first + args.count:
        fuzzer.attempt(number)
        number += 1
    statuses = ", ".join(
        f"{n} with status {status}" for status, n in sorted(fuzzer.statuses.items())
    )
    print(
        f"fuzz: {args.kind} for {seconds:g} s: {number - args.first} inputs from {args.first} on "
        f"({statuses}), at most {fuzzer.memory_mb} MB and {fuzzer.processor_s:.1f} s each"
    )
    for signature, count in fuzzer.known.most_common():
        print(f"    {count} times: {signature}")
    return 1 if fuzzer.known else 0


if __name__ == "__main__":
    sys.exit(main())
