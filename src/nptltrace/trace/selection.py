"""Selects events: reads filter options, and makes native filters from them.

Commas in an option separate alternatives. If an option is repeated, each of its repetitions must
match. Callers in Python pass values of tables in place of options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace.catalog import EVENTS
from nptltrace.errors import UsageError, near
from nptltrace.trace.code.call_site import address_of_site
from nptltrace.trace.objects.chosen import Chosen, common

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = [
    "Choice", "Selection", "address_of", "event_names", "like_names", "plain", "selection_of",
]  # fmt: skip

_One = TypeVar("_One", bound=tuple[int, ...])

# A value or several values, and any of them matches: process ids, thread ids, names or addresses.
# Columns of Arrow, NumPy and pandas are accepted too.
Choice = SupportsIndex | str | Iterable[SupportsIndex | str] | None

# How many similar names a message suggests, and how many names are compared for that.
_HINTS = 3
_COMPARED = 20_000
_COMPILER_MADE = re.compile(r"(typeinfo|vtable|VTT|guard variable|construction vtable)\b.* for ")
_HEX = re.compile(r"0[xX][0-9a-fA-F]+")
_NUMBERED = re.compile(r"(0[xX][0-9a-fA-F]+)#([0-9]{1,9})")


def event_names() -> list[str]:
    """Return the names of all event types, once each, in the order of the catalogue."""
    return list(dict.fromkeys(event.name for event in EVENTS))


def address_of(text: str) -> int | None:
    """Return the address of a text such as 0x7f10; None for a name.

    Raises:
        UsageError: The address has more than 64 bits.
    """
    if not _HEX.fullmatch(text):
        return None
    value = int(text, 16)
    if value >= 2**64:
        raise UsageError(f"{text} is not an address")
    return value


@dataclass(frozen=True, slots=True)
class Selection:
    """The filter options. Each list has the repetitions of one option.

    Attributes:
        pids: `--pid`.
        tids: `--tid`.
        objects: `--object`, addresses or names. `ADDRESS#N` is the object of generation N at an
            address.
        events: `--event`, beginnings of event names.
        suffixes: `--suffix`, ends of event names.
        sites: `--site`, addresses or parts of names.
        scheduler: Let events of the scheduler (`SCHED_*`) pass if no event type is chosen.
        generation: Returns the objects at an address with a generation; None: `ADDRESS#N` counts
            as a name.
    """

    pids: Sequence[str] = field(default_factory=list)
    tids: Sequence[str] = field(default_factory=list)
    objects: Sequence[str] = field(default_factory=list)
    events: Sequence[str] = field(default_factory=list)
    suffixes: Sequence[str] = field(default_factory=list)
    sites: Sequence[str] = field(default_factory=list)
    scheduler: bool = True
    generation: Callable[[Traceset, int, int], list[Chosen]] | None = None

    def __bool__(self) -> bool:
        """Return whether an option is given."""
        lists = (self.pids, self.tids, self.objects, self.events, self.suffixes, self.sites)
        return any(lists) or not self.scheduler

    def event_ids(self) -> set[int] | None:
        """Return the ids of the events that pass; None for all.

        Raises:
            UsageError: No event type has such a name.
        """
        passing = {event.id: event.name for event in EVENTS}
        if not self.events and not self.suffixes:
            if self.scheduler:
                return None
            return {i for i, name in passing.items() if not name.startswith("SCHED_")}
        for option in self.events:
            starts = tuple(word.upper() for word in _words(option, "--event"))
            passing = {i: name for i, name in passing.items() if name.startswith(starts)}
        for option in self.suffixes:
            ends = tuple(word.upper() for word in _words(option, "--suffix"))
            passing = {i: name for i, name in passing.items() if name.endswith(ends)}
        if not passing:
            options = " ".join([*self.events, *self.suffixes])
            raise UsageError(f"no event type matches {options} (ptt stat -l lists them)")
        return set(passing)

    def build(
        self,
        source: Traceset,
        symbols: Symbols,
        *,
        threads: Iterable[int] | None = None,
        objects: Iterable[Chosen] | None = None,
    ) -> libpttread.Filter:
        """Return the native filter for the present contents of the traceset.

        Args:
            source: The opened traces.
            symbols: Names addresses.
            threads: Only these threads (by number) may pass; None for all.
            objects: Only these objects may pass; None for all.

        Raises:
            UsageError: An option has a wrong value, or nothing has a given name.
        """
        result = libpttread.Filter()
        ids = self.event_ids()
        if ids is not None:
            result.allow_events(ids)
        numbers = self.thread_numbers(source)
        if numbers is not None and threads is not None:
            numbers = sorted(set(numbers).intersection(threads))
        if numbers is not None or threads is not None:
            result.allow_threads(numbers if numbers is not None else list(threads or ()))
        chosen = self.chosen_objects(source, symbols)
        if chosen is not None and objects is not None:
            chosen = sorted(common(chosen, objects))
        if chosen is not None or objects is not None:
            result.allow_objects(chosen if chosen is not None else objects or ())
        sites = self.site_pairs(source, symbols)
        if sites is not None:
            result.allow_sites(sites)
        return result

    def thread_numbers(self, source: Traceset) -> list[int] | None:
        """Return the numbers of the threads that pass; None for all."""
        if not self.pids and not self.tids:
            return None
        processes = source.processes
        rows = [
            (n, processes[process].pid, tid) for n, (process, tid) in enumerate(source.thread_ids)
        ]
        for option in self.pids:
            wanted = _numbers(option, "--pid")
            rows = [row for row in rows if row[1] in wanted]
        for option in self.tids:
            wanted = _numbers(option, "--tid")
            rows = [row for row in rows if row[2] in wanted]
        return [row[0] for row in rows]

    def chosen_objects(self, source: Traceset, symbols: Symbols) -> list[Chosen] | None:
        """Return the objects that pass; None for all.

        A name stands for all objects of that name. An address stands for all objects that were
        there, one after the other.

        Raises:
            UsageError: No object has such a name.
        """
        if not self.objects:
            return None

        def find(word: str) -> list[Chosen]:
            return self._objects(word, source, symbols)

        return sorted(_all(self.objects, find, "--object", common))

    def site_pairs(self, source: Traceset, symbols: Symbols) -> list[tuple[int, int]] | None:
        """Return (process, site) of the call sites that pass; None for all."""
        if not self.sites:
            return None
        by_name = any(address_of(w) is None for o in self.sites for w in _words(o, "--site"))
        known = [
            (process, site, symbols.site_name(process, site))
            for process, site in (source.chosen.everywhere() if by_name else ())
        ]

        def find(word: str) -> list[tuple[int, int]]:
            address = address_of(word)
            if address is not None:
                return [(libpttread.ANY, address)]
            return [(process, site) for process, site, name in known if word in name]

        return sorted(_all(self.sites, find, "--site", _common))

    def _objects(self, word: str, source: Traceset, symbols: Symbols) -> list[Chosen]:
        """Return the objects that one word chooses."""
        numbered = _NUMBERED.fullmatch(word)
        if numbered and self.generation is not None:
            address = address_of(numbered[1]) or 0
            objects = self.generation(source, address, int(numbered[2]))
            if not objects:
                raise UsageError(f"no object is {word} (ptt sql has them in the table objects)")
            return objects
        return _objects(word, symbols)


def _pieces(option: str) -> Iterator[str]:
    """Split an option at its commas. Commas in brackets belong to the name of a C++ function."""
    depth = begin = 0
    for at, letter in enumerate(option):
        if letter in "<([":
            depth += 1
        elif letter in ">)]":
            depth = max(depth - 1, 0)
        elif letter == "," and not depth:
            yield option[begin:at]
            begin = at + 1
    yield option[begin:]


def _words(option: str, name: str) -> list[str]:
    words = [word.strip() for word in _pieces(option)]
    if not all(words):
        raise UsageError(f"{name}: an empty value in {option!r}")
    return words


def _numbers(option: str, name: str) -> set[int]:
    try:
        return {int(word) for word in _words(option, name)}
    except ValueError:
        raise UsageError(f"{name} takes numbers, not {option!r}") from None


def _all(
    options: Sequence[str], find: Callable[[str], list[_One]], name: str,
    both: Callable[[set[_One], set[_One]], set[_One]],
) -> set[_One]:  # fmt: skip
    """Return the elements that every repetition allows; `both` intersects two of them."""
    passing: set[_One] | None = None
    for option in options:
        allowed = {pair for word in _words(option, name) for pair in find(word)}
        passing = allowed if passing is None else both(passing, allowed)
    return passing or set()


def _common(some: set[tuple[int, int]], others: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the (process, call site) that are in both; ANY stands for every process."""
    free = {address for process, address in some if process == libpttread.ANY}
    also = {address for process, address in others if process == libpttread.ANY}
    return {
        pair
        for pair in some | others
        if (pair in some or address_of_site(pair[1]) in free)
        and (pair in others or address_of_site(pair[1]) in also)
    }


def _objects(word: str, symbols: Symbols) -> list[Chosen]:
    address = address_of(word)
    if address is not None:
        return [Chosen(libpttread.ANY, address)]
    objects = symbols.choose_object(word)
    if not objects:
        hint = like_names(word, symbols.object_names())
        raise UsageError(f"no global variable, alias or lock is called {word}{hint}")
    return objects


def like_names(word: str, names: Sequence[str]) -> str:
    """Return the end of a message about an unknown name.

    Args:
        word: The unknown name.
        names: All known names. The message suggests names that contain the word in any case, or
            else similar names. Names that the compiler made, such as vtables, are left out.
    """
    known = [name for name in names if not _COMPILER_MADE.match(name)]
    parts = [name for name in known if word.lower() in name.lower()][:_HINTS]
    return f"; did you mean {' or '.join(parts)}?" if parts else near(word, known[:_COMPARED])


def plain(value: Any) -> Any:
    """Return a scalar of Arrow or NumPy as a value of Python; any other value unchanged."""
    for convert in ("as_py", "item"):
        if hasattr(value, convert) and not hasattr(value, "__len__"):
            return getattr(value, convert)()
    return value


def selection_of(
    pid: Choice, tid: Choice, object_: Choice, site: Choice,
    generation: Callable[[Traceset, int, int], list[Chosen]],
) -> Selection:  # fmt: skip
    """Return the selection of these choices.

    Args:
        pid: Process ids.
        tid: Thread ids.
        object_: Addresses or names of objects.
        site: Addresses or names of call sites.
        generation: As in `Selection`.

    Raises:
        UsageError: A value is neither a number nor text, or a choice is empty.
    """
    return Selection(
        pids=_option("pid", pid, str),
        tids=_option("tid", tid, str),
        objects=_option("object", object_, hex),
        sites=_option("site", site, hex),
        generation=generation,
    )


def _option(name: str, choice: Choice, number: Any) -> list[str]:
    """Return the values of an option, in the form of the command line."""
    if choice is None:
        return []
    single = isinstance(plain(choice), Integral | str)
    values = [plain(value) for value in ([choice] if single else choice)]  # type: ignore[union-attr]
    for value in values:
        if not isinstance(value, Integral | str):
            raise UsageError(f"{name} takes numbers or text, not {value!r}")
    if not values:
        raise UsageError(f"{name} is an empty list; leave it out to choose everything")
    return [",".join(v if isinstance(v, str) else number(int(v)) for v in values)]
