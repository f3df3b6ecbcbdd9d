"""Ways to run a program: untraced, beside the floor, with PTT at a level. Peers are in peers.py."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.common import HERE, PTT, ROOT, compile_c, environment

Wrap = Callable[[Sequence[str]], list[str]]


@dataclass(slots=True)
class Run:
    """How to start programs while a way is on.

    Attributes:
        wrap: Makes the command to start of a program's own.
        env: Variables to add to the environment.
        lost: Events lost; known when the way is off again, None where it does not say.
        events: Events recorded; likewise.
    """

    wrap: Wrap = list
    env: dict[str, str] = field(default_factory=dict)
    lost: int | None = None
    events: int | None = None

    def call(
        self, command: Sequence[str], *, check: bool = True, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return what it printed."""
        return subprocess.run(
            self.wrap(command), env={**os.environ, **self.env}, check=check, timeout=timeout,
            capture_output=True, text=True, errors="replace",
        )  # fmt: skip


class Way:
    """A way to run a program.

    Attributes:
        name: What tables call it.
        about: How it is set up, for whoever wants to do the same.
        flags: What its programs are compiled with besides.
        domains: What it sees of the thread library, None for all that is measured.
    """

    name = "untraced"
    about = ""
    flags: tuple[str, ...] = ()
    domains: frozenset[str] | None = None

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """Set it up for one run, with an empty directory for what it writes."""
        del work
        yield Run()


class Floor(Way):
    """A time stamp and a store an event, and nothing else.

    Args:
        library: The compiled floor.c.
    """

    name = "floor"
    about = "rdtsc and a store of 32 bytes an event, nothing drained"
    domains = frozenset({"mutex", "rwlock", "sem", "gmutex"})

    def __init__(self, library: Path) -> None:
        self._library = library

    @classmethod
    def build(cls, work: Path) -> Floor:
        """Compile it."""
        return cls(compile_c(HERE / "hotpath/floor.c", work / "floor.so", "-shared", "-fPIC"))

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        yield Run(env={"LD_PRELOAD": str(self._library)})


class Preloaded(Way):
    """PTT's library without a handler: what a program pays in which nothing is recorded."""

    name = "PTT, no handler"
    about = "libnptltrace.so preloaded"

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        stage = Path(environment()["NPTLTRACE_NATIVE_DIR"])
        yield Run(env={"LD_PRELOAD": str(stage / "lib/libnptltrace.so")})


class Ptt(Way):
    """`ptt record` at a level.

    Args:
        level: As its option says.
        options: More options of it.
        name: What tables call it, unless it is the level that matters.
        tree: The checkout, built there, that is measured.
    """

    def __init__(self, level: str, *options: str, name: str = "", tree: Path = ROOT) -> None:
        self._options = ["-l", level, *options]
        self._tree = tree
        self.name = name or f"PTT, level {level}"
        self.about = f"ptt record {' '.join(self._options)}"

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        trace = work / "trace"
        record = [*PTT, "record", "--force", *self._options, "-o", str(trace), "--"]
        run = Run(wrap=lambda command: [*record, *command], env=environment(self._tree))
        yield run
        said = json.loads((trace / "info" / "session.json").read_text(encoding="utf-8"))
        run.lost = sum(said["lost"].values())
        run.events = said["events"]


def ptt_levels(*levels: str) -> list[Way]:
    """Return PTT at several levels."""
    return [Ptt(level) for level in levels]
