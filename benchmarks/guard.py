#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the reports of `ptt guard`: planted hangs, servers, and programs that are idle or slow.

hangs     programs of five languages that hang, run by themselves, by ctest, by pytest and by a
          shell. A report is `right` if a finding has a right kind, and the report has the lines of
          the hanging threads and the names of their objects. Each other finding has a right kind,
          too, or names these threads as well: a shell that waits for them. `seconds` is the time
          from the last moment when one of these threads ran to the report. If PTT knows no finding
          (`after`), the report comes at the end of a time, and not before.
innocent  servers without work, and programs that are idle or slow. There must be no report.

A program that is not installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from support.common import PTT, ROOT, environment, scratch_directory
from support.guarded import (
    AFTER,
    INNOCENT,
    OTHERS,
    SERVERS,
    WAYS,
    Hang,
    build,
    command_of,
    hangs,
    way_to,
)
from support.workloads import free_port

os.environ.update(environment())
sys.path[:0] = [str(ROOT / "src")]

from nptltrace.cli import main as ptt  # noqa: E402 -- the path comes first

POLL_S = 0.02
# The time limit of hangs without a finding.
AFTER_S = 10.0
LOOKS = 3
REPORT, STACKS = "hang.json", "stacks.txt"
NOTHING = "–"
Document = dict[str, Any]


class Run:
    """A command that runs with or without `ptt guard`, until the end of the context.

    Args:
        command: The command.
        place: The folder for the report, and the current directory of the command.
        options: The options of `ptt guard`; None runs the command alone.
        terminal: The standard input of the command.
    """

    def __init__(
        self, command: Sequence[str], place: Path, options: Sequence[str] | None, terminal: int
    ) -> None:
        self.report = place / "report"
        self.began_s = time.time()
        guard = [*PTT, "guard", "-o", str(self.report), *(options or ()), "--"]
        # Processes by number and start: another process may get the number later.
        self._known: set[tuple[int, int]] = set()
        self._ran_s: dict[int, tuple[bytes, float]] = {}
        with (place / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [*(guard if options is not None else ()), *command], cwd=place, stdin=terminal,
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Self:
        """Return the run."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes of the run."""
        self._know(descendants(self.process.pid))
        for pid, start in self._known:
            kill(pid, start)
        self.process.wait()

    def _know(self, pids: Iterable[int]) -> None:
        self._known.update((pid, start) for pid in pids if (start := started(pid)) is not None)

    def poll(self) -> None:
        """Note when each thread ran."""
        now = time.time()
        pids = descendants(self.process.pid)
        self._know(pids)
        for pid in pids[1:]:
            with contextlib.suppress(OSError):
                for task in os.scandir(f"/proc/{pid}/task"):
                    turns = Path(task.path, "schedstat").read_bytes()
                    tid = int(task.name)
                    if self._ran_s.get(tid, (b"",))[0] != turns:
                        self._ran_s[tid] = turns, now

    def last_ran_s(self, tids: Collection[int]) -> float | None:
        """Return the last time when one of these threads ran, as `time.time()`."""
        return max((self._ran_s[tid][1] for tid in tids if tid in self._ran_s), default=None)

    def looks(self) -> list[Document]:
        """Return what `ptt hang` says of each process."""
        return [looked(pid) for pid in descendants(self.process.pid)]

    def documents(self) -> list[Document]:
        """Return the documents of the report; empty if there is none yet."""
        try:
            return list(json.loads((self.report / REPORT).read_bytes()))
        except (OSError, ValueError):
            return []


def looked(pid: int) -> Document:
    """Return the document of `ptt hang`, run in this process to save its start."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = ptt(["hang", "--format", "json", str(pid)])
    return json.loads(out.getvalue()) if status in {0, 1} else {"findings": [], "threads": []}


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.scandir(f"/proc/{pid}/task"):
            children += map(int, Path(task.path, "children").read_text(encoding="utf-8").split())
    return [pid, *(one for child in children for one in descendants(child))]


def judged(hang: Hang, documents: Sequence[Document], stacks: str) -> tuple[str, set[int]]:
    """Return the verdict on a report, and the threads of its right finding."""
    findings = [finding for document in documents for finding in document["findings"]]
    verdict = ", ".join(dict.fromkeys(finding["kind"] for finding in findings)) or NOTHING
    if AFTER in hang.kinds and documents and not findings:
        everybody = {t["tid"] for document in documents for t in document["threads"]}
        findings = [{"kind": AFTER, "threads": everybody}]
    for finding in findings:
        tids = {*finding["threads"]}
        if finding["kind"] not in hang.kinds:
            continue
        frames = stacks + "".join(
            f"{frame}\n"
            for document in documents
            for thread in document["threads"]
            if thread["tid"] in tids
            for frame in thread["stack"]
        )
        names = {name.rpartition("::")[2] for name in finding.get("object_names", ())}
        missed = [line for line in hang.lines if line not in frames]
        missed += sorted(hang.objects - names)
        wrong = [
            other["kind"]
            for other in findings
            if other["kind"] not in hang.kinds and not tids <= {*other["threads"]}
        ]
        if not missed and not wrong:
            return "right", tids
        missed = [*missed, *(f"a reason for {kind}" for kind in wrong)]
        verdict = f"{finding['kind']} without {', '.join(missed)}"
    return verdict, set()


def judge_hang(run: Run, hang: Hang, limit_s: float, *, look: bool) -> tuple[str, float | None]:
    """Return the verdict on a hang, and the seconds from the evidence to the report."""
    until = time.monotonic() + limit_s
    verdict = NOTHING
    while time.monotonic() < until and verdict != "right":
        run.poll()
        if look:
            verdict, _ = judged(hang, run.looks(), "")
        elif documents := run.documents():
            stacks = run.report / STACKS
            text = stacks.read_text(encoding="utf-8") if stacks.exists() else ""
            verdict, tids = judged(hang, documents, text)
            is_after = AFTER in hang.kinds
            evidence_s = run.began_s + AFTER_S if is_after else run.last_ran_s(tids)
            reported_s = (run.report / REPORT).stat().st_mtime
            seconds = None if evidence_s is None else reported_s - evidence_s
            # A run of a thread is noted a look later, so other times may be a bit below 0.
            if is_after and seconds is not None and seconds < 0:
                verdict += ", but too early"
            return verdict, seconds
        time.sleep(POLL_S)
    return verdict, None


def judge_hangs(directory: Path, args: argparse.Namespace, terminal: int) -> int:
    """Print a table of the hangs; return the number of those that are not reported right."""
    wrong = number = 0
    took: list[float] = []
    print(f"{'':<24}{'way':<8}{'expected':<24}{'seconds':>8}  got")
    chosen = [(n, hang) for n, hang in enumerate(hangs(directory)) if args.k in str(hang)]
    build(directory, {hang.source for _, hang in chosen})
    for count, hang in chosen:
        ways = WAYS if args.way == "all" else (args.way or WAYS[count % len(WAYS)],)
        after = [f"--after={AFTER_S:g}s"] if AFTER in hang.kinds else []
        for way in ways:
            place = directory / f"hang{number}"
            place.mkdir()
            number += 1
            options = None if args.look else [*args.option, *after]
            with Run(way_to(way, hang, place), place, options, terminal) as run:
                verdict, seconds = judge_hang(run, hang, args.limit, look=args.look)
            shutil.rmtree(place)
            wrong += verdict != "right"
            took += [seconds] if seconds is not None else []
            shown = NOTHING if seconds is None else f"{seconds:.2f}"
            expected = "|".join(hang.kinds)
            print(f"{hang!s:<24}{way:<8}{expected:<24}{shown:>8}  {verdict}", flush=True)
    print(f"{number} hangs, {number - wrong} reported right", end="")
    print(f", the slowest after {max(took):.2f} s" if took else "")
    return wrong


def innocent_runs(
    stack: contextlib.ExitStack, directory: Path, args: argparse.Namespace, terminal: int
) -> Iterator[tuple[str, Run]]:
    """Start the servers and programs; yield each with its name."""
    for name in [*SERVERS, *INNOCENT]:
        if args.k not in name:
            continue
        place = directory / f"innocent{len([*directory.iterdir()])}"
        place.mkdir()
        command = command_of(name, directory, place, free_port())
        if not command:
            print(f"{name}: left out, it is not installed")
            continue
        options = None if args.look else args.option
        yield name, stack.enter_context(Run(command, place, options, terminal))


def judge_innocent(directory: Path, args: argparse.Namespace, terminal: int) -> int:
    """Let all servers and programs run at the same time; return the number with a report."""
    accused = lost = 0
    build(directory, OTHERS)
    with contextlib.ExitStack() as stack:
        runs = dict(innocent_runs(stack, directory, args, terminal))
        began = time.monotonic()
        time.sleep(args.minutes * 60)
        minutes = (time.monotonic() - began) / 60
        for name, run in runs.items():
            pids = descendants(run.process.pid)
            programs = pids if args.look else pids[1:]
            threads = sum(len([*Path(f"/proc/{pid}/task").iterdir()]) for pid in programs)
            if args.look:
                documents = [looked(pid) for _ in range(LOOKS) for pid in pids]
            else:
                documents = run.documents()
            ended = run.process.poll()
            findings = [f"{f['kind']}: {f['message']}" for d in documents for f in d["findings"]]
            said = "nothing" if not documents or args.look else "report"
            said = "; ".join(dict.fromkeys(findings)) or said
            accused += said != "nothing"
            lost += ended is not None
            said += f" (ended with status {ended})" if ended is not None else ""
            cost = "" if args.look else f"{used_s(run.process.pid) / minutes / 0.6:8.3f} %"
            print(f"{name:<32}{len(programs):4} {threads:4}{cost}  {said}", flush=True)
    print(f"{len(runs)} innocent programs, {minutes:.1f} min: ", end="")
    print(f"{accused} with a report, {lost} ended")
    return accused + lost


def numbers_of(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def used_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = numbers_of(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def started(pid: int) -> int | None:
    """Return when a process started, in ticks since the boot; None if the process is gone."""
    fields = numbers_of(pid)
    return int(fields[19]) if fields else None


def kill(pid: int, start: int) -> None:
    """Kill a process that started at a time; do nothing to another process with its number."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            if started(pid) == start:
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def main() -> int:
    """Judge; fail if a hang is not reported right, or an innocent program has a report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts: Mapping[str, Any] = {"hangs": judge_hangs, "innocent": judge_innocent}
    parser.add_argument("part", nargs="*", default=[*parts], metavar="PART", help=", ".join(parts))
    parser.add_argument(
        "-k", default="", metavar="NAME", help="only programs with NAME in the name"
    )
    parser.add_argument(
        "--way", choices=(*WAYS, "all"), help="how hangs are run (default: in turn)"
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="how long innocent programs run (default: 10)"
    )
    parser.add_argument(
        "--limit", type=float, default=20.0, metavar="S", help="for each hang (default: 20)"
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="OPTION",
        help="a further option of `ptt guard`, as --option=--idle=5s",
    )  # fmt: skip
    parser.add_argument(
        "--look", action="store_true", help="judge looks of `ptt hang` in place of `ptt guard`"
    )
    args = parser.parse_args()
    terminal = pty.openpty()[1]
    wrong = 0
    with scratch_directory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        for part in args.part:
            wrong += parts[part](directory, args, terminal)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
