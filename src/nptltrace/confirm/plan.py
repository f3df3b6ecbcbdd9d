"""The file that tells the tracer where to hold threads back, and that tells what became of it.

`struct ptt_steer` in `ptt_abi.h` is its layout. The program's processes map the file.
"""

from __future__ import annotations

import mmap
import os
from ctypes import sizeof
from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace._dataclasses import dataclass
from nptltrace.errors import PttError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from nptltrace.confirm.candidates import Candidate, Place, Role

__all__ = ["VARIABLE", "Delays", "Plan"]

# The variable in the environment of the program with the path of the file.
VARIABLE = "PTT_STEER"
_MAGIC = b"PTTSTER1"
_NAME_MOST = ptt_abi.PTT_STEER_NAME - 1


@dataclass(frozen=True, slots=True)
class Delays:
    """How long threads are held back.

    Attributes:
        each_ns: Longest delay, in ns.
        total_ns: All delays of all threads together, in ns. Delays that have begun are finished.
        early: Hold threads back when they have taken their first lock, not when they ask for their
            second. PTT sees each lock that is taken, but not each request for a lock of another
            library. The threads then meet by their call sites, not by their locks.
    """

    each_ns: int
    total_ns: int
    early: bool = False


class Plan:
    """A plan in a new file. Use it in a `with` block: its end removes the file.

    Args:
        folder: A folder of this user alone.
        delays: How long threads are held back.
        groups: The suspicions to confirm, each with the numbers of the roles whose threads are held
            back; empty for random delays.
        seed: The seed of random delays.

    Raises:
        PttError: The file cannot be made, or the suspicion is too large.
    """

    def __init__(
        self, folder: Path, delays: Delays,
        groups: Sequence[tuple[Candidate, Sequence[int]]] = (), *, seed: int = 0,
    ) -> None:  # fmt: skip
        self.path = folder / "steer"
        self._size = sizeof(ptt_abi.Steer)
        candidates = [candidate for candidate, _ in groups]
        if not self.fits(candidates):
            raise PttError("the cycle has too many locks to steer a program into it")
        places = {place.key: place for each in candidates for place in each.places}
        self._places = list(places.values())
        roles = [(candidate, candidate.roles[n]) for candidate, its in groups for n in its]
        # The number of the suspicion of each role.
        self._of = [number for number, (_, its) in enumerate(groups) for _ in its]
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                # A store into a hole on a full file system would end the program.
                os.posix_fallocate(fd, 0, self._size)
                self._map = mmap.mmap(fd, self._size)
            finally:
                os.close(fd)
        except OSError as error:
            raise PttError(f"{self.path}: {error.strerror}") from None
        self._fields = ptt_abi.Steer.from_buffer(self._map)
        self._fill(delays, roles, seed)

    @staticmethod
    def fits(candidates: Sequence[Candidate]) -> bool:
        """Return whether a plan has room for suspicions."""
        places = {place.key for each in candidates for place in each.places}
        roles = sum(len(each.roles) for each in candidates)
        return len(places) <= ptt_abi.PTT_STEER_SITES and roles <= ptt_abi.PTT_STEER_ROLES

    def _fill(self, delays: Delays, roles: Sequence[tuple[Candidate, Role]], seed: int) -> None:
        fields = self._fields
        numbers = {place.key: number for number, place in enumerate(self._places, 1)}
        for place, site in zip(self._places, fields.site[: len(self._places)], strict=True):
            _fill_site(site, place)
        for (candidate, role), its in zip(roles, fields.role[: len(roles)], strict=True):
            places = (role.asked, role.held, role.after)
            its.asked, its.held, its.after = (0 if p is None else numbers[p.key] for p in places)
            if role.after is not None:
                its.meets = ptt_abi.PTT_STEER_FIRST if role.first else ptt_abi.PTT_STEER_BY_LOCKS
            elif delays.early:
                its.asked, its.meets = 0, ptt_abi.PTT_STEER_BY_ROLES
            elif candidate.across:
                its.meets = ptt_abi.PTT_STEER_BY_PROCESSES
        fields.sites, fields.roles = len(self._places), len(roles)
        fields.mode = ptt_abi.PTT_STEER_MEET if roles else ptt_abi.PTT_STEER_RANDOM
        fields.seed = seed
        fields.patience_ns, fields.total_ns = delays.each_ns, delays.total_ns
        fields.abi.magic, fields.abi.major = _MAGIC, ptt_abi.PTT_ABI_MAJOR
        fields.abi.minor, fields.abi.struct_size = ptt_abi.PTT_ABI_MINOR, self._size

    @property
    def each_ns(self) -> int:
        """The longest delay, in ns."""
        return int(self._fields.patience_ns)

    @property
    def processes(self) -> int:
        """The number of programs that have read the plan."""
        return int(self._fields.processes)

    @property
    def met(self) -> int:
        """How often the threads met: each asked for a lock that the next thread held."""
        return int(self._fields.met)

    def met_by(self, number: int) -> int:
        """Return how often all threads of a suspicion met, by its number in the plan."""
        return min((int(role.met) for role in self._roles(number)), default=0)

    def held_back(self, number: int) -> list[int]:
        """Return how often threads were held back for each role of a suspicion, by its number."""
        return [int(role.came) for role in self._roles(number)]

    def _roles(self, number: int) -> Iterator[ptt_abi.SteerRole]:
        """Yield the roles of a suspicion.

        A thread has the first role with its sites, so that role stands for others with these sites.
        """
        first: dict[tuple[int, int], ptt_abi.SteerRole] = {}
        for of, role in zip(self._of, self._fields.role[: len(self._of)], strict=True):
            if of == number:
                yield first.setdefault((role.asked, role.held), role)

    @property
    def delays(self) -> int:
        """The number of delays."""
        return int(self._fields.delays)

    @property
    def spent_ns(self) -> int:
        """The time of all delays, in ns."""
        return int(self._fields.spent_ns)

    def missed(self, candidate: Candidate) -> list[Place]:
        """Return the places of a suspicion that no thread has passed."""
        passed = {
            place.key
            for place, site in zip(
                self._places, self._fields.site[: len(self._places)], strict=True
            )
            if site.passed
        }
        return [place for place in candidate.places if place.key not in passed]

    def end_delays(self) -> None:
        """Hold nobody back any more."""
        self._fields.over = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.path.unlink(missing_ok=True)


def _fill_site(site: ptt_abi.SteerSite, place: Place) -> None:
    identity = bytes.fromhex(place.build_id)[: ptt_abi.PTT_STEER_ID]
    site.offset, site.id_size, site.python = place.offset, len(identity), place.python
    site.id[: len(identity)] = identity
    site.name = os.fsencode(place.file)[:_NAME_MOST]
