"""The programs of the corpus: their heads, the expected findings, builds and runs."""

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
# These kinds depend on time and on the load of the machine; no program here is about them.
OF_TIME = {"convoy", "holder-preempted", "sleeping-holder"}
KINDS = tuple(name for name, kind in kinds().items() if kind.group and name not in OF_TIME)
NOT_HERE = 77
"""Exit status of a program that cannot do its task on this machine."""

_TIMES_AT_REST = 4
_LOOK_AGAIN_S = 0.02
_TICKS_OF_SPINNING = 5
_COMPILERS = {".c": ["gcc", "-std=gnu11"], ".cc": ["g++", "-std=c++20"]}
# A tail call would leave no trace of its line.
_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
          "-Wall", "-Wextra", "-Werror"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expected:
    """The bug that is planted in a program.

    Attributes:
        kinds: Kinds of the finding; one, unless two kinds describe the bug.
        threads: Names of threads that the finding must name.
        objects: Names of objects that the finding must name.
        lines: Source lines that must be among the sites of the finding.
    """

    kinds: tuple[str, ...]
    threads: tuple[str, ...]
    objects: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, as its head describes it.

    Attributes:
        source: The file of the program.
        purpose: A sentence that says what it does.
        expected: The planted bug; None for a correct program.
        also: Other kinds that `ptt check` may find.
        last_words: Number of threads that announce an endless wait; 0 if the program ends.
        spins: Whether one of these threads spins instead of sleeping.
        status: The exit status, as a shell reports it.
        options: Options of `ptt check`.
        module: A library that the program loads.
        recording: Options of `ptt record` that the bug needs to be visible.
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
        """The name, such as `deadlock/tellers`."""
        return str(self.source.relative_to(self.source.parent.parent).with_suffix(""))

    @property
    def compiler(self) -> str:
        """The compiler command of the program."""
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
        # A long hold is the fault of a slow machine, unless a program is about long holds.
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
    """Return the programs with a bug, sorted by kind and name."""
    return [
        _program(path) for kind in KINDS for path in sorted((CORPUS / "planted" / kind).iterdir())
    ]


def correct() -> list[Program]:
    """Return the programs without a bug, sorted by name."""
    return [_program(path) for path in sorted((CORPUS / "correct").iterdir())]


class Build:
    """Compiles programs in advance, each once.

    Args:
        directory: The directory for the compiled programs.
        programs: The programs to compile, in this order; duplicates are allowed.
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
        """Cancel the compilations that have not started yet."""
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
    """The result of a run.

    Attributes:
        status: The exit status, as a shell reports it.
        printed: All output of the program.
        threads: Kernel ids of threads, by their names in the program.
        objects: Addresses of objects as `0x…`, by their names in the program.
        late: Whether the run took too long and was killed.
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
    """Run a program; if it is meant to hang, end it once it hangs.

    Args:
        program: The program.
        command: The command that runs it, such as `ptt record … -- PATH`.
        env: The environment.
        end_with: The signal that ends a program that hangs.
        patience_s: Time in seconds; after it, everything is killed.
        at_rest: Called with the ids of the hung processes before they are ended.
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
                with suppress(OSError):  # the run took too long and was killed
                    for hung in hang:
                        os.kill(hung, end_with)
                hang.clear()
        status = process.wait()
        limit.cancel()
    status = status if status >= 0 else 128 - status
    return replace(came, status=status, printed="".join(printed), late=late.is_set())


def _await_rest(pids: Collection[int], *, spins: bool) -> None:
    """Wait until all threads of these processes are at rest, or spin as they should."""
    before, same = "", 0
    with suppress(OSError):  # the run took too long and was killed
        while same < _TIMES_AT_REST:
            now = "".join(_threads(pid, spins=spins) for pid in sorted(pids))
            same = same + 1 if now == before and not set("RD") & set(now) else 0
            before = now
            time.sleep(_LOOK_AGAIN_S)


def _threads(pid: int, *, spins: bool) -> str:
    """Return states and switch counts of all threads of a process, as a text to compare.

    A spinning thread is at rest after it has spun for a while.
    """
    states = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        if spins:
            ticks = int((task / "stat").read_text().rpartition(")")[2].split()[11])
            states.append("spins" if ticks >= _TICKS_OF_SPINNING else "R")
            continue
        status = (task / "status").read_text()
        state, switches = re.search(r"State:\s+(\w)", status), re.search(r"\nvol.*?(\d+)", status)
        assert state
        assert switches
        states.append(f"{state[1]}{switches[1]}")
    return " ".join(states)
