"""Options of a recording, as plain data."""

from __future__ import annotations

import enum

from nptltrace._binding.headers import ptt_abi
from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError
from nptltrace.recording.settings.levels import Levels
from nptltrace.recording.settings.triggers import Triggers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from nptltrace.recording.settings.filters import EventFilter
    from nptltrace.recording.settings.locks import Locks
    from nptltrace.recording.settings.profile import ProfileOptions

__all__ = ["BufferOptions", "HandlerChoice", "Policy", "RecordOptions", "WhenFull", "stacks_of"]

MIB = 1 << 20
CHUNK_MIN = ptt_abi.PTT_CHUNK_SIZE_MIN  # holds the longest event
CHUNKS_MIN = 4


class Policy(enum.IntEnum):
    """What happens when the buffers are full: the stream-full policies of POSIX tracing."""

    FLUSH = ptt_abi.PTT_POLICY_FLUSH  # drained while the program runs
    LOOP = ptt_abi.PTT_POLICY_LOOP  # the oldest events are overwritten
    UNTIL_FULL = ptt_abi.PTT_POLICY_UNTIL_FULL  # recording stops


class WhenFull(enum.IntEnum):
    """The action of a thread if the buffers have no room."""

    WAIT = ptt_abi.PTT_WHEN_FULL_WAIT
    DROP = ptt_abi.PTT_WHEN_FULL_DROP


@dataclass(frozen=True)
class BufferOptions:
    """Sizes and policies of the buffers and of the stream files.

    Attributes:
        budget: Bytes of all buffers together.
        chunk_size: Bytes of a buffer, a power of two.
        policy: What happens when all buffers are full.
        when_full: The action of a thread if all buffers are full.
        max_file_size: Greatest size of a stream file in bytes, then the next file begins; 0 = no
            limit.
        max_files: Number of files of a stream that are kept, the latest; 0 = all.
        stack_depth: Recorded frames of a call stack; 0 = no stacks.
        stack_all: Record the stack of every event, not only of waiters and holders.
        stack_user: Record the stacks of events of the program itself, too.
        sched: Threads report when they lost the processor, and for how long.
        switches: The kernel records context switches, if it allows that.
        python: Stacks show Python functions in place of frames of the interpreter.
        compact: Write compact stream files.
    """

    budget: int = 64 * MIB
    chunk_size: int = ptt_abi.PTT_CHUNK_SIZE
    policy: Policy = Policy.FLUSH
    when_full: WhenFull = WhenFull.WAIT
    max_file_size: int = 0
    max_files: int = 0
    stack_depth: int = 16
    stack_all: bool = False
    stack_user: bool = False
    sched: bool = False
    switches: bool = False
    python: bool = True
    compact: bool = False

    def native(self) -> dict[str, int]:
        """Return the fields of `struct ptt_collector_options`."""
        return {
            "budget": self.budget,
            "chunk_size": self.chunk_size,
            "policy": self.policy,
            "when_full": self.when_full,
            "max_file_size": self.max_file_size,
            "max_files": self.max_files,
            "stack_depth": self.stack_depth,
            "stack_all": self.stack_all,
            "stack_user": self.stack_user,
            "sched": self.sched,
            "python": self.python,
            "compact": self.compact,
        }

    def check(self) -> None:
        """Check that the options fit together.

        Raises:
            UsageError: Options contradict one another, or a file size is too small.
        """
        if self.max_files and not self.max_file_size:
            raise UsageError("--max-files needs --max-file-size")
        if self.max_file_size and self.max_file_size < MIB // 16:
            raise UsageError("--max-file-size must be 64K or more")
        if self.switches and self.policy != Policy.FLUSH:
            raise UsageError("--sched perf needs --stream-full-policy flush")
        if self.switches and self.max_file_size:
            raise UsageError("--sched perf cannot be combined with --max-file-size")


_WRITE_TRACES = ("ring", "shared", "file")


@dataclass(frozen=True)
class HandlerChoice:
    """The trace handler and its arguments.

    Attributes:
        name: A name (`ring`, `shared`, `file`, `text`) or a path.
        arguments: The user's arguments, in order.
    """

    name: str = "ring"
    arguments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HandlerChoice:
        """Parse `NAME[:ARG,…]`.

        Raises:
            UsageError: The name is empty, or an argument has a `:` or `;`.
        """
        name, _, rest = text.partition(":")
        if not name:
            raise UsageError(f"no handler named in {text!r}")
        if ":" in rest or ";" in rest:
            raise UsageError(f"the arguments of a handler hold no ':' or ';', as {rest!r} does")
        return cls(name, tuple(rest.split(",")) if rest else ())


@dataclass(frozen=True)
class RecordOptions:
    """Options of `ptt record`.

    Attributes:
        command: The program and its arguments.
        output: The trace directory; None = `ptt-<program>-<pid>`.
        force: Replace a trace in the trace directory.
        levels: Detail levels.
        delay_ns: Record no events until this time after the start of the program.
        duration_ns: Record events for this time; None = until the program has ended.
        filter: Recorded event types; None = all of the level.
        handler: The trace handler.
        nptl: `stock`, `auto`, or the path of a trace-enabled thread library; None = `auto` for
            internal events, else `stock`.
        locks: The functions of the user's own locks; None = no such locks.
        buffers: Sizes and policies.
        triggers: What makes the flight recorder write a snapshot.
        profile: Write a profile in place of a trace; None = write a trace.
        children: Follow child processes.
        java: Load an agent into Java virtual machines.
        original: Run the program untraced.
        verbosity: Messages on stderr: -1 only errors, 0 the result, too, 1 more.
    """

    command: tuple[str, ...]
    output: Path | None = None
    force: bool = False
    levels: Levels = Levels(2)
    delay_ns: int = 0
    duration_ns: int | None = None
    filter: EventFilter | None = None
    handler: HandlerChoice = HandlerChoice()
    nptl: str | None = None
    locks: Locks | None = None
    buffers: BufferOptions = BufferOptions()
    triggers: Triggers = Triggers()
    profile: ProfileOptions | None = None
    children: bool = True
    java: bool = True
    original: bool = False
    verbosity: int = 0

    def check(self) -> None:
        """Check that the options fit together.

        Raises:
            UsageError: Options contradict one another, buffers or files are too small, or there is
                an output for a handler that writes no trace.
        """
        self.buffers.check()
        if self.buffers.switches and self.handler.name != "ring":
            raise UsageError(f"--sched perf needs handler ring, not {self.handler.name}")
        if self.output is not None and self.handler.name not in _WRITE_TRACES:
            raise UsageError(
                f"--output is where a trace goes, and handler {self.handler.name} writes none: "
                "where its events go is an argument of its own, as in --handler text:FILE"
            )
        if self.buffers.compact and self.handler.name != "ring":
            raise UsageError(f"--compact needs handler ring, not {self.handler.name}")
        if self.triggers and self.buffers.policy != Policy.LOOP:
            raise UsageError("--snapshot-on needs --stream-full-policy loop")
        if self.triggers and self.handler.name != "ring":
            raise UsageError(f"--snapshot-on needs handler ring, not {self.handler.name}")
        if self.profile is not None:
            self._check_profile(self.profile)
        size = self.buffers.chunk_size
        if not CHUNK_MIN <= size <= MIB or size & (size - 1):
            raise UsageError("--buffer-size must be a power of two from 8K to 1M")
        if self.buffers.budget < CHUNKS_MIN * size:
            raise UsageError(f"--buffer-budget must have room for {CHUNKS_MIN} buffers or more")

    def _check_profile(self, profile: ProfileOptions) -> None:
        profile.check()
        if self.handler.name != "ring":
            raise UsageError(f"--profile needs handler ring, not {self.handler.name}")
        if self.buffers.policy != Policy.FLUSH:
            raise UsageError("--profile needs --stream-full-policy flush")
        if self.buffers.max_file_size:
            raise UsageError("--profile cannot be combined with --max-file-size")
        if self.buffers.switches:
            raise UsageError("--profile cannot be combined with --sched perf")


def stacks_of(asked: str, *, user: bool = False) -> dict[str, Any]:
    """Return the fields of `BufferOptions` for call stacks.

    Args:
        asked: Value of `--stacks`: a number of frames, or `all`.
        user: Record the stacks of events of the program itself, too.
    """
    every = asked == "all"
    return {"stack_depth": 64 if every else int(asked), "stack_all": every, "stack_user": user}
