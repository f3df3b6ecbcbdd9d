"""A file with which others see a confirmed suspicion: where and how long threads are held back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass
from nptltrace._files.whole import json_of, read_whole
from nptltrace.confirm.candidates import Candidate
from nptltrace.confirm.plan import Delays
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nptltrace.confirm.confirming import Confirmer

__all__ = ["Reproducer", "read_reproducer", "shrunk"]

_VERSION = 1
_MOST = 1 << 20
_LONGEST_NS = 60_000_000_000
# A smaller plan must confirm the suspicion in so many runs, one after the other.
_SURE = 3
_SHORTEST_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A suspicion, and the delays that confirmed it.

    Attributes:
        candidate: The suspicion.
        held_back: The numbers of the roles whose threads are held back.
        delays: How long they are held back.
    """

    candidate: Candidate
    held_back: tuple[int, ...]
    delays: Delays

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            PttError: The file cannot be written.
        """
        document = {
            "ptt_reproducer": _VERSION,
            "candidate": self.candidate.to_json(),
            "held_back": list(self.held_back),
            "each_ns": self.delays.each_ns,
            "total_ns": self.delays.total_ns,
            "early": self.delays.early,
        }
        try:
            path.write_text(f"{json.dumps(document, indent=2)}\n", "utf-8", "surrogateescape")
        except OSError as error:
            raise PttError(f"{path}: {error.strerror}") from None


def read_reproducer(path: Path) -> Reproducer:
    """Return the contents of a file that `Reproducer.write` wrote.

    Raises:
        UsageError: The file cannot be read, or has other contents.
    """
    try:
        document = json_of(read_whole(path, most=_MOST))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: no file of ptt reproduce: {error}") from None
    try:
        return _of(document)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: no file of ptt reproduce: {error}") from None


def _of(document: Any) -> Reproducer:
    if document["ptt_reproducer"] != _VERSION:
        raise ValueError("another version of PTT wrote it")
    candidate = Candidate.of_json(document["candidate"])
    times = [document[name] for name in ("each_ns", "total_ns")]
    numbers = document["held_back"]
    if any(
        isinstance(ns, bool) or not isinstance(ns, int) or not 0 < ns <= _LONGEST_NS for ns in times
    ):
        raise ValueError("a delay is a number of ns, up to a minute")
    early = document["early"]
    if early is not True and early is not False:
        raise ValueError("early is true or false")
    known = range(len(candidate.roles))
    if not isinstance(numbers, list) or not all(type(n) is int and n in known for n in numbers):
        raise ValueError("held_back lists roles by their numbers")
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError("held_back lists one or more roles, each once")
    return Reproducer(candidate, tuple(numbers), Delays(times[0], times[1], early=early))


def shrunk(confirmer: Confirmer, best: Reproducer) -> Reproducer:
    """Return the smallest plan that still confirms a suspicion: few roles, short delays.

    Args:
        confirmer: Runs the program.
        best: A plan that has confirmed the suspicion.
    """
    shorter = True
    while shorter:
        shorter = False
        for smaller in _smaller(best):
            if _is_sure(confirmer, smaller):
                best, shorter = smaller, True
                break
    return best


def _smaller(plan: Reproducer) -> Iterator[Reproducer]:
    """Yield plans with one role less, and with shorter delays."""
    for number in plan.held_back if len(plan.held_back) > 1 else ():
        rest = tuple(other for other in plan.held_back if other != number)
        yield Reproducer(plan.candidate, rest, plan.delays)
    each_ns = plan.delays.each_ns // 2
    if each_ns >= _SHORTEST_NS:
        yield Reproducer(
            plan.candidate,
            plan.held_back,
            Delays(each_ns, plan.delays.total_ns, early=plan.delays.early),
        )


def _is_sure(confirmer: Confirmer, plan: Reproducer) -> bool:
    return all(
        confirmer.confirm(
            plan.candidate, 1, delays=plan.delays, held_back=plan.held_back, keep=False
        ).outcome
        == "confirmed"
        for _ in range(_SURE)
    )
