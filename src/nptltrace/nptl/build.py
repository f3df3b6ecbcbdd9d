"""Builds the thread library: glibc with the distribution's configuration and trace points."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace import _paths
from nptltrace.errors import PttError
from nptltrace.nptl.edit import apply_edits, load_edits
from nptltrace.nptl.libc import installed, read_libc, same_interface
from nptltrace.nptl.source import fetch_tools, unpack
from nptltrace.nptl.store import directory_for, find, revision, write_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.nptl.libc import Libc
    from nptltrace.nptl.store import Built

__all__ = ["build", "prepare"]

# The approximate number of compiled files, for reports of progress.
_OBJECTS = 2350

# The options of Debian that change libc.so. If another distribution differs so much that ld.so and
# libc.so do not fit together, the build is refused at its end.
_CONFIGURE = (
    "--prefix=/usr",
    "--enable-stackguard-randomization",
    "--enable-stack-protector=strong",
    "--enable-multi-arch",
    "--enable-systemtap",  # the build finds our <sys/sdt.h>
    "--without-selinux",
    "--without-gd",
    "--disable-crypt",
    "--disable-werror",
    "--disable-build-nscd",
    "--disable-profile",
)


def _directories(libc: Libc) -> dict[str, str]:
    """Return the directories of the distribution, by the names of glibc's make variables."""
    slibdir = str(libc.path.parent).removeprefix("/usr")
    return {
        "slibdir": slibdir,
        "libdir": f"/usr{slibdir}",
        "rtlddir": "/lib64" if Path("/lib64/ld-linux-x86-64.so.2").exists() else "/lib",
        "bindir": "/usr/bin",
        "sbindir": "/usr/sbin",
        "rootsbindir": "/sbin",
        "datadir": "/usr/share",
        "complocaledir": "/usr/lib/locale",
        "sysconfdir": "/etc",
        "libexecdir": "/usr/lib",
        "includedir": "/usr/include",
        "vardbdir": "/var/lib/misc",
    }


class _Steps:
    """Runs the programs of a build and writes their output to a log."""

    def __init__(self, log: Path, env: dict[str, str], report: Callable[[str], None]) -> None:
        self._log = log
        self._env = env
        self._report = report

    def run(
        self, command: Sequence[str], cwd: Path, count: Callable[[], int] | None = None
    ) -> None:
        """Run a program to its end.

        Args:
            command: The program and its arguments.
            cwd: The working directory.
            count: Returns the number of files made so far, for reports of progress.

        Raises:
            PttError: The program failed.
        """
        with self._log.open("ab") as log:
            log.write(f"\n$ cd {cwd} && {' '.join(command)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                command, cwd=cwd, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                self._wait(process, count)
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if process.returncode:
            lines = self._log.read_text(errors="replace").splitlines()
            errors = (line for line in lines if " error: " in line or "*** " in line)
            reason = next(errors, lines[-1]).strip()
            raise PttError(f"{Path(command[0]).name} failed: {reason} (see {self._log})")

    def _wait(self, process: subprocess.Popen[bytes], count: Callable[[], int] | None) -> None:
        reported = 0
        while True:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                percent = min(99, 100 * count() // _OBJECTS) if count else 0
                if percent >= reported + 10:
                    reported = percent - percent % 10
                    self._report(f"building glibc: {reported} %")
            else:
                return


def prepare(tree: Path, objects: Path, libc: Libc, headers: Path) -> list[str]:
    """Edit a source tree, and write the variables for its makefiles.

    Args:
        tree: The source, edited in place.
        objects: The directory for the build, created here.
        libc: The installed C library.
        headers: The directory for the probe headers, created here.

    Returns:
        The trace points without a place in this version of glibc.

    Raises:
        EditError: A required trace point has no place.
    """
    shutil.copytree(_paths.glibc_dir() / "include", headers)
    shutil.copy(_paths.include_dir() / "nptl_trace_points.h", headers)
    missing = apply_edits(tree, load_edits(_paths.glibc_dir() / "edits.toml"))
    objects.mkdir()
    # Each trace point calls a function, and a call overwrites the red zone of x86-64.
    flags = "-pipe -O2" + " -mno-red-zone" * (platform.machine() == "x86_64")
    lines = [f"CFLAGS = {flags}", f"ASFLAGS = {flags}"]
    lines += [f"{name} = {value}" for name, value in _directories(libc).items()]
    # A `make install` by accident must not change the system.
    lines.append(f"install_root = {objects / 'root'}")
    (objects / "configparms").write_text("\n".join(lines) + "\n")
    return missing


def _make(steps: _Steps, tree: Path, objects: Path, jobs: int) -> None:
    """Build libc.so and ld.so, and only the files that both need."""
    make = ["make", "-r", f"-j{jobs}", "PARALLELMFLAGS=", "-C", str(tree), f"objdir={objects}"]
    # Half of all compiled files are for the static libraries: leave them out.
    shared = "object-suffixes=.os"

    def count() -> int:
        return sum(1 for _ in objects.glob("*/*.os"))

    steps.run([*make, shared, str(objects / "libc.so"), str(objects / "elf/ld.so")], objects, count)


def _loader_name(libc: Libc) -> str:
    """Return the file name of the system's ld.so."""
    directory = libc.path.parent
    paths = sorted({*directory.glob("ld-linux*.so.*"), *directory.glob("ld64*.so.*")})
    if not paths:
        raise PttError(f"no ld.so beside {libc.path}")
    return paths[0].name


def _try_out(prefix: Path, system: Libc, loader: str, *, stands_in: bool) -> None:
    """Check that a program runs with the built library."""
    program = [
        sys.executable,
        "-c",
        "import threading as t; x = t.Thread(target=print); x.start(); x.join()",
    ]
    env = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    if not stands_in:
        program = [str(prefix / "ld" / loader), "--library-path", str(prefix / "lib"), *program]
    elif not same_interface(prefix / "ld" / loader, system.path.parent / loader):
        raise PttError(
            "the built libc.so and the system's ld.so do not fit: their shared data differ"
        )
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines()
        raise PttError(
            f"programs do not run on the new library: {why[-1] if why else done.returncode}"
        )


def build(
    source: str, prefix: Path | None, report: Callable[[str], None], jobs: int | None = None
) -> tuple[Built, bool]:
    """Build the library, unless there is a finished build.

    Args:
        source: As for `nptltrace.nptl.source.unpack`.
        prefix: The directory of the build; None: the directory in which `ptt record` looks.
        report: Called with a line about each step.
        jobs: The number of parallel jobs of make; None: the number of processors.

    Returns:
        The build, and whether this call made it.

    Raises:
        PttError: The library cannot be built.
    """
    system = installed()
    directory = prefix.absolute() if prefix else directory_for(system)
    built = _finished(directory, source)
    if built is not None:
        return built, False
    if any(character in str(directory) for character in " :;\t\n"):
        raise PttError(
            f"{directory}: glibc's makefiles and LD_LIBRARY_PATH do not accept such a name"
        )
    if directory.exists() and find(directory) is None and any(directory.iterdir()):
        raise PttError(f"{directory} is not empty and holds no thread library")
    directory.parent.mkdir(parents=True, exist_ok=True)
    # O_NOFOLLOW: another user may have put a link there.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(directory.parent / f".{directory.name}.lock", flags, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for another build of the same library
        built = _finished(directory, source)
        if built is not None:
            return built, False
        jobs = jobs or len(os.sched_getaffinity(0))
        return _build(source, directory, system, report, jobs), True


def _finished(directory: Path, source: str) -> Built | None:
    """Return the build in a directory if it is of this source and of the current trace points."""
    built = find(directory)
    if built is None or built.revision != revision() or built.facts.get("source") != source:
        return None
    return built


def _build(
    source: str, directory: Path, system: Libc, report: Callable[[str], None], jobs: int
) -> Built:
    began = time.monotonic()
    work = directory.parent / f".{directory.name}.work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    report(f"getting the source of {system.package} ({source})")
    env = fetch_tools(work)
    tree, package, stands_in = unpack(source, system, work, env)
    if stands_in and package != system.package:
        report(f"the archive has {package} in the place of {system.package}")
    objects, headers, new = work / "objects", work / "headers", work / "new"
    missing = prepare(tree, objects, system, headers)
    env["CC"] = env.get("CC", "gcc") + " -Wl,--hash-style=both"
    env |= {"CPPFLAGS": f"-DENABLE_NPTL_TRACE=1 -I{headers}", "MAKEINFO": ":", "AUTOCONF": "false"}
    env["PYTHON_PROG"] = sys.executable
    steps = _Steps(work / "log", env, report)
    machine = subprocess.run(
        [env["CC"].split()[0], "-dumpmachine"], capture_output=True, text=True, check=True
    ).stdout.strip()
    report(f"building glibc with {jobs} jobs; this takes some minutes")
    steps.run(
        [
            str(tree / "configure"),
            f"--host={machine}",
            f"--build={machine}",
            f"--with-pkgversion={package}",
            *_CONFIGURE,
        ],
        objects,
    )
    _make(steps, tree, objects, jobs)
    loader = _loader_name(system)
    (new / "lib").mkdir(parents=True)
    (new / "ld").mkdir()
    shutil.copy(objects / "libc.so", new / "lib" / "libc.so.6")
    shutil.copy(objects / "elf" / "ld.so", new / "ld" / loader)
    _try_out(new, system, loader, stands_in=stands_in)
    libc = read_libc(new / "lib" / "libc.so.6")
    write_facts(
        new,
        {
            "package": libc.package,
            "version": libc.version,
            "runs_with": system.package if stands_in else libc.package,
            "revision": revision(),
            "source": source,
            "missing_points": missing,
            "seconds": round(time.monotonic() - began),
        },
    )
    if directory.exists():
        shutil.rmtree(directory)
    new.rename(directory)
    shutil.rmtree(work)
    built = find(directory)
    if built is None:
        raise PttError(f"{directory}: the build is not there")
    return built
