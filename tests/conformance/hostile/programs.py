"""Hostile programs: compiled once each, run untraced and traced, and compared.

With `PTT_STRESS_BUILD`, under a sanitizer (see `tests.sanitized`) and with `--stacks all`. Programs
that the sanitizer does not even run untraced are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests import sanitized
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support import Ptt

__all__ = ["Came", "Hostile"]

_SOURCES = ROOT / "tests" / "conformance" / "hostile"
_SUMMARY = re.compile(r"ptt: recorded (\d+) events? from .* \((\d+) lost, .*\)")
_REPORT = re.compile(r"^(?:==\d+==|.*(?:Sanitizer|runtime error)).*$", re.MULTILINE)
# Dispositions of signals belong to the programs.
_SANITIZER_OPTIONS = {
    name: f"{value}:handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0"
    for name, value in (sanitized.OPTIONS if sanitized.BUILD else {}).items()
}
_COMPILERS = {".c": ["gcc", "-std=gnu11"], ".cc": ["g++", "-std=c++20"], ".rs": ["rustc"]}


@dataclass(frozen=True, slots=True)
class Came:
    """Result of one run.

    Attributes:
        out: Standard output.
        err: Standard error, without the last line of `ptt record`.
        status: The exit status, as a shell reports it.
        lost: Number of lost events.
    """

    out: str
    err: str
    status: int
    lost: int = 0


@dataclass(slots=True)
class Hostile:
    """Compiles and runs hostile programs.

    Attributes:
        ptt: Runner of `ptt`.
        directory: Directory of programs and traces.
    """

    ptt: Ptt
    directory: Path
    _known: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def program(self, source: str, *flags: str) -> Path:
        """Return the path of a program, compiled with more flags; skip without a compiler."""
        key = (source, *flags)
        if key not in self._known:
            self._known[key] = self._compile(_SOURCES / source, flags)
        return self._known[key]

    def _compile(self, source: Path, flags: tuple[str, ...]) -> Path:
        compiler = _COMPILERS[source.suffix]
        if shutil.which(compiler[0]) is None:
            pytest.skip(f"{compiler[0]}: not installed")
        output = self.directory / f"{source.stem}-{len(self._known)}"
        options = ["-O"] if source.suffix == ".rs" else ["-O1", "-g", "-Wall", "-pthread"]
        if source.suffix != ".rs":
            options += sanitized.flags()
        done = subprocess.run(
            [*compiler, *options, source, "-o", output, *flags],
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return output

    def plain(self, *command: str | Path, env: Mapping[str, str] | None = None) -> Came:
        """Run COMMAND untraced."""
        more = {**_SANITIZER_OPTIONS, **(env or {})}
        words = self._words(command)
        try:
            done = self._run(words, clean_environment(**more), 60 if sanitized.BUILD else 280)
        except subprocess.TimeoutExpired:
            if sanitized.BUILD:
                pytest.skip("untraced, the program does not end")
            raise
        if sanitized.BUILD and (found := _REPORT.search(done.stderr)):
            pytest.skip(f"untraced: {found[0]}")
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Came(done.stdout, done.stderr, status)

    def traced(
        self,
        *command: str | Path,
        options: tuple[str, ...] = ("-l", "3"),
        env: Mapping[str, str] | None = None,
        patience_s: float = 280,
    ) -> Came:
        """Run COMMAND traced."""
        if sanitized.BUILD:
            options = (*options, "--stacks", "all")
        recorder = self.ptt.command("record", "--force", "-o", self.trace, *options, "--")
        more = {**_SANITIZER_OPTIONS, **(env or {})}
        done = self._run([*recorder, *self._words(command)], self.ptt.environment(more), patience_s)
        assert not sanitized.BUILD or not _REPORT.search(done.stderr), done.stderr[-8000:]
        message = [
            line
            for line in done.stderr.splitlines(keepends=True)
            if not line.startswith("ptt: the recording of ")
        ]
        match = _SUMMARY.fullmatch(message[-1].rstrip()) if message else None
        assert match, done.stderr[-4000:]
        return Came(done.stdout, "".join(message[:-1]), done.returncode, int(match[2]))

    def same(
        self,
        *command: str | Path,
        options: tuple[str, ...] = ("-l", "3"),
        env: Mapping[str, str] | None = None,
    ) -> Came:
        """Run COMMAND untraced and traced; insist on equal results and no lost event."""
        was = self.plain(*command, env=env)
        now = self.traced(*command, options=options, env=env)
        assert (now.out, now.err, now.status) == (was.out, was.err, was.status)
        assert now.lost == 0
        return now

    def _words(self, command: tuple[str | Path, ...]) -> list[str]:
        """Return a command, with the sanitizer's runtime preloaded if the program lacks it."""
        words = [os.fspath(word) for word in command]
        compiled = any(
            os.fspath(path) in words and not source[0].endswith(".rs")
            for source, path in self._known.items()
        )
        runtime = sanitized.runtime()
        if not compiled and runtime and "tsan" in runtime:
            pytest.skip("ThreadSanitizer cannot see how the program synchronizes")
        return words if compiled or runtime is None else ["env", f"LD_PRELOAD={runtime}", *words]

    @property
    def trace(self) -> Path:
        """The trace of the last traced run."""
        return self.directory / "run.ptt"

    def facts(self) -> dict[str, Any]:
        """Return the facts of the last trace about its recording."""
        text = (self.trace / "info" / "session.json").read_text(encoding="utf-8")
        facts: dict[str, Any] = json.loads(text)
        return facts

    @staticmethod
    def _run(
        command: list[str], env: dict[str, str], patience_s: float = 280
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*sanitized.still(), *command],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors="replace", timeout=patience_s, check=False,
        )  # fmt: skip
