"""The programs of the corpus: what is expected of each, how they are built, run and recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING

from nptltrace.findings.kind import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future

__all__ = ["KINDS", "OF_TIME", "Build", "Came", "Expected", "Program", "correct", "planted", "run"]

CORPUS = Path(__file__).resolve().parent
# They are a matter of time and of the machine's load, which no program here is about.
OF_TIME = {"convoy", "holder-preempted", "sleeping-holder"}
KINDS = tuple(name for name, kind in kinds().items() if kind.group and name not in OF_TIME)
NOT_HERE = 77
"""Exit status of a program that cannot do here what it is for."""

_TIMES_AT_REST = 4
_LOOK_AGAIN_S = 0.02
_TICKS_OF_SPINNING = 5
_COMPILERS = {".c": ["gcc", "-std=gnu11"], ".cc": ["g++", "-std=c++20"]}
# A tail call would leave no trace of the line that made it.
_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
          "-Wall", "-Wextra", "-Werror"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expected:
    """What is planted in a program.

    Attributes:
        kinds: How it may be called; one name, unless it can be seen in two ways.
        threads: Names of threads that must be named in the finding.
        objects: Names of objects that must.
        lines: Source lines that must be among its sites.
    """

    kinds: tuple[str, ...]
    threads: tuple[str, ...]
    objects: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, as its head describes it.

    Attributes:
        source: Its file.
        purpose: What it does: one sentence.
        expected: What is planted in it; None for a correct one.
        also: Kinds that may be found besides.
        last_words: How many threads say that they go to wait for ever; 0 for one that ends.
        spins: Whether one of these does so without sleep.
        status: The exit status, as a shell says it.
        options: Of `ptt check`.
        module: A library that it loads.
        recording: Options of `ptt record` that it takes to see what is planted.
    """

    source: Path
    purpose: str
    expected: Expected | None
    also: tuple[str, ...] = ()
    last_words: int = 0
    spins: bool = False
    status: int = 0
    options: tuple[str, ...] = ()
    module: str = ""
    recording: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How it is called, as `deadlock/tellers`."""
        return str(self.source.relative_to(self.source.parent.parent).with_suffix(""))

    @property
    def compiler(self) -> str:
        """What compiles it."""
        return _COMPILERS[self.source.suffix][0]


def _program(source: Path) -> Program:
    lines = source.read_text(encoding="utf-8").splitlines()
    head: dict[str, str] = {}
    for line in lines:
        if match := re.fullmatch(r"/\* ([a-z]+): ?(.*) \*/", line):
            head[match[1]] = match[2]
    purpose = re.fullmatch(rf"/\* {re.escape(source.name)} - (.*) \*/", lines[1])
    assert purpose, f"{source}: the second line says what it does"
    how, words = head.get("run", "ends 0").split()
    return Program(
        source,
        purpose[1],
        _expected(head["expect"], lines) if "expect" in head else None,
        also=tuple(head.get("also", "").split()),
        last_words=int(words),
        spins=how == "spins",
        status=int(head.get("status", 0 if how == "ends" else 128 + signal.SIGKILL)),
        # What is slow here is the machine, unless a program is about that.
        options=tuple(head.get("options", "--long-hold 1h").split()),
        module=head.get("with", ""),
        recording=tuple(head.get("record", "").split()),
    )


def _expected(text: str, lines: Sequence[str]) -> Expected:
    kinds, *pairs = text.split()
    given = dict(pair.split("=") for pair in pairs)
    marks = {
        match[1]: number
        for number, line in enumerate(lines, 1)
        if (match := re.search(r"/\* SITE ([\w-]+) \*/", line))
    }

    def names(key: str) -> tuple[str, ...]:
        return tuple(given[key].split(",")) if key in given else ()

    return Expected(
        tuple(kinds.split("|")),
        names("threads"),
        names("objects"),
        tuple(marks[site] for site in names("sites")),
    )


def planted() -> list[Program]:
    """Return the programs with a bug, by kind and name."""
    return [
        _program(path) for kind in KINDS for path in sorted((CORPUS / "planted" / kind).iterdir())
    ]


def correct() -> list[Program]:
    """Return the programs without one, by name."""
    return [_program(path) for path in sorted((CORPUS / "correct").iterdir())]


class Build:
    """Compiles programs, each once, ahead of who asks for them.

    Args:
        directory: Where they go.
        programs: Those that will be wanted, in this order; some may be named twice.
    """

    def __init__(self, directory: Path, programs: Iterable[Program]) -> None:
        """Start to compile."""
        self._directory = directory
        self._pool = ThreadPoolExecutor(max_workers=os.cpu_count())
        self._made: dict[Path, Future[Path]] = {
            program.source: self._pool.submit(self._compile, program)
            for program in dict.fromkeys(programs)
        }

    def __call__(self, program: Program) -> Path:
        """Return the path of a program."""
        return self._made[program.source].result()

    def close(self) -> None:
        """Give up what has not been compiled yet."""
        self._pool.shutdown(cancel_futures=True)

    def _compile(self, program: Program) -> Path:
        output = self._directory / program.name.replace("/", "-")
        if program.module:
            module = CORPUS / "with" / program.module
            self._gcc(module, Path(f"{output}-module.so"), "-shared", "-fPIC")
        self._gcc(program.source, output, f"-I{CORPUS}")
        return output

    @staticmethod
    def _gcc(source: Path, output: Path, *flags: str) -> None:
        command = [*_COMPILERS[source.suffix], *_FLAGS, *flags, str(source), "-o", str(output)]
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=300, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a run.

    Attributes:
        status: The exit status, as a shell says it.
        printed: All that it printed.
        threads: Kernel ids of threads, by the names that the program gave them.
        objects: Addresses of objects, likewise, as `0x…`.
        late: Whether it was killed because it took too long.
    """

    status: int
    printed: str
    threads: dict[str, int]
    objects: dict[str, str]
    late: bool = False


def run(
    program: Program,
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    end_with: signal.Signals = signal.SIGKILL,
    patience_s: float = 240.0,
    at_rest: Callable[[Collection[int]], None] = lambda _: None,
) -> Came:
    """Run a program; once it hangs for ever, if it is to, end it.

    Args:
        program: The program.
        command: What runs it, as `ptt record … -- PATH`.
        env: The environment.
        end_with: What ends a program that hangs.
        patience_s: Seconds after which everything is killed.
        at_rest: Called with the processes that hang, before they are ended.
    """
    came = Came(0, "", {}, {})
    printed, hang = [], []
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        late = Event()

        def give_up() -> None:
            late.set()
            os.killpg(process.pid, signal.SIGKILL)

        limit = Timer(patience_s, give_up)
        limit.start()
        assert process.stdout
        for line in process.stdout:
            printed.append(line)
            match line.split():
                case ["thread", name, tid]:
                    came.threads[name] = int(tid)
                case ["object", name, address]:
                    came.objects[name] = address
                case ["for", "ever", pid]:
                    hang.append(int(pid))
            if hang and len(hang) == program.last_words:
                _await_rest(set(hang), spins=program.spins)
                at_rest(set(hang))
                with suppress(OSError):  # it has been killed for taking too long
                    for one in hang:
                        os.kill(one, end_with)
                hang.clear()
        status = process.wait()
        limit.cancel()
    status = status if status >= 0 else 128 - status
    return replace(came, status=status, printed="".join(printed), late=late.is_set())


def _await_rest(pids: Collection[int], *, spins: bool) -> None:
    """Return once all threads of processes are at rest, or spin as they should."""
    before, same = "", 0
    with suppress(OSError):  # it has been killed for taking too long
        while same < _TIMES_AT_REST:
            now = "".join(_threads(pid, spins=spins) for pid in sorted(pids))
            same = same + 1 if now == before and not set("RD") & set(now) else 0
            before = now
            time.sleep(_LOOK_AGAIN_S)


def _threads(pid: int, *, spins: bool) -> str:
    """Return states and counts of switches of all threads of a process, to be compared.

    Threads that spin are at rest when they have done so for a while.
    """
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        if spins:
            ticks = int((task / "stat").read_text().rpartition(")")[2].split()[11])
            found.append("spins" if ticks >= _TICKS_OF_SPINNING else "R")
            continue
        status = (task / "status").read_text()
        state, switches = re.search(r"State:\s+(\w)", status), re.search(r"\nvol.*?(\d+)", status)
        assert state
        assert switches
        found.append(f"{state[1]}{switches[1]}")
    return " ".join(found)
