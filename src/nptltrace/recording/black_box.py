"""Runs a program with a black box: the process itself keeps its newest events."""

from __future__ import annotations

from nptltrace._binding.headers import ptt_abi
from nptltrace.errors import UsageError
from nptltrace.recording import launch
from nptltrace.recording.files.session import standard_error
from nptltrace.recording.settings.levels import HIGHEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from nptltrace.recording.settings.options import BufferOptions, RecordOptions

__all__ = ["handler_arguments", "run"]

# PTT_BOX_NAME, which stands in place of the session directory.
_NAME = "black-box"


def handler_arguments(buffers: BufferOptions, events: int) -> list[str]:
    """Return the arguments of the handler for a black box.

    Args:
        buffers: The memory of the box, and the depth of call stacks.
        events: How many events each thread keeps at least, about.

    Raises:
        UsageError: A number is too small or too large.
    """
    if not 1 <= events <= ptt_abi.PTT_BOX_EVENTS_MAX:
        raise UsageError(f"--black-box-events must be 1 to {ptt_abi.PTT_BOX_EVENTS_MAX}")
    if not ptt_abi.PTT_BOX_MEMORY_MIN <= buffers.budget <= ptt_abi.PTT_BOX_MEMORY_MAX:
        raise UsageError("--buffer-budget of a black box must be 1M to 1G")
    chunk = ptt_abi.PTT_CHUNK_SIZE_MIN
    while chunk < 2 * events * ptt_abi.PTT_SLOT_SIZE:  # as in ptt_box_chunk_size()
        chunk *= 2
    if buffers.budget < ptt_abi.PTT_BOX_CHUNKS_MIN * chunk:
        least = ptt_abi.PTT_BOX_CHUNKS_MIN * chunk >> 20
        raise UsageError(f"--black-box-events {events} needs --buffer-budget {least}M or more")
    if buffers.stack_all:
        raise UsageError("a black box has no room for --stacks all")
    if buffers.stack_user:
        raise UsageError("a black box has no room for --user-stacks")
    return [
        _NAME, f"events={events}", f"memory={buffers.budget}", f"stacks={buffers.stack_depth}"
    ]  # fmt: skip


def run(options: RecordOptions, events: int) -> NoReturn:
    """Execute a program with a black box, in place of this process.

    Args:
        options: The program, the levels, and the memory.
        events: How many events each thread keeps at least, about.

    Raises:
        UsageError: An option makes no sense, or the program cannot be traced.
        CannotRun: The program does not exist or cannot be executed.
    """
    if options.levels.highest >= HIGHEST:
        raise UsageError("a black box has no internal events: use --level 3 or less")
    arguments = [*handler_arguments(options.buffers, events), f"errors={standard_error()}"]
    program = launch.find_program(options.command[0])
    why = launch.why_untraceable(program)
    if why is not None:
        raise UsageError(f"{program} can have no black box: {why}")
    locks = None
    if options.locks is not None:
        from nptltrace.recording.lock_library import lock_library

        locks = lock_library(options.locks)
    environment = launch.environment(
        options, "ring", arguments, None, None if locks is None else str(locks)
    )
    launch.execute(program, options.command, environment)
