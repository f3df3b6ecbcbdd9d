"""`ptt guard`: runs a program, and reports a hang of it or of its children."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.options import duration_ns, program_words, say, say_error
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from nptltrace.guard.evidence import Cause
    from nptltrace.guard.output import Output
    from nptltrace.guard.report import Report
    from nptltrace.guard.watch import Watch
    from nptltrace.recording.interrupts import Interrupts
    from nptltrace.recording.launch import Child

SUMMARY = "run a program, and report the cause if it hangs"
DESCRIPTION = """\
Runs CMD, and watches CMD and all processes that it starts, from outside: PTT puts nothing into the
processes, and stops no thread without --core. If they hang, one line on stderr names the cause. PTT
also writes a report to DIR: who waits for whom, the stacks of all threads, the processes, their
pipes and file locks.

A hang is a deadlock, or threads that nobody can wake, if two looks of `ptt hang` show it. Threads
that wait for work, time, sockets from outside, children or a terminal do not hang, nor do stopped
processes. For a program that hangs in another way, use --after or --idle.

The exit status is the exit status of CMD, or 124 if PTT ended CMD. With --pid or --all-of-user, it
is 1 if there was a report."""
EXAMPLE = """\
ptt guard -- ctest --output-on-failure
ptt guard --after 30m --then kill --junit hang.xml -- make check
ptt guard -o report --idle 1m -- ./server
ptt guard --pid 4711"""

ENDED = 124
_THEN = ("continue", "wait", "term", "kill")
# A container's first process gets these signals for its program.
_MORE_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2)
_REPORTS_MOST = 16
# Short programs end before the modules for reports are loaded.
_LOAD_AFTER_S = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, and CMD with its arguments."""
    parser.usage = (
        "%(prog)s [options] [--] CMD [ARG...]\n       %(prog)s [options] --pid PID\n"
        "       %(prog)s [options] --all-of-user"
    )
    add = parser.add_argument
    add(
        "-o", "--output", metavar="DIR", type=Path,
        help="directory of the report, made when there is a hang (default: ptt-guard-<pid>); "
        "further reports go to DIR-2, DIR-3, …",
    )  # fmt: skip
    add("--force", action="store_true", help="replace the report that is in DIR")
    add(
        "--after", metavar="TIME", type=duration_ns,
        help="also report if CMD still runs after this time",
    )  # fmt: skip
    add(
        "--idle", metavar="TIME", type=duration_ns,
        help="also report if no thread ran for this time while a thread waits for a lock, and the "
        "holder of the lock waits for another thread",
    )  # fmt: skip
    add(
        "--then", choices=_THEN, default="continue",
        help="after the report: go on watching (continue), only wait for the end of CMD (wait), or "
        "end all processes by SIGTERM (term) or SIGKILL (kill); default: continue",
    )  # fmt: skip
    add(
        "--keep-output", metavar="N", type=int, default=0,
        help="pass the output of CMD through a pipe, and add the last N lines to the report "
        "(default: only output that goes to a file)",
    )  # fmt: skip
    add("--core", action="store_true", help="add core files of hanging processes (needs gdb)")
    add("-p", "--pid", metavar="PID", type=int, action="append", default=[],
        help="watch this process, which already runs; repeatable")  # fmt: skip
    add("--all-of-user", action="store_true", help="watch all processes of this user")
    group = parser.add_argument_group("output for CI services")
    group.add_argument("--junit", metavar="FILE", type=Path,
                       help="write the result as a JUnit test case")  # fmt: skip
    group.add_argument("--sarif", metavar="FILE", type=Path, help="write the findings as SARIF")
    group.add_argument("--gitlab", metavar="FILE", type=Path,
                       help="write the findings as a Code Quality report of GitLab")  # fmt: skip
    group.add_argument("--github", action="store_true",
                       help="print annotations for GitHub Actions on stderr")  # fmt: skip
    group.add_argument(
        "--source-root", metavar="DIR", type=Path,
        help="with --sarif, --gitlab, --github: name source files relative to this directory "
        "(default: .)",
    )  # fmt: skip
    add("cmd", metavar="CMD", nargs=argparse.REMAINDER, help="the program, with its arguments")


def run(args: argparse.Namespace) -> int:
    """Guard, and return the program's exit status."""
    command = program_words(args)
    _check(args, command)
    from nptltrace.recording import launch
    from nptltrace.recording.interrupts import Interrupts

    with Interrupts(_MORE_SIGNALS) as interrupts:
        if not command:
            return _Guard(args, interrupts, None).run(args.pid)
        command = launch.with_interpreter(command)
        program = launch.find_program(command[0])
        output = _output(args.keep_output)
        with output or nullcontext():
            child = launch.Child.start(program, command)
        status = _Guard(args, interrupts, child, output).run([child.pid])
        if output is not None:
            output.finish(lambda: bool(interrupts.forward(None) - {signal.SIGCHLD}))
            if output.fault is not None:
                say_error(PttError(f"output of the program is lost: {output.fault.strerror}"))
        return status


def _output(lines: int) -> Output | None:
    if not lines:
        return None
    from nptltrace.guard.output import Output

    return Output(lines)


def _check(args: argparse.Namespace, command: Sequence[str]) -> None:
    """Refuse options that contradict each other."""
    chosen = sum((bool(command), bool(args.pid), args.all_of_user))
    if chosen != 1:
        what = "no program given" if not chosen else "give a program, --pid or --all-of-user alone"
        raise UsageError(f"{what} (see ptt guard --help)")
    if args.all_of_user and args.then in {"term", "kill"}:
        raise UsageError(f"--then {args.then} would end all processes of the user")
    if args.all_of_user and args.after is not None:
        raise UsageError("--after is for a program or --pid")
    if args.keep_output < 0 or (args.keep_output and not command):
        raise UsageError("--keep-output is a number of lines, of a program that ptt starts")
    if args.idle is not None and not args.idle:
        raise UsageError("--idle is a time above 0")
    if os.getpid() in args.pid:
        raise UsageError(f"process {os.getpid()} is the guard itself")
    if args.source_root is not None and not (args.sarif or args.gitlab or args.github):
        raise UsageError("--source-root goes with --sarif, --gitlab or --github")
    if args.core:
        from nptltrace.cli.output.guard_report import core_writer

        core_writer()
    _check_places(args)


def _check_places(args: argparse.Namespace) -> None:
    """Refuse files and directories that cannot be written."""
    from nptltrace.cli.output.guard_places import check_file, check_folder, check_place

    if args.output is not None:
        check_place(args.output, force=args.force)
    elif args.force:
        raise UsageError("--force replaces the report in DIR: give -o DIR, too")
    else:
        check_folder(Path())
    for path in filter(None, (args.junit, args.sarif, args.gitlab)):
        check_file(path)


class _Surviving:
    """A context that says a fault of the guard, and goes on. With --debug, the fault is raised.

    Args:
        what: The work in the context.
        args: The parsed arguments.
    """

    def __init__(self, what: str, args: argparse.Namespace) -> None:
        self._what, self._is_raised = what, args.debug

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, PttError):
            say_error(error)
            return True
        if not isinstance(error, Exception) or self._is_raised:
            return False
        say_error(PttError(f"{self._what} has failed: {error!r} (--debug shows where)"))
        return True


class _Guard:
    """A watch from its begin to its end."""

    def __init__(
        self,
        args: argparse.Namespace,
        interrupts: Interrupts,
        child: Child | None,
        output: Output | None = None,
    ) -> None:
        self._output = output
        self._args, self._interrupts, self._child = args, interrupts, child
        self._reports: list[Report] = []
        self._places: list[Path] = []
        self._is_full = False
        words = program_words(args)
        pids = " ".join(f"--pid {pid}" for pid in args.pid)
        self._title = shlex.join(words) or pids or "--all-of-user"
        self._ended = False
        self._watching = True
        # Why the watch has failed, and whether a file for CI services is missing.
        self._failure = ""
        self._is_missing = False

    def run(self, pids: list[int]) -> int:
        """Watch until the program ends, and return the exit status."""
        from nptltrace.guard.tree import MARK, Tree, new_mark

        args = self._args
        mark = new_mark() if self._child is not None else ""
        if self._child is not None:
            self._child.release({**os.environ, MARK: mark})
        tree = Tree(pids, mark, os.geteuid() if args.all_of_user else None)
        for pid in pids if self._child is None else ():
            if pid not in tree.members:
                raise UsageError(f"there is no process {pid}")
        from nptltrace.guard.watch import Watch

        watch = Watch(tree, _seconds(args.idle), _seconds(args.after), lambda text: say(args, text))
        self._loop(watch)
        self._write_results()
        if self._ended:
            return ENDED
        is_wrong = self._is_missing or (self._failure and self._child is None)
        status = self._child.wait() if self._child is not None else int(bool(self._reports))
        return status or (PttError.exit_status if is_wrong else 0)

    def _loop(self, watch: Watch) -> None:
        from nptltrace.guard.service import Watchdog

        watchdog = Watchdog()
        due_s = time.monotonic()
        load_s = due_s + _LOAD_AFTER_S
        while not self._has_ended(watch):
            now_s = time.monotonic()
            if now_s >= load_s:
                load_s = float("inf")
                _load()
            if now_s >= due_s:
                for cause in self._step(watch, now_s):
                    watchdog.hangs(cause.kind)
                    if self._ended:
                        return
                due_s = now_s + watch.pause_s
                if self._failure:
                    watchdog.hangs(self._failure)
                watchdog.is_well(now_s)
            pid = self._child.pid if self._child is not None else None
            patience_s = max(due_s - time.monotonic(), 0.0)
            came = self._interrupts.forward(pid, patience_s)
            if self._child is None and came - {signal.SIGCHLD}:
                return

    def _step(self, watch: Watch, now_s: float) -> list[Cause]:
        """Look at the tree, report the hangs, and do what --then says."""
        causes = self._causes(watch, now_s)
        try:
            for cause in causes:
                self._report(cause, watch)
        finally:
            if causes:
                self._act(watch)
        return causes

    def _causes(self, watch: Watch, now_s: float) -> list[Cause]:
        """Look at the tree. After a fault of the guard, only the time of --after counts."""
        if self._watching:
            self._watching = False
            with _Surviving("the watch", self._args):
                causes = watch.step(now_s)
                self._watching = True
                return causes
            self._failure = "the watch has failed"
        return watch.time_limit(now_s)

    def _act(self, watch: Watch) -> None:
        """Do what --then says, after a report."""
        then = self._args.then
        if then in {"term", "kill"}:
            from nptltrace.guard.ending import end

            self._ended = True
            poll = self._child.poll if self._child is not None else (lambda: None)
            end(watch.tree, at_once=then == "kill", meanwhile=poll)
        elif then == "wait":
            self._watching = False

    def _has_ended(self, watch: Watch) -> bool:
        if self._child is None:
            tree = watch.tree
            return not self._args.all_of_user and not any(map(tree.is_same, tree.members))
        self._reap()
        return self._child.poll()

    def _reap(self) -> None:
        """As the first process of a container, take the status of orphans that have ended."""
        if os.getpid() != 1 or self._child is None:
            return
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (ended := os.waitid(os.P_ALL, 0, flags)) and ended.si_pid != self._child.pid:
            os.waitpid(ended.si_pid, 0)

    def _report(self, cause: Cause, watch: Watch) -> None:
        from nptltrace.cli.output import guard_places, guard_report

        args = self._args
        if len(self._reports) == _REPORTS_MOST:
            if not self._is_full:
                say(args, f"after {_REPORTS_MOST} reports, further hangs are not reported")
            self._is_full = True
            return
        report = self._collect(cause, watch)
        self._reports.append(report)
        place = args.output or _default(args, self._child)
        where = "there is no report"
        with _Surviving("the report", args):
            place = guard_places.make_place(place, self._places, force=args.force)
            where = f"the report in {place} is not complete"
            kept = self._output.lines() if self._output is not None else None
            guard_report.write(report, place, kept)
            if args.core:
                guard_report.write_cores(report, place)
            where = f"report in {place}"
        self._places.append(place)
        say(args, f"{guard_report.sentence(report)}; {where}", verbosity=-1)
        if args.github:
            from nptltrace.cli.output.guard_results import github_lines

            for line in github_lines(report, args.source_root or Path()):
                print(line, file=sys.stderr, flush=True)

    def _collect(self, cause: Cause, watch: Watch) -> Report:
        """Look at all processes. After a fault of the guard, the report has the cause alone."""
        from nptltrace.guard.report import Report, collect

        passed_s = time.monotonic() - watch.began_s
        with _Surviving("the look at the processes", self._args):
            watch.search()
            return collect(cause, _concerned(cause, watch), passed_s)
        return Report(cause, cause.looks, {}, passed_s)

    def _write_results(self) -> None:
        """Write the files for CI services."""
        args = self._args
        if not (args.junit or args.sarif or args.gitlab):
            return
        from nptltrace.cli.output import guard_results as results

        if args.junit:
            lines = results.junit_lines(self._reports, self._places, self._title, self._failure)
            self._write(args.junit, "\n".join(lines))
        root = args.source_root or Path()
        if args.sarif:
            self._write(
                args.sarif, json.dumps(results.sarif(self._reports, root, self._failure), indent=2)
            )
        if args.gitlab:
            self._write(
                args.gitlab, json.dumps(results.code_quality(self._reports, root), indent=2)
            )

    def _write(self, path: Path, text: str) -> None:
        try:
            path.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            say_error(error)
            self._is_missing = True


def _load() -> None:
    """Load the modules for a report, so that a later report is fast."""
    from nptltrace.cli.output import guard_report
    from nptltrace.guard import evidence, report

    del evidence, guard_report, report


def _default(args: argparse.Namespace, child: Child | None) -> Path:
    pids = [child.pid] if child is not None else args.pid
    return Path(f"ptt-guard-{next(iter(pids), os.getpid())}")


def _concerned(cause: Cause, watch: Watch) -> list[int]:
    """Return the processes of a report: the tree of the cause."""
    roots = watch.tree.roots
    root = roots.get(cause.pid)
    return [pid for pid, of in roots.items() if root is None or of == root]


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9
