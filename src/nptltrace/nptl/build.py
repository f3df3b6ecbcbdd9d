"""Builds the thread library: glibc as the distribution configures it, with trace points."""

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
from nptltrace.nptl.store import find, place_of, revision, write_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.nptl.libc import Libc
    from nptltrace.nptl.store import Built

__all__ = ["build", "prepare"]

_OBJECTS = 2350
"""About as many files are compiled; only the progress is reckoned with it."""

# What Debian configures, as far as it shows in libc.so; where another distribution differs so much
# that ld.so and libc.so do not fit, the build is refused at its end.
_CONFIGURE = (
    "--prefix=/usr",
    "--enable-stackguard-randomization",
    "--enable-stack-protector=strong",
    "--enable-multi-arch",
    "--enable-systemtap",  # whose <sys/sdt.h> is ours
    "--without-selinux",
    "--without-gd",
    "--disable-crypt",
    "--disable-werror",
    "--disable-build-nscd",
    "--disable-profile",
)


def _directories(libc: Libc) -> dict[str, str]:
    """Return where the distribution keeps things, as glibc's makefiles call it."""
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


def _flags() -> list[str]:
    """Return the compiler's flags; x86-64 has a call behind each point that knows no red zone."""
    return ["-pipe", "-O2", *(["-mno-red-zone"] if platform.machine() == "x86_64" else [])]


class _Steps:
    """Runs the programs of a build and writes what they say into a log."""

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
            cwd: Where.
            count: How many files it has made so far, if that shows the progress.

        Raises:
            PttError: It failed.
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
            wrong = next(
                (line for line in lines if " error: " in line or "*** " in line), lines[-1]
            )
            raise PttError(f"{Path(command[0]).name} failed: {wrong.strip()} (see {self._log})")

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
                continue
            return


def prepare(tree: Path, objects: Path, libc: Libc, headers: Path) -> list[str]:
    """Edit a source tree, and write what its makefiles are to know.

    Args:
        tree: The source, which is edited in place.
        objects: The directory it will be built in.
        libc: The installed C library.
        headers: Where to put the probe headers.

    Returns:
        The trace points that this version of glibc has no place for.
    """
    shutil.copytree(_paths.glibc_dir() / "include", headers)
    shutil.copy(_paths.include_dir() / "nptl_trace_points.h", headers)
    missing = apply_edits(tree, load_edits(_paths.glibc_dir() / "edits.toml"))
    objects.mkdir()
    lines = [f"CFLAGS = {' '.join(_flags())}", f"ASFLAGS = {' '.join(_flags())}"]
    lines += [f"{name} = {value}" for name, value in _directories(libc).items()]
    # nothing is ever installed with these makefiles; should it be, then not into the system
    lines.append(f"install_root = {objects / 'root'}")
    (objects / "configparms").write_text("\n".join(lines) + "\n")
    return missing


def _make(steps: _Steps, tree: Path, objects: Path, jobs: int) -> None:
    """Build libc.so and ld.so, and no more than those need."""
    make = ["make", "-r", f"-j{jobs}", "PARALLELMFLAGS=", "-C", str(tree), f"objdir={objects}"]
    # the static libraries, half of all that is compiled, are left out
    shared = "object-suffixes=.os"

    def count() -> int:
        return sum(1 for _ in objects.glob("*/*.os"))

    steps.run([*make, shared, str(objects / "libc.so"), str(objects / "elf/ld.so")], objects, count)


def _loader_name(libc: Libc) -> str:
    """Return the file name of the system's ld.so."""
    places = sorted(
        {*libc.path.parent.glob("ld-linux*.so.*"), *libc.path.parent.glob("ld64*.so.*")}
    )
    if not places:
        raise PttError(f"no ld.so beside {libc.path}")
    return places[0].name


def _try_out(prefix: Path, system: Libc, loader: str, *, stands_in: bool) -> None:
    """See whether a program runs on what was built, before anybody relies on it."""
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
    """Build the library, unless it has been built.

    Args:
        source: As `nptltrace.nptl.source.unpack` takes it.
        prefix: Where to put it; None = where `ptt record` finds it.
        report: Called with a line about what is going on.
        jobs: How much to do at once; None = as many as there are processors.

    Returns:
        What there is now, and whether it was built for that.

    Raises:
        PttError: It cannot be built.
    """
    system = installed()
    place = prefix.absolute() if prefix else place_of(system)
    there = _finished(place, source)
    if there is not None:
        return there, False
    if any(character in str(place) for character in " :;\t\n"):
        raise PttError(f"{place}: glibc's makefiles and LD_LIBRARY_PATH do not accept such a name")
    if place.exists() and find(place) is None and any(place.iterdir()):
        raise PttError(f"{place} is not empty and holds no thread library")
    place.parent.mkdir(parents=True, exist_ok=True)
    # no link is followed, which another user may have put there
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place.parent / f".{place.name}.lock", flags, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another build of the same: its result is ours
        there = _finished(place, source)
        if there is not None:
            return there, False
        return _build(source, place, system, report, jobs or len(os.sched_getaffinity(0))), True


def _finished(place: Path, source: str) -> Built | None:
    """Return what is there already, if it is what is wanted."""
    there = find(place)
    if there is None or there.revision != revision() or there.facts.get("source") != source:
        return None
    return there


def _build(
    source: str, place: Path, system: Libc, report: Callable[[str], None], jobs: int
) -> Built:
    began = time.monotonic()
    work = place.parent / f".{place.name}.work"
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
    if place.exists():
        shutil.rmtree(place)
    new.rename(place)
    shutil.rmtree(work)
    built = find(place)
    if built is None:
        raise PttError(f"{place}: the build is not there")
    return built
