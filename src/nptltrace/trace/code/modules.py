"""Which module lies at an address of a process.

Several modules may have an address one after the other. Modules that share addresses form a range,
and each different module in it is a generation of the range. A call site holds its generation.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Protocol

from nptltrace._dataclasses import dataclass, field, replace
from nptltrace.trace.code.call_site import address_of_site, generation_of_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nptltrace.trace.code.python_code import PythonCode

__all__ = ["GENERATIONS", "Mapped", "Module", "ModuleMap", "Tenant", "is_interpreter"]

# The last generation that fits in the number of a call site.
GENERATIONS = 0x7FFF
_INTERPRETERS = ("python3", "libpython3")


@dataclass(frozen=True, slots=True)
class Module:
    """A file mapped into a process.

    Attributes:
        path: Where it was.
        build_id: Its build-id in hexadecimal, or empty.
        start: First address.
        end: First address behind it.
        offset: Where in the file `start` is.
        bias: What to add to an address of the file's own symbol table, if it is recorded.
        since: From when on calls are from it, in ticks of the trace's clock; 0 from the beginning,
            None if it was found in a later look at the process.
        runtime: The runtime of a language that it has inside, as the recorder found it.
        image: Another path to the mapped file while the process lives, if the file is gone.
    """

    path: str
    build_id: str
    start: int
    end: int
    offset: int = 0
    bias: int | None = None
    since: int | None = 0
    runtime: str = ""
    image: str = ""

    def joined(self, other: Module) -> Module:
        """Return it with another segment of the same file."""
        first = min(self, other, key=lambda module: module.start)
        return replace(first, end=max(self.end, other.end))

    @property
    def is_interpreter(self) -> bool:
        """Whether it is an interpreter of Python, or the library of one."""
        return is_interpreter(self.path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Tenant:
    """A module in a range that it shares with others, from a time on.

    Attributes:
        start: Where the range begins.
        end: Where it ends.
        module: The module.
        since: From when on, in ticks of the trace's clock.
        generation: Which of the range's modules it is.
    """

    start: int
    end: int
    module: Module
    since: int
    generation: int

    def native(self) -> tuple[int, ...]:
        """Return the fields in the order that they have in C."""
        module = self.module
        return self.start, self.end, module.start, module.end, self.since, self.generation, 0


@dataclass(slots=True)
class _Range:
    """Addresses that modules share."""

    start: int
    end: int
    spans: list[Module] = field(default_factory=list)
    generations: list[Module] = field(default_factory=list)


class ModuleMap:
    """The modules of a process by address.

    Args:
        modules: As the trace lists them.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        timed, untimed = _joined(modules)
        self._ranges = _overlapping(timed)
        starts = [found.start for found in self._ranges]
        # A look at the process found these modules, at an unknown time: they count where no other
        # module does.
        for module in untimed:
            at = bisect.bisect_right(starts, module.start) - 1
            before = at < 0 or self._ranges[at].end <= module.start
            if before and (at + 1 == len(starts) or module.end <= starts[at + 1]):
                self._ranges.insert(at + 1, _Range(module.start, module.end, [module], [module]))
                starts.insert(at + 1, module.start)
        self._starts = starts
        for found in self._ranges:
            first: dict[tuple[str, int], Module] = {}
            for module in found.spans:
                first.setdefault(_identity(module), module)
            found.generations = list(first.values())

    def at(self, site: int) -> Module | None:
        """Return the module that a call site lies in."""
        address = address_of_site(site)
        found = self._range(address)
        if found is None:
            return None
        number = generation_of_site(site)
        module = found.generations[min(number, len(found.generations) - 1)]
        return module if module.start <= address < module.end else None

    def only(self, address: int) -> Module | None:
        """Return the module that an address lies in, None if several have had it."""
        found = self._range(address)
        there = [m for m in found.generations if m.start <= address < m.end] if found else []
        return there[0] if len(there) == 1 else None

    def in_interpreter(self, address: int) -> bool:
        """Return whether an address lies in an interpreter of Python, or in its library."""
        module = self.only(address)
        return module is not None and module.is_interpreter

    def sites(self, address: int) -> list[int]:
        """Return the call sites that an address may be, one for each module that has had it."""
        found = self._range(address)
        there = found.generations if found else []
        return [
            number << 48 | address
            for number, module in enumerate(there[: GENERATIONS + 1])
            if module.start <= address < module.end
        ] or [address]

    def is_shared(self, address: int) -> bool:
        """Return whether several modules have had an address."""
        return len(self.sites(address)) > 1

    def caller(self, address: int, site: int) -> int | None:
        """Return the call site that an address is in the stack of another call site.

        Returns:
            The number of it; None if several modules have had the address and the other call site
            does not say which of them was there.
        """
        if not self.is_shared(address):
            return address
        if self._range(address) is not self._range(address_of_site(site)):
            return None
        return generation_of_site(site) << 48 | address

    def ranges(self) -> list[tuple[int, int]]:
        """Return where modules lie, without overlaps."""
        return [(found.start, found.end) for found in self._ranges]

    def modules(self) -> Iterator[Module]:
        """Yield each module once."""
        for found in self._ranges:
            yield from found.generations

    def tenants(self) -> Iterator[Tenant]:
        """Yield the modules that share ranges, by range and time."""
        for found in self._ranges:
            if len(found.generations) == 1:
                continue
            number = {_identity(m): n for n, m in enumerate(found.generations)}
            for module in found.spans:
                generation = min(number[_identity(module)], GENERATIONS)
                yield Tenant(found.start, found.end, module, module.since or 0, generation)

    def _range(self, address: int) -> _Range | None:
        at = bisect.bisect_right(self._starts, address) - 1
        return self._ranges[at] if at >= 0 and address < self._ranges[at].end else None


class Mapped(Protocol):
    """A process by which addresses are looked up."""

    @property
    def map(self) -> ModuleMap:
        """Which module lies at an address."""

    @property
    def start_unix_ns(self) -> int | None:
        """When it began: files without a build-id must not be younger."""

    @property
    def codes(self) -> Mapping[int, PythonCode]:
        """Code of Python and Java by the numbers that it has in stacks."""


def is_interpreter(name: str) -> bool:
    """Return whether the file name of a module is the name of a Python interpreter or library."""
    return name.startswith(_INTERPRETERS)


def _identity(module: Module) -> tuple[str, int]:
    """Return what distinguishes modules: their contents, and where these lie."""
    bias = module.start - module.offset if module.bias is None else module.bias
    return module.build_id or module.path, bias


def _joined(modules: Iterable[Module]) -> tuple[list[Module], list[Module]]:
    """Return modules with a time by time, and others; the segments of a file as one."""
    whole: dict[tuple[object, ...], Module] = {}
    for module in modules:
        # Without a bias, each segment stands alone, though all are segments of one file.
        place = None if module.bias is None else module.bias
        key = (module.path, module.build_id, place, module.since)
        known = whole.get(key)
        whole[key] = module if known is None else known.joined(module)
    # A later look at the process finds known modules again.
    known_ones = {_identity(m) for m in whole.values() if m.since is not None}
    timed = sorted((m for m in whole.values() if m.since is not None), key=lambda m: m.since or 0)
    untimed = [m for m in whole.values() if m.since is None and _identity(m) not in known_ones]
    return timed, untimed


def _overlapping(modules: list[Module]) -> list[_Range]:
    """Return the ranges of modules that share addresses, each with them in order of time."""
    ranges: list[_Range] = []
    order = sorted(range(len(modules)), key=lambda n: (modules[n].start, n))
    members: list[list[int]] = []
    for number in order:
        module = modules[number]
        if ranges and module.start < ranges[-1].end:
            ranges[-1].end = max(ranges[-1].end, module.end)
            members[-1].append(number)
        else:
            ranges.append(_Range(module.start, module.end))
            members.append([number])
    for found, numbers in zip(ranges, members, strict=True):
        found.spans = [modules[number] for number in sorted(numbers)]
    return ranges
