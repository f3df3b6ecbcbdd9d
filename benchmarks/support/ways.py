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
        wrap: Makes the full command from the command of a program.
        env: Variables to add to the environment.
        lost: Lost events; known when the way is off again, None if it does not tell.
        events: Recorded events; known likewise.
    """

    wrap: Wrap = list
    env: dict[str, str] = field(default_factory=dict)
    lost: int | None = None
    events: int | None = None

    def call(
        self, command: Sequence[str], *, check: bool = True, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return its output."""
        return subprocess.run(
            self.wrap(command), env={**os.environ, **self.env}, check=check, timeout=timeout,
            capture_output=True, text=True, errors="replace",
        )  # fmt: skip


class Way:
    """A way to run a program.

    Attributes:
        name: Its name in tables.
        about: Its settings, so that you can repeat the measurement.
        flags: More compiler flags for the programs.
        domains: The kinds of objects that it sees; None for all measured kinds.
    """

    name = "untraced"
    about = ""
    flags: tuple[str, ...] = ()
    domains: frozenset[str] | None = None

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """Set the way up for a run, with an empty directory for its output."""
        del work
        yield Run()


class Floor(Way):
    """A time stamp and a store for each event, and nothing else.

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
        """Compile the library."""
        return cls(compile_c(HERE / "hotpath/floor.c", work / "floor.so", "-shared", "-fPIC"))

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        yield Run(env={"LD_PRELOAD": str(self._library)})


class Preloaded(Way):
    """PTT's library without a handler: the cost of the library if it records nothing."""

    name = "PTT, no handler"
    about = "libnptltrace.so preloaded"

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        stage = Path(environment()["NPTLTRACE_NATIVE_DIR"])
        yield Run(env={"LD_PRELOAD": str(stage / "lib/libnptltrace.so")})


class BlackBox(Way):
    """A black box, which no recorder drains."""

    name = "PTT, black box"
    about = "PTT_BLACK_BOX=1 with libnptltrace.so preloaded"

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        stage = Path(environment()["NPTLTRACE_NATIVE_DIR"])
        yield Run(env={"LD_PRELOAD": str(stage / "lib/libnptltrace.so"), "PTT_BLACK_BOX": "1"})


class Ptt(Way):
    """`ptt record` at a level.

    Args:
        level: The level of detail, as for `--level`.
        options: More options of `ptt record`.
        name: Its name in tables; empty names it by the level.
        tree: The built checkout to measure.
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
        session = json.loads((trace / "info" / "session.json").read_text(encoding="utf-8"))
        run.lost = sum(session["lost"].values())
        run.events = session["events"]


def ptt_levels(*levels: str) -> list[Way]:
    """Return PTT at several levels."""
    return [Ptt(level) for level in levels]
