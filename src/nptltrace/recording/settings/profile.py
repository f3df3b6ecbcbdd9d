"""Options of a profile: which waits it counts, how often it is written, and where to."""

from __future__ import annotations

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ProfileOptions"]

_SHORTEST_NS = 1_000_000_000


@dataclass(frozen=True)
class ProfileOptions:
    """Options of `ptt record --profile`.

    Attributes:
        directory: Where the profiles go.
        interval_ns: Time between two profiles.
        min_wait_ns: Leave out shorter waits; 0 = none.
        sample_wait_ns: Take one sample for so much waited time; 0 = count each wait.
        trace: A trace directory that keeps all events; None = no event is kept.
    """

    directory: Path
    interval_ns: int = 60_000_000_000
    min_wait_ns: int = 0
    sample_wait_ns: int = 0
    trace: Path | None = None

    def check(self) -> None:
        """Check that the options fit together.

        Raises:
            UsageError: The interval is too short.
        """
        if self.interval_ns < _SHORTEST_NS:
            raise UsageError("--interval must be 1s or more")
