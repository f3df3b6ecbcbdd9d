"""`ptt recover`: finishes the trace of a killed recorder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace._binding.headers.collect import CollectorTime
from nptltrace._binding.libpttcollect import Collector, CollectorError, read_clock
from nptltrace._files import trace_directories
from nptltrace._files.whole import json_of, read_whole
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.files.host import boot_id
from nptltrace.recording.files.session import belongs, claim, left_overs
from nptltrace.recording.files.tracedir import Clockwork, TraceDir, completeness
from nptltrace.recording.files.tsdl_writer import Calibration
from nptltrace.recording.processes import ProcessLog, ProcessWatch
from nptltrace.recording.settings.options import BufferOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace._binding.libpttcollect import Stats
    from nptltrace._files.directories import Directory
    from nptltrace.recording.files.session import SessionDir

__all__ = ["Recovered", "recover", "recover_all", "remove"]

_ENDED = ("complete", "recovered")
_TIME_END = 1 << 63  # times are smaller


class Recovered(NamedTuple):
    """The result of a recovery.

    Attributes:
        trace: The trace directory.
        stats: Counts of the whole trace; None if it was complete or the buffers are gone.
        processes: Number of process images.
        remark: A sentence for the user, or empty.
    """

    trace: Path
    stats: Stats | None
    processes: int = 0
    remark: str = ""


def recover(directory: Path) -> Recovered:
    """Finish the trace of a killed recorder; processes that still run go on untraced.

    Args:
        directory: The trace directory, or the session directory.

    Raises:
        UsageError: The directory is neither, or the recorder still runs.
    """
    trace, session = _find(directory)
    recovered = _recovered(trace, session)
    trace_directories.remove_candidate(trace)
    return recovered


def _recovered(trace: Path, session: SessionDir | None) -> Recovered:
    with trace_directories.open_own(trace) as opened:
        facts = _read_json(trace / "info" / "session.json")
        if not facts:
            trace_directories.check(opened)
        if session is None or not session.segment.exists():
            recovered = _without_segment(opened, facts)
            if session is not None:
                session.remove()
            return recovered
        options = BufferOptions(
            max_file_size=_number(facts, "max_file_size"),
            max_files=_number(facts, "max_files"),
            compact=facts.get("coding") == "compact",
        )
        try:
            collector = Collector(
                session.segment, opened.by_descriptor, options.native(), attach=True
            )
        except CollectorError as error:
            if Collector.is_busy(error):
                raise UsageError(f"{trace}: {error}") from None
            if Collector.is_damaged(error):
                recovered = _without_segment(opened, facts)
                session.remove()
                return recovered
            raise
        try:
            recovered = _finish(collector, session, TraceDir(opened, facts))
        finally:
            collector.destroy()
    session.remove()
    return recovered


def recover_all() -> Iterator[tuple[Path, Recovered | PttError | OSError]]:
    """Finish the traces of all killed recordings of this user.

    Yields:
        The trace directory of each recording with the result, or with the reason why its trace
        stays as it is.
    """
    for left in left_overs():
        try:
            recovered = recover(left.trace)
            if left.path.exists():  # a later recording has taken the place of the trace
                claim(left.path)[0].remove()
        except (PttError, OSError) as error:
            yield left.trace, error
        else:
            yield left.trace, recovered


def remove(recovered: Recovered) -> bool:
    """Remove a trace that a recovery has finished, and its directory if nothing else is in it.

    Returns:
        False if the recovery found a complete trace, or no buffers: that trace stays.

    Raises:
        UsageError: The directory belongs to another user, or has files that PTT does not make.
        PttError: Something of the trace cannot be removed.
    """
    if recovered.stats is None:
        return False
    directory = trace_directories.open_own(recovered.trace)
    try:
        trace_directories.check(directory)
    except OSError as error:
        directory.close()
        raise PttError(f"cannot remove {recovered.trace}: {error.strerror}") from None
    except BaseException:
        directory.close()
        raise
    trace_directories.remove(directory, whole=True)
    if os.path.lexists(recovered.trace):
        raise PttError(f"cannot remove all of {recovered.trace}")
    return True


def _find(directory: Path) -> tuple[Path, SessionDir | None]:
    """Return the trace directory and this user's session, from the path of either."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    if (directory / "segment").exists() or (directory / "session.json").exists():
        session, trace = claim(directory)
        return trace, session
    facts = _read_json(directory / "info" / "session.json")
    if facts.get("session_dir"):
        return directory, _named_session(directory, Path(str(facts["session_dir"])))
    if not (directory / "info").is_dir():
        raise UsageError(f"{directory} is neither a trace nor a session directory")
    if facts.get("state") in _ENDED:
        return directory, None
    # Killed before it wrote the path of its session into the trace; the session names the trace.
    wanted = directory.absolute()
    sessions = (claim(left.path)[0] for left in left_overs() if left.trace == wanted)
    return directory, next(sessions, None)


def _named_session(trace: Path, path: Path) -> SessionDir | None:
    """Return the session that a trace names, if it exists; the trace may name any directory."""
    if belongs(path, trace):
        return claim(path)[0]
    if (path / "segment").exists():
        raise UsageError(
            f"{trace} says that its trace buffers are in {path}, but nothing there says so of "
            f"{trace}; nothing was changed (`ptt recover {path}` takes buffers that are yours)"
        )
    return None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json_of(read_whole(path))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _number(facts: dict[str, Any], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) else 0


def _without_segment(opened: Directory, facts: dict[str, Any]) -> Recovered:
    """Finish a trace without buffers, unless it is complete."""
    trace = opened.path
    if facts.get("state") in _ENDED:
        return Recovered(trace, None, remark=f"{trace} is complete; there is nothing to recover")
    if not facts:
        raise UsageError(f"{trace} says nothing of how it was recorded")
    try:
        clock = facts["clock"]
        known = Calibration(
            int(clock["frequency"]), int(clock["unix_ns_at_zero"]), str(clock["name"])
        )
        TraceDir(opened, facts | {"state": "recovered"}).write(known)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{trace} does not say how it was recorded: {error!r}") from None
    return Recovered(
        trace, None, remark=f"the buffers of {trace} are gone; what had been written stays"
    )


def _finish(collector: Collector, session: SessionDir, trace: TraceDir) -> Recovered:
    collector.close()
    facts = trace.facts
    clock = _clockwork(collector, _numbers(facts, "clock"))
    calibration = _calibration(clock, facts)
    _complete_facts(facts, collector, session, clock)
    if not trace.directory.has_folder("info"):
        trace.directory.make("info").close()
    known, ended = _logged(trace)
    log = ProcessLog(trace.process_log())
    watch = ProcessWatch(collector, session, log, calibration.unix_ns)
    watch.skip(known, ended)
    watch.step()
    watch.give_up()
    stats = collector.finish()
    watch.sites()
    watch.close()
    facts |= completeness(stats) | {"state": "recovered"}
    trace.write(calibration, stats)
    return Recovered(trace.path, stats, watch.seen)


def _numbers(facts: dict[str, Any], name: str) -> dict[str, int]:
    """Return the entries of a part of the facts that can be times, in nanoseconds or ticks."""
    value = facts.get(name)
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: value for key, value in pairs if type(value) is int and abs(value) < _TIME_END}


def _clockwork(collector: Collector, clock: dict[str, int]) -> Clockwork:
    """Measure the clock from the begin of the killed recording, unless that lies in the future."""
    start_clock, start_unix_ns = collector.start
    first = CollectorTime(
        clock=clock.get("start", start_clock),
        unix_ns=clock.get("start_unix_ns", start_unix_ns),
        monotonic_ns=clock.get("start_monotonic_ns", 0),
        kind=collector.clock,
    )
    now = read_clock(collector.clock)
    is_past = first.clock <= now.clock and 0 < first.monotonic_ns <= now.monotonic_ns
    return Clockwork(collector.clock, first if is_past else None)


def _calibration(clock: Clockwork, facts: dict[str, Any]) -> Calibration:
    """Return the best calibration; the clock of an earlier boot cannot be measured any more."""
    known = _numbers(facts, "clock")
    if facts.get("boot_id", boot_id()) != boot_id() and known.get("frequency", 0) > 0:
        return Calibration(known["frequency"], known.get("unix_ns_at_zero", 0), clock.name)
    return clock.calibration()


def _complete_facts(
    facts: dict[str, Any], collector: Collector, session: SessionDir, clock: Clockwork
) -> None:
    """Fill in the facts that the killed recorder did not write, or that have a wrong type."""
    from nptltrace.recording.files.host import describe_host

    defaults = {
        **describe_host(),
        "command": [],
        "level": "",
        "handler": "ring",
        "nptl": "",
        "start_unix_ns": collector.start[1],
        "session_dir": os.fspath(session.path),
        "clock": {"name": clock.name, "start": collector.start[0]},
    }
    for name, value in defaults.items():
        if type(facts.get(name)) is not type(value):
            facts[name] = value
    facts["command"] = [str(word) for word in facts["command"]]
    if "filter" in facts:
        facts["filter"] = str(facts["filter"] or "")
    facts["uuid"] = collector.uuid


def _logged(trace: TraceDir) -> tuple[set[int], set[int]]:
    """Return the process images in the log, and the images with an end in the log."""
    known: set[int] = set()
    ended: set[int] = set()
    try:
        with trace.directory.inside("info") as info:
            lines = info.read("processes.jsonl").splitlines()
    except OSError:
        return known, ended
    for line in lines:
        try:
            value = json_of(line)
            if "process" in value:
                known.add(int(value["process"]["index"]))
            elif "exit" in value:
                ended.add(int(value["exit"]["process"]))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    # Ends a truncated line, so that it does not swallow the next line.
    with os.fdopen(trace.process_log(), "ab") as file:
        file.write(b"\n")
    return known, ended
