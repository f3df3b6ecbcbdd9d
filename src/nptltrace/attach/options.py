"""What an attachment is asked to do, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.recording.settings.options import RecordOptions

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.recording.settings.levels import Levels
    from nptltrace.recording.settings.options import BufferOptions

__all__ = ["AttachOptions"]


@dataclass(frozen=True, slots=True)
class AttachOptions:
    """All of `ptt attach`.

    Attributes:
        pid: The process.
        output: The trace directory.
        levels: Detail levels while it is attached.
        buffers: Sizes and policies.
        duration_ns: How long to record; None until somebody interrupts it, or the process ends.
        patience_ns: How long to look for a thread that can be stopped.
        force: Replace what is in the trace directory.
        verbosity: How much to say on stderr.
    """

    pid: int
    output: Path
    levels: Levels
    buffers: BufferOptions
    duration_ns: int | None = None
    patience_ns: int = 5_000_000_000
    force: bool = False
    verbosity: int = 0

    def recording(self, command: tuple[str, ...]) -> RecordOptions:
        """Return them as those of a recording."""
        return RecordOptions(
            command=command,
            output=self.output,
            force=self.force,
            levels=self.levels,
            buffers=self.buffers,
            children=False,
            verbosity=self.verbosity,
        )
