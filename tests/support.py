"""The typed runners that the fixtures give to tests, importable as `tests.support`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "ROOT", "Compiler", "Ptt", "Recorder", "Result", "clean_environment", "hooked_functions",
    "small_file_system",
]  # fmt: skip

ROOT = Path(__file__).resolve().parent.parent
# `check.sh --all` also runs tests that take minutes and seldom find anything.
ALL = os.environ.get("PTT_TESTS") == "all"
PROGRAMS = ROOT / "tests" / "programs"

Result = subprocess.CompletedProcess[str]

# A tracer of the surrounding session would end up in every program a test starts.
_FOREIGN = (
    "LD_PRELOAD", "PTHREAD_NPTL_TRACE", "PTT_BLACK_BOX", "NO_COLOR", "FORCE_COLOR",
    "PYTHONWARNINGS",
)  # fmt: skip


def clean_environment(**more: str | None) -> dict[str, str]:
    """Return the environment without variables that would change results, with `more` set.

    None removes a variable.
    """
    merged: dict[str, str | None] = {**os.environ, **dict.fromkeys(_FOREIGN), "COLUMNS": "100"}
    merged["XDG_CONFIG_HOME"] = "/nonexistent"  # settings of the user
    merged.update(more)
    return {name: value for name, value in merged.items() if value is not None}


def hooked_functions() -> set[str]:
    """Return the functions that the tracer hooks with the installed C library."""
    real = ROOT / "native" / "tracer" / "real"
    text = "".join(path.read_text(encoding="utf-8") for path in real.glob("*.def"))
    have = tuple(map(int, re.findall(r"\d+", os.confstr("CS_GNU_LIBC_VERSION") or "")))
    since = re.compile(
        r"^#if __GLIBC_PREREQ\((\d+), (\d+)\)$(.*?)^#endif$", re.MULTILINE | re.DOTALL
    )
    text = since.sub(lambda m: m[3] if have >= (int(m[1]), int(m[2])) else "", text)
    return set(re.findall(r"^(?:HOOK|VERSIONED)\([^,]+, (\w+),", text, re.MULTILINE))


@contextmanager
def small_file_system(place: Path, size: str) -> Iterator[Path]:
    """Mount a file system of that size in a new directory; skip the test if this is impossible."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system takes root to mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@dataclass(frozen=True, slots=True)
class Ptt:
    """Runs `ptt` from the source tree against the staged native files.

    Attributes:
        native: The directory of the native files.
    """

    native: Path

    def environment(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Return the environment in which `ptt` runs."""
        paths = {"PYTHONPATH": str(ROOT / "src"), "NPTLTRACE_NATIVE_DIR": str(self.native)}
        return clean_environment(**(paths | dict(env or {})))

    def command(self, *args: str | os.PathLike[str]) -> list[str]:
        """Return the argument vector of `ptt ARGS`."""
        return [sys.executable, "-m", "nptltrace", *(os.fspath(arg) for arg in args)]

    def __call__(
        self,
        *args: str | os.PathLike[str],
        status: int | None = 0,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
        timeout: float = 120,
        fork: bool = True,
    ) -> Result:
        """Run `ptt ARGS` and return its result.

        Args:
            args: The command and its arguments.
            status: The exit status to insist on; None takes any.
            env: Variables to set, or to remove with None.
            cwd: The directory to run in.
            stdin: Text for standard input, which is empty otherwise.
            timeout: Seconds after which the test fails.
            fork: Whether the command may run as a fork of a process that has imported the package.
                Pass False if a test measures the start of `ptt`, its processor time or its memory.
        """
        command, environment = self.command(*args), self.environment(env)
        server = _fork_server(self)
        if fork and server.serves(environment, stdin or ""):
            place = os.fspath(cwd or Path.cwd())
            status_of = server.run(command[3:], environment, place, stdin or "", timeout)
            result = subprocess.CompletedProcess(command, *status_of)
        else:
            result = subprocess.run(
                command,
                env=environment,
                cwd=cwd,
                input=stdin or "",
                capture_output=True,
                encoding="utf-8",
                timeout=timeout,
                check=False,
            )
        if status is not None and result.returncode != status:
            raise AssertionError(
                f"{' '.join(command[2:])}: exit status {result.returncode}, "
                f"not {status}\nstdout:\n{result.stdout[-4000:]}\nstderr:\n{result.stderr[-4000:]}"
            )
        return result


@cache
def _fork_server(ptt: Ptt) -> ForkServer:
    return ForkServer(ptt.environment())


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles C programs with gcc, for the tests to trace.

    Attributes:
        directory: The directory for the programs.
        include: The directory of PTT's headers; headers of the test programs are found too.
    """

    directory: Path
    include: Path

    def __call__(
        self, source: str | Path, *flags: str, name: str | None = None, pthread: bool = True
    ) -> Path:
        """Compile one program and return its path.

        Args:
            source: Text of a C program, or the path of one.
            flags: More flags; they follow the source, so that `-lm` works.
            name: File name of the result; otherwise the name of the source file, or `program`.
            pthread: Whether to compile with `-pthread`.
        """
        if isinstance(source, Path):
            path, name = source, name or source.stem
        else:
            name = name or "program"
            path = self.directory / f"{name}.c"
            path.write_text(source)
        output = self.directory / name
        command = ["gcc", "-std=gnu11", "-O1", "-g", "-fno-omit-frame-pointer", "-Wall"]
        command += ["-pthread"] if pthread else []
        command += [f"-I{self.include}", f"-I{PROGRAMS}", str(path), "-o", str(output), *flags]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        return output


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records programs into fresh trace directories.

    Attributes:
        ptt: The runner to record with.
        directory: The directory for the traces.
    """

    ptt: Ptt
    directory: Path

    def __call__(
        self,
        *command: str | os.PathLike[str],
        options: tuple[str, ...] = (),
        status: int | None = 0,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 120,
    ) -> Path:
        """Record COMMAND and return the trace directory.

        Args:
            command: The program and its arguments.
            options: Options of `ptt record`.
            status: The exit status to insist on; None takes any.
            env: Variables to set, or to remove with None.
            timeout: Seconds after which the test fails.
        """
        trace = self.directory / f"run-{len(list(self.directory.iterdir()))}.ptt"
        self.ptt(
            "record", "-o", trace, *options, "--", *command, status=status, env=env, timeout=timeout
        )
        return trace
