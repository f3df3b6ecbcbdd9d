"""Tools with the purpose of PTT: whether they run here, how to run them, how many events they lose.

python benchmarks/peers.py [--install]
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from support.common import HERE, compile_c, have
from support.ways import Run, Way

PROBE_PAIRS = 1000
SESSION = "ptt-bench-"
_LIMIT_S = 60.0
ALL = frozenset({"mutex", "rwlock", "sem", "cond", "barrier", "thread"})
CALLS = (
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
    "pthread_rwlock_unlock", "sem_wait", "sem_post", "pthread_cond_wait", "pthread_cond_broadcast",
    "pthread_barrier_wait", "pthread_create", "pthread_join",
)  # fmt: skip


def last_line(text: str) -> str:
    """Return the last line that is not blank, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:140] if lines else ""


def said_by(*command: str) -> str:
    """Return the output of a command on both streams."""
    done = subprocess.run(
        command, check=False, text=True, errors="replace", timeout=_LIMIT_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


class Peer(Way):
    """A tool of other people, as a way to run a program.

    Attributes:
        packages: Debian packages of the tool.
        needs: Programs of the tool.
        slow_ns: The rough time that it adds to an operation; decides the operations of a run.
        programs: Whether whole programs also run with the tool.
    """

    packages: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    version_of: tuple[str, ...] = ()
    slow_ns = 300.0
    programs = False

    def installed(self) -> bool:
        """Return whether the tool is installed."""
        return have(*self.needs)

    @cache  # noqa: B019 -- there are as many as there are tools
    def version(self) -> str:
        """Return the version that the tool prints."""
        version = re.search(r"\d+(\.\d+)+", said_by(*self.version_of))
        return version[0] if version else "?"

    def why_not(self, work: Path) -> str:
        """Try the tool once or twice; return why it does not run here, or an empty text."""
        if not self.installed():
            return f"not installed (Debian: {' '.join(self.packages)})"
        return self._tried(work) and self._tried(work)

    def _tried(self, work: Path) -> str:
        program = compile_c(HERE / "hotpath/cases.c", work / "probe", *self.flags)
        try:
            with self.on(work) as run:
                done = run.call(
                    [str(program), "mutex", "1", str(PROBE_PAIRS)], check=False, timeout=_LIMIT_S
                )
            if done.returncode or not re.fullmatch(r"[\d.]+ [\d.]+\s*", done.stdout):
                return last_line(done.stderr) or f"ends with status {done.returncode}"
        except subprocess.TimeoutExpired:
            return f"not done after {_LIMIT_S:.0f} s"
        except (subprocess.CalledProcessError, OSError) as error:
            return last_line(str(getattr(error, "stderr", "") or "")) or str(error)
        if run.events is not None and run.events < 2 * PROBE_PAIRS:
            return f"records {run.events} events of {2 * PROBE_PAIRS} calls and more"
        return ""


class Lttng(Peer):
    """LTTng-UST with its wrapper of the thread library."""

    name = "LTTng"
    about = "lttng_ust_pthread:*, context vtid, default buffers, liblttng-ust-pthread-wrapper.so"
    packages = ("lttng-tools", "liblttng-ust1", "liblttng-ust-dev")
    needs = ("lttng", "lttng-sessiond")
    version_of = ("lttng", "--version")
    domains = frozenset({"mutex"})
    programs = True
    wrapper = "liblttng-ust-pthread-wrapper.so"
    channel: tuple[str, ...] = ()
    env: dict[str, str] = {}  # noqa: RUF012 -- constant

    def installed(self) -> bool:
        """See the base class."""
        return super().installed() and any(Path("/usr/lib").glob(f"*/{self.wrapper}*"))

    def why_not(self, work: Path) -> str:
        """See the base class. Events of other sessions would also count."""
        if self.installed():
            for name in self._active():
                if name.startswith(SESSION) and not Path("/proc", name[len(SESSION) :]).exists():
                    self._run("destroy", name)
                elif not name.endswith(f"-{os.getpid()}"):
                    return f"the session {name} is active and would record as well"
        return super().why_not(work)

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        session, out = f"{SESSION}{os.getpid()}", work / "lttng"
        shutil.rmtree(out, ignore_errors=True)
        self._run("create", session, f"--output={out}")
        run = Run(env={"LD_PRELOAD": self.wrapper, **self.env}, lost=0)
        try:
            if self.channel:
                self._run("enable-channel", "-s", session, "-u", "big", *self.channel)
            channel = ["-c", "big"] if self.channel else []
            self._run("enable-event", "-s", session, "-u", *channel, "lttng_ust_pthread:*")
            self._run("add-context", "-s", session, "-u", *channel, "-t", "vtid")
            self._run("start", session)
            yield run
        finally:
            said = self._run("destroy", session)
        # LTTng prints the lost events of each channel on a line. It prints a negative sum as an
        # unsigned number: ignore the highest bit.
        numbers = re.findall(r"(\d+) events? (?:were|was) discarded", said)
        run.lost = sum(int(n) % 2**63 for n in numbers)

    def _active(self) -> list[str]:
        try:
            return re.findall(r"\d+\) (\S+) \[active\]", self._run("list"))
        except subprocess.CalledProcessError:
            # No session exists yet: the first session starts the daemon.
            return []

    @staticmethod
    def _run(*words: str) -> str:
        done = subprocess.run(["lttng", *words], check=True, capture_output=True, text=True)
        return done.stdout + done.stderr


class LttngBlocking(Lttng):
    """LTTng-UST in blocking mode: it waits for room, and has as much room as PTT."""

    name = "LTTng, blocking"
    about = "as LTTng, --blocking-timeout=inf, 4 buffers of 8 MiB a processor"
    channel = ("--blocking-timeout=inf", "--subbuf-size=8M", "--num-subbuf=4")
    env = {"LTTNG_UST_ALLOW_BLOCKING": "1"}  # noqa: RUF012 -- constant


class Uftrace(Peer):
    """Uftrace on the calls through a program's procedure linkage table."""

    name = "uftrace"
    about = "uftrace record --force --nest-libcall -F '^pthread_' -F '^sem_'"
    packages = ("uftrace",)
    needs = ("uftrace",)
    version_of = ("uftrace", "--version")
    domains = ALL
    programs = True

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        out, log = work / "uftrace", work / "uftrace.log"
        shutil.rmtree(out, ignore_errors=True)
        record = ["uftrace", "record", "-d", str(out), "--force", "--nest-libcall",
                  "--logfile", str(log), "-F", "^pthread_", "-F", "^sem_"]  # fmt: skip
        run = Run(wrap=lambda command: [*record, *command])
        yield run
        # A call is two records of 16 bytes. Each thread has a file.
        run.events = sum(file.stat().st_size for file in out.glob("*.dat")) // 16
        text = log.read_text(errors="replace") if log.exists() else ""
        run.lost = sum(int(n) for n in re.findall(r"(?i)lost (\d+) (?:records|events)", text))


class Eztrace(Peer):
    """EZTrace's module for POSIX threads."""

    name = "EZTrace"
    about = "eztrace -t pthread"
    packages = ("eztrace",)
    needs = ("eztrace",)
    version_of = ("dpkg-query", "-W", "eztrace")
    domains = ALL
    programs = True

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        out = work / "eztrace"
        shutil.rmtree(out, ignore_errors=True)
        yield Run(wrap=lambda command: ["eztrace", "-t", "pthread", "-o", str(out), *command])


class ThreadSanitizer(Peer):
    """Not a tracer: the cost of a program that is compiled to find its data races."""

    name = "TSan"
    about = "compiled with -fsanitize=thread"
    packages = ("gcc", "libtsan2")
    needs = ("cc",)
    version_of = ("cc", "--version")
    flags = ("-fsanitize=thread",)
    slow_ns = 150.0


class Valgrind(Peer):
    """The checkers of valgrind: a program runs in a virtual machine."""

    packages = ("valgrind",)
    needs = ("valgrind",)
    version_of = ("valgrind", "--version")
    tool = ""
    slow_ns = 8_000.0

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        del work
        yield Run(wrap=lambda command: ["valgrind", "-q", f"--tool={self.tool}", *command])


class Helgrind(Valgrind):
    """Finds races and lock orders."""

    name, about, tool = "Helgrind", "valgrind --tool=helgrind", "helgrind"


class Drd(Valgrind):
    """Finds races."""

    name, about, tool = "DRD", "valgrind --tool=drd", "drd"


class Ltrace(Peer):
    """Breakpoints at the calls of library functions."""

    name = "ltrace"
    about = "ltrace -f -e pthread_*+sem_*, to a file"
    packages = ("ltrace",)
    needs = ("ltrace",)
    version_of = ("ltrace", "--version")
    slow_ns = 60_000.0
    domains = ALL

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        out = work / "ltrace"
        ltrace = ["ltrace", "-f", "-e", "pthread_*+sem_*", "-o", str(out)]
        run = Run(wrap=lambda command: [*ltrace, *command])
        yield run
        text = out.read_text(errors="replace") if out.exists() else ""
        run.events = len(re.findall(r"(?:pthread|sem)_\w+\(", text))


class Strace(Peer):
    """System calls only: it misses operations that never wait."""

    name = "strace"
    about = "strace -f -e trace=futex, to a file; sees no uncontended operation"
    packages = ("strace",)
    needs = ("strace",)
    version_of = ("strace", "--version")
    slow_ns = 1_000.0
    domains = frozenset({"waits"})
    programs = True

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        strace = ["strace", "-f", "-e", "trace=futex", "-o", str(work / "strace")]
        yield Run(wrap=lambda command: [*strace, *command])


def libc_path() -> str:
    """Return the path of the C library."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "/libc.so.6" in line or "/libc-2." in line:
            return line.split()[-1]
    return "/lib/x86_64-linux-gnu/libc.so.6"


class Bpftrace(Peer):
    """Probes in the C library, each a trap into the kernel."""

    name = "bpftrace"
    about = "uprobes at the functions of libc, a line of time, thread, function and object each"
    packages = ("bpftrace",)
    needs = ("bpftrace",)
    version_of = ("bpftrace", "--version")
    slow_ns = 20_000.0
    domains = ALL

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        script, out = work / "probes.bt", work / "bpftrace.out"
        probes = ",\n".join(f"uprobe:{libc_path()}:{name}" for name in CALLS)
        script.write_text(
            f'{probes} /pid == cpid/ {{ printf("%llu %d %s %p\\n", nsecs, tid, func, arg0); }}\n'
        )

        def wrap(command: Sequence[str]) -> list[str]:
            return ["bpftrace", "-o", str(out), "-c", shlex.join(command), str(script)]

        run = Run(wrap=wrap)
        yield run
        text = out.read_text(errors="replace") if out.exists() else ""
        run.events = len(re.findall(r"^\d+ \d+ ", text, re.MULTILINE))
        run.lost = sum(int(n) for n in re.findall(r"Lost (\d+) events", text))


class PerfProbe(Peer):
    """The same traps, recorded by perf."""

    name = "perf"
    about = "perf record of uprobes at the functions of libc"
    packages = ("linux-perf",)
    needs = ("perf",)
    version_of = ("perf", "--version")
    slow_ns = 20_000.0
    domains = ALL
    group = "ptt_bench"

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        out = work / "perf.data"
        added = [word for name in CALLS for word in ("--add", f"{self.group}:{name}={name}")]
        try:
            subprocess.run(
                ["perf", "probe", "-q", "-x", libc_path(), *added],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            record = ["perf", "record", "-q", "-e", f"{self.group}:*", "-o", str(out)]
            run = Run(wrap=lambda command: [*record, "--", *command])
            yield run
        finally:
            subprocess.run(
                ["perf", "probe", "-q", "-d", f"{self.group}:*"], check=False, capture_output=True
            )
        stat = said_by("perf", "report", "-i", str(out), "--stats")
        # Totals come before the sums of each probe.
        counts = {name: int(n) for name, n in reversed(re.findall(r"(\w+) events: +(\d+)", stat))}
        run.events = counts.get("SAMPLE", 0)
        run.lost = counts.get("LOST", 0) + counts.get("LOST_SAMPLES", 0)


PEERS: tuple[type[Peer], ...] = (
    Lttng, LttngBlocking, Uftrace, Eztrace, ThreadSanitizer, Helgrind, Drd, Ltrace, Strace,
    Bpftrace, PerfProbe,
)  # fmt: skip
READERS = ("babeltrace2", "python3-bt2")


def install() -> None:
    """Install all peers with apt.

    Raises:
        SystemExit: You are not root.
    """
    if os.geteuid():
        sys.exit("--install-peers needs root")
    packages = sorted({package for peer in PEERS for package in peer.packages} | {*READERS})
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *words], check=True, env=env, stdout=sys.stderr)


def usable(work: Path) -> tuple[list[Peer], dict[str, str]]:
    """Return the peers that run here, and for each other peer why it does not run."""
    usable_peers, reasons = [], {}
    for make in PEERS:
        peer = make()
        why = peer.why_not(work)
        if why:
            reasons[peer.name] = why
        else:
            usable_peers.append(peer)
    return usable_peers, reasons


def describe(peers: Sequence[Peer]) -> dict[str, dict[str, str]]:
    """Return versions and settings by name, as the kept figures have them."""
    return {peer.name: {"version": peer.version(), "settings": peer.about} for peer in peers}


def main() -> None:
    """Say which peers run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install them first, by apt as root")
    args = parser.parse_args()
    if args.install:
        install()
    with tempfile.TemporaryDirectory(prefix="ptt-bench-") as work:
        usable_peers, reasons = usable(Path(work))
        for peer in usable_peers:
            print(f"{peer.name:<18}{peer.version():<12}{peer.about}")
        for name, why in reasons.items():
            print(f"{name:<18}cannot run here: {why}")


if __name__ == "__main__":
    main()
