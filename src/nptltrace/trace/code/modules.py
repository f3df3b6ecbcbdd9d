"""The modules of a process by address.

Several modules may have an address, one after the other. Modules that share addresses form a range.
Each different module of the range is a generation. A call site holds its generation.
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

# The greatest generation that fits in the number of a call site.
GENERATIONS = 0x7FFF
_INTERPRETERS = ("python3", "libpython3")


@dataclass(frozen=True, slots=True)
class Module:
    """A file mapped into a process.

    Attributes:
        path: Path of the file.
        build_id: Its build-id in hexadecimal, or empty.
        start: First address.
        end: First address behind the module.
        offset: Offset of `start` in the file.
        bias: Load bias, to add to addresses of the file's symbol table; None if not recorded.
        since: When the module was mapped, in ticks of the trace's clock; 0 for the beginning, None
            for a module that a later list shows.
        runtime: Runtime of a language inside the file, as the recorder found it; or empty.
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
        """Return one module of this segment and another segment of the same file."""
        first = min(self, other, key=lambda module: module.start)
        return replace(first, end=max(self.end, other.end))

    @property
    def is_interpreter(self) -> bool:
        """Whether it is a Python interpreter or its library."""
        return is_interpreter(self.path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Tenant:
    """A module in a shared range, from a time on.

    Attributes:
        start: First address of the range.
        end: First address behind the range.
        module: The module.
        since: When the module was mapped, in ticks of the trace's clock.
        generation: Number of the module in the range.
    """

    start: int
    end: int
    module: Module
    since: int
    generation: int

    def native(self) -> tuple[int, ...]:
        """Return the fields in the order of the C struct."""
        module = self.module
        return self.start, self.end, module.start, module.end, self.since, self.generation, 0


@dataclass(slots=True)
class _Range:
    """A range of addresses of one module, or of several modules that share addresses."""

    start: int
    end: int
    spans: list[Module] = field(default_factory=list)
    generations: list[Module] = field(default_factory=list)


class ModuleMap:
    """Finds the modules of a process by address.

    Args:
        modules: The modules as the trace lists them.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        timed, untimed = _joined(modules)
        self._ranges = _overlapping(timed)
        starts = [range_.start for range_ in self._ranges]
        # Nobody knows when these modules came: they count only where no other module lies.
        for module in untimed:
            at = bisect.bisect_right(starts, module.start) - 1
            before = at < 0 or self._ranges[at].end <= module.start
            if before and (at + 1 == len(starts) or module.end <= starts[at + 1]):
                self._ranges.insert(at + 1, _Range(module.start, module.end, [module], [module]))
                starts.insert(at + 1, module.start)
        self._starts = starts
        for range_ in self._ranges:
            first: dict[tuple[str, int], Module] = {}
            for module in range_.spans:
                first.setdefault(_identity(module), module)
            range_.generations = list(first.values())

    def at(self, site: int) -> Module | None:
        """Return the module of a call site, or None."""
        address = address_of_site(site)
        range_ = self._range(address)
        if range_ is None:
            return None
        number = generation_of_site(site)
        module = range_.generations[min(number, len(range_.generations) - 1)]
        return module if module.start <= address < module.end else None

    def only(self, address: int) -> Module | None:
        """Return the module at an address; None if there is none, or several had the address."""
        range_ = self._range(address)
        modules = [m for m in range_.generations if m.start <= address < m.end] if range_ else []
        return modules[0] if len(modules) == 1 else None

    def in_interpreter(self, address: int) -> bool:
        """Return whether an address lies in a Python interpreter or its library."""
        module = self.only(address)
        return module is not None and module.is_interpreter

    def sites(self, address: int) -> list[int]:
        """Return the possible call sites of an address: one for each module that had it."""
        range_ = self._range(address)
        modules = range_.generations if range_ else []
        return [
            number << 48 | address
            for number, module in enumerate(modules[: GENERATIONS + 1])
            if module.start <= address < module.end
        ] or [address]

    def is_shared(self, address: int) -> bool:
        """Return whether several modules had an address, one after the other."""
        return len(self.sites(address)) > 1

    def caller(self, address: int, site: int) -> int | None:
        """Return the call site of an address in a stack.

        Args:
            address: An address in the stack.
            site: Another call site of the stack. It tells the generation of its range.

        Returns:
            The call site; None if several modules had the address and `site` lies in another range.
        """
        if not self.is_shared(address):
            return address
        if self._range(address) is not self._range(address_of_site(site)):
            return None
        return generation_of_site(site) << 48 | address

    def ranges(self) -> list[tuple[int, int]]:
        """Return begin and end of all ranges of modules; they do not overlap."""
        return [(range_.start, range_.end) for range_ in self._ranges]

    def modules(self) -> Iterator[Module]:
        """Yield each module once."""
        for range_ in self._ranges:
            yield from range_.generations

    def tenants(self) -> Iterator[Tenant]:
        """Yield the modules of shared ranges, ordered by range and time."""
        for range_ in self._ranges:
            if len(range_.generations) == 1:
                continue
            number = {_identity(m): n for n, m in enumerate(range_.generations)}
            for module in range_.spans:
                generation = min(number[_identity(module)], GENERATIONS)
                yield Tenant(range_.start, range_.end, module, module.since or 0, generation)

    def _range(self, address: int) -> _Range | None:
        at = bisect.bisect_right(self._starts, address) - 1
        return self._ranges[at] if at >= 0 and address < self._ranges[at].end else None


class Mapped(Protocol):
    """A process with named addresses."""

    @property
    def map(self) -> ModuleMap:
        """The modules by address."""

    @property
    def start_unix_ns(self) -> int | None:
        """When the process began. Files without a build-id must not be younger."""

    @property
    def codes(self) -> Mapping[int, PythonCode]:
        """Code objects of Python and Java by their numbers in stacks."""


def is_interpreter(name: str) -> bool:
    """Return whether a file name is the name of a Python interpreter or its library."""
    return name.startswith(_INTERPRETERS)


def _identity(module: Module) -> tuple[str, int]:
    """Return the identity of a module: its contents, and where they lie."""
    bias = module.start - module.offset if module.bias is None else module.bias
    return module.build_id or module.path, bias


def _joined(modules: Iterable[Module]) -> tuple[list[Module], list[Module]]:
    """Return modules with a time, ordered by it, and modules without; one module for each file."""
    whole: dict[tuple[object, ...], Module] = {}
    for module in modules:
        key = (module.path, module.build_id, module.bias, module.since)
        segment = whole.get(key)
        whole[key] = module if segment is None else segment.joined(module)
    # Later lists of modules show known modules again.
    known = {_identity(m) for m in whole.values() if m.since is not None}
    timed = sorted((m for m in whole.values() if m.since is not None), key=lambda m: m.since or 0)
    untimed = [m for m in whole.values() if m.since is None and _identity(m) not in known]
    return timed, untimed


def _overlapping(modules: list[Module]) -> list[_Range]:
    """Return the ranges of modules that share addresses. `spans` are in order of time."""
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
    for range_, numbers in zip(ranges, members, strict=True):
        range_.spans = [modules[number] for number in sorted(numbers)]
    return ranges
