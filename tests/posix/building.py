"""Builds programs that use <trace.h> as users do, and communicates with running programs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["GROUPS", "SUITE", "Builder", "Conversation", "run"]

SUITE = ROOT / "tests" / "posix"
# A program of the suite for each group of functions.
GROUPS = (
    "header", "attributes", "sets", "names", "life",
    "event", "reading", "policies", "log", "log_files", "process",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Builder:
    """Compiles C programs against libposixtrace.

    Attributes:
        native: The stage.
        directory: Directory of the programs.
    """

    native: Path
    directory: Path

    def __call__(
        self, name: str, sources: Sequence[Path], *flags: str, static: bool = False
    ) -> Path:
        """Compile one program and return its path."""
        output = self.directory / name
        lib = self.native / "lib"
        link = (
            [str(lib / "libposixtrace.a")]
            if static
            else [f"-L{lib}", "-lposixtrace", f"-Wl,-rpath,{lib}"]
        )
        command = ["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
        command += [*flags, f"-I{self.native / 'include'}", *map(str, sources), *link]
        done = subprocess.run(
            [*command, "-o", output], capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return output


def run(
    *command: str | os.PathLike[str],
    stdin: str = "",
    env: Mapping[str, str | None] | None = None,
    status: int | None = 0,
    timeout: float = 250,
) -> str:
    """Run a program, insist on its exit status, and return what it printed."""
    done = subprocess.run(
        list(map(str, command)), input=stdin, env=clean_environment(**(env or {})),
        capture_output=True, encoding="utf-8", errors="replace", timeout=timeout, check=False,
    )  # fmt: skip
    if status is not None:
        assert done.returncode == status, (done.stdout + done.stderr)[-6000:]
    return done.stdout


class Conversation:
    """A program that answers each line of input with a line of output."""

    def __init__(self, *command: str | os.PathLike[str] | int, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            list(map(str, command)), env=env, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def send(self, line: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def say(self, line: str = "") -> str:
        self.send(line)
        return self.hear()

    def end(self) -> None:
        """Close the program's input."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.stdin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.process.communicate(timeout=200)
        finally:
            self.process.kill()
            self.process.wait()
        assert exception[0] is not None or self.process.returncode == 0
