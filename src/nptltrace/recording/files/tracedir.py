"""Writes the metadata and `info/session.json` of a trace, at the begin and at the end."""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import suppress

from nptltrace._binding.headers.ptt_abi import PTT_CLOCK_MONOTONIC, PTT_CLOCK_TSC
from nptltrace._binding.libc import clock_error_ns
from nptltrace._binding.libpttcollect import read_clock
from nptltrace._version import __version__
from nptltrace.recording.files.host import clock_uuid, describe_host
from nptltrace.recording.files.tsdl_writer import (
    RECORDS,
    SLOTS,
    Calibration,
    metadata_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from nptltrace._binding.headers.collect import CollectorTime
    from nptltrace._binding.libpttcollect import Stats
    from nptltrace._files.directories import Directory
    from nptltrace.recording.settings.options import BufferOptions, RecordOptions

__all__ = ["Clockwork", "TraceDir", "losses"]

_CLOCK_NAMES = {PTT_CLOCK_TSC: "tsc", PTT_CLOCK_MONOTONIC: "monotonic"}
_GIGA = 10**9
# The first measurement of the clock takes this long; the last one uses the whole recording.
_FIRST_LOOK_NS = 2_000_000
# Reserved for the facts that are added at the end: the disk may be full by then.
_ROOM_FOR_MORE = 2048


class Clockwork:
    """Measures the clock of a trace against the time of day, more exactly with time.

    Args:
        kind: Kind of the clock, from the segment.
        first: The first reading, for the recovery of a recording.
    """

    def __init__(self, kind: int, first: CollectorTime | None = None) -> None:
        self._kind = kind
        self.first = first or read_clock(kind)

    @property
    def name(self) -> str:
        """Name of the clock: `tsc` or `monotonic`."""
        return _CLOCK_NAMES.get(self._kind, "unknown")

    def calibration(self) -> Calibration:
        """Return the calibration so far."""
        now, first = read_clock(self._kind), self.first
        if self.name == "monotonic":
            return Calibration(_GIGA, first.unix_ns - first.clock, self.name)
        while now.monotonic_ns - first.monotonic_ns < _FIRST_LOOK_NS:
            time.sleep(_FIRST_LOOK_NS / _GIGA)
            now = read_clock(self._kind)
        elapsed = now.monotonic_ns - first.monotonic_ns
        frequency = max(1, (now.clock - first.clock) * _GIGA // elapsed)
        return Calibration(frequency, first.unix_ns - first.clock * _GIGA // frequency, self.name)


def _sched(buffers: BufferOptions) -> str:
    if buffers.switches:
        return "perf"
    return "auto" if buffers.sched else "none"


def losses(stats: Stats) -> dict[str, int]:
    """Return the number of lost events by cause."""
    return {
        "buffers_full": stats.lost_full - stats.lost_real_time - stats.lost_stalled,
        "real_time": stats.lost_real_time,
        "recorder_stopped": stats.lost_stalled,
        "nobody_collected": stats.lost_closed,
        "too_many_threads": stats.lost_threads,
        "not_written": stats.lost_write,
        "unfinished": stats.unfinished,
    }


_UNTRACED = ".untraced"  # PTT_UNTRACED_FILE
SHORTENED = (
    "another program shortened the buffers of this recording: "
    "the events in them are lost, and nobody knows how many"
)


UNTRUE = (
    "the program overwrote counts of the tracer in its memory: "
    "how many events are lost is not known"
)


def completeness(stats: Stats) -> dict[str, str | bool]:
    """Return the facts about a finished recording as a whole."""
    facts: dict[str, str | bool] = {"state": "complete"}
    if stats.cut:
        facts = {"state": "recovered", "buffers_shortened": True}
    if stats.untrue:
        facts["counts_overwritten"] = True
    return facts


class TraceDir:
    """The trace directory during a recording.

    Args:
        directory: The directory, open and locked for the recording.
        facts: The content of `info/session.json`, without the counts.
    """

    def __init__(self, directory: Directory, facts: dict[str, Any]) -> None:
        self.directory = directory
        self.facts = facts

    @property
    def path(self) -> Path:
        """Path of the directory."""
        return self.directory.path

    @classmethod
    def describe(
        cls,
        directory: Directory,
        options: RecordOptions,
        *,
        uuid: str,
        session: Path,
        clock: Clockwork,
        nptl: str,
    ) -> TraceDir:
        """Gather the facts of a new recording."""
        facts = {
            "version": 1,
            "state": "running",
            "uuid": uuid,
            "command": list(options.command),
            "cwd": os.getcwd(),  # noqa: PTH109 -- as text
            "level": str(options.levels),
            "nptl": nptl,
            "handler": ":".join(
                filter(None, [options.handler.name, ",".join(options.handler.arguments)])
            ),
            "children": options.children,
            "policy": options.buffers.policy.name.lower().replace("_", "-"),
            "when_full": options.buffers.when_full.name.lower(),
            "budget": options.buffers.budget,
            "max_file_size": options.buffers.max_file_size,
            "max_files": options.buffers.max_files,
            "stacks": "all" if options.buffers.stack_all else options.buffers.stack_depth,
            "user_stacks": options.buffers.stack_user,
            "sched": _sched(options.buffers),
            "python": "auto" if options.buffers.python else "off",
            "session_dir": str(session),
            "recorder": {"pid": os.getpid(), "version": __version__},
            "clock": {
                "name": clock.name,
                "start": clock.first.clock,
                "start_unix_ns": clock.first.unix_ns,
                "start_monotonic_ns": clock.first.monotonic_ns,
                "spread_ns": clock.first.spread_ns,
                "max_error_ns": clock_error_ns(),
            },
            "start_unix_ns": clock.first.unix_ns,
            **describe_host(),
        }
        if options.buffers.compact:
            facts["coding"] = "compact"
        if options.filter is not None:
            facts |= options.filter.facts()
        if options.locks is not None:
            facts["lock_types"] = list(options.locks.types)
        return cls(directory, facts)

    def begin_untraced(self) -> None:
        """Create the file where processes without access to the session count themselves."""
        os.close(self.directory.create(_UNTRACED))

    def untraced(self) -> int:
        """Return the number of these processes so far."""
        try:
            return os.stat(_UNTRACED, dir_fd=self.directory.fd, follow_symlinks=False).st_size
        except OSError:
            return 0

    def end_untraced(self) -> int:
        """Remove that file, and return the number of processes."""
        count = self.untraced()
        with suppress(OSError):
            self.directory.unlink(_UNTRACED)
        return count

    def write(self, calibration: Calibration, stats: Stats | None = None) -> None:
        """Write metadata and `info/session.json`.

        Args:
            calibration: Calibration of the clock so far.
            stats: Counts of the recording after its end.

        Raises:
            OSError: A file cannot be written.
        """
        facts = self.facts
        facts["clock"].update(
            frequency=calibration.frequency, unix_ns_at_zero=calibration.unix_ns_at_zero
        )
        if stats is not None:
            facts["end_unix_ns"] = time.time_ns()
            facts["events"] = stats.events
            facts["bytes"] = stats.bytes
            facts["threads"] = stats.threads
            facts["lost"] = losses(stats)
            facts["lost_sites"] = stats.lost_sites
            facts["events_without_site"] = stats.without_site
            facts["events_without_stack"] = stats.without_stack
            facts["untraced_processes"] = stats.lost_processes + stats.unjoined
            facts["overwritten_bytes"] = stats.overwritten
            facts["removed_events"] = stats.removed
            facts["wait_ns"] = stats.wait_ns
            facts["write_error"] = os.strerror(stats.write_error) if stats.write_error else ""
        text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
        if stats is None:
            text = text.ljust(len(text) + _ROOM_FOR_MORE, "\n")
        self.directory.replace("metadata", self._metadata(calibration) + "\n" * 32)
        with self.directory.inside("info") as info:
            info.replace("session.json", text)

    def process_log(self) -> int:
        """Return a file descriptor that appends to `info/processes.jsonl`."""
        with self.directory.inside("info") as info:
            return info.append("processes.jsonl")

    def _metadata(self, calibration: Calibration) -> str:
        facts = self.facts
        major, minor, patch = [*__version__.split("."), "0", "0"][:3]
        env: dict[str, str | int] = {
            "hostname": facts["hostname"],
            "tracer_name": "nptltrace",
            "tracer_major": int(major),
            "tracer_minor": int(minor),
            "tracer_patch": int(patch),
            "kernel": facts["kernel"],
            "architecture": facts["machine"],
            "libc": facts["libc"],
            "boot_id": facts["boot_id"],
            "clock": calibration.name,
            "command": shlex.join(facts["command"]),
            "level": facts["level"],
            "handler": facts["handler"],
            "nptl": facts["nptl"],
        }
        if facts.get("filter"):
            env["filter"] = facts["filter"]
        return metadata_text(
            uuid=facts["uuid"],
            # A clock of an unknown boot is like no other.
            clock_uuid=(
                clock_uuid(calibration.name, facts["uuid"]) if facts["boot_id"] else facts["uuid"]
            ),
            calibration=calibration,
            env=env,
            stream_class=RECORDS if facts["handler"].partition(":")[0] == "shared" else SLOTS,
            compact=facts.get("coding") == "compact",
        )
