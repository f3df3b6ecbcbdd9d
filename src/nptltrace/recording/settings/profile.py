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
        directory: Where the profiles go; None if they go elsewhere only.
        interval_ns: Time between two profiles.
        min_wait_ns: Leave out shorter waits; 0 = none.
        sample_wait_ns: Take one sample for so much waited time; 0 = count each wait.
        duty: Record for the first of these times in each period of the second, both in ns, since
            1970; None = all the time.
        urls: Where else the profiles go.
        metrics: A file or an address for metrics; empty = neither.
        tail_ns: Keep the events around waits of this time or longer; 0 = none.
        trace: A trace directory that keeps all events; None = no event is kept.
    """

    directory: Path | None
    interval_ns: int = 60_000_000_000
    min_wait_ns: int = 0
    sample_wait_ns: int = 0
    duty: tuple[int, int] | None = None
    urls: tuple[str, ...] = ()
    metrics: str = ""
    tail_ns: int = 0
    trace: Path | None = None

    def check(self) -> None:
        """Check that the options fit together.

        Raises:
            UsageError: The interval is too short, or a file has no directory.
        """
        if self.interval_ns < _SHORTEST_NS:
            raise UsageError("--interval must be 1s or more")
        if self.tail_ns and self.directory is None:
            raise UsageError("--tail needs a directory: name one with --to DIR")
