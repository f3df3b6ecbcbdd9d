"""What makes the flight recorder write a snapshot."""

from __future__ import annotations

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_SNAPSHOTS", "Triggers"]

MOST_SNAPSHOTS = 10


@dataclass(frozen=True)
class Triggers:
    """The reasons to write a snapshot by itself.

    Attributes:
        finding: `ptt check` finds something new in the buffers.
        min_wait_ns: A thread has waited for a lock for this time; 0 = no such reason.
        texts: Beginnings of the texts of user events.
        signal: SIGUSR1 to the recorder.
        most: The largest number of such snapshots.
    """

    finding: bool = False
    min_wait_ns: int = 0
    texts: tuple[str, ...] = ()
    signal: bool = False
    most: int = MOST_SNAPSHOTS

    def __bool__(self) -> bool:
        """Return whether there is a reason at all."""
        return self.finding or self.min_wait_ns > 0 or bool(self.texts) or self.signal

    @classmethod
    def of(cls, reasons: Sequence[tuple[str, str | int]], most: int | None) -> Triggers:
        """Put the values of `--snapshot-on` together.

        Args:
            reasons: Pairs: `finding` or `SIGUSR1` and an empty text; `user` and a text; `wait` and
                a time in ns.
            most: The largest number of snapshots; None = the default.

        Raises:
            UsageError: There is a largest number without a reason, or the number is not positive,
                or there are two times.
        """
        if most is not None and not reasons:
            raise UsageError("--max-snapshots needs --snapshot-on")
        if most is not None and most < 1:
            raise UsageError("--max-snapshots must be 1 or more")
        waits = [value for kind, value in reasons if kind == "wait"]
        if len(waits) > 1:
            raise UsageError("--snapshot-on wait>TIME can be given once")
        return cls(
            finding=any(kind == "finding" for kind, _ in reasons),
            min_wait_ns=int(waits[0]) if waits else 0,
            texts=tuple(str(value) for kind, value in reasons if kind == "user"),
            signal=any(kind == "SIGUSR1" for kind, _ in reasons),
            most=MOST_SNAPSHOTS if most is None else most,
        )
