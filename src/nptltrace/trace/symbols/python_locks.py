"""What the semaphores of Python programs are: locks, or parts of queues, events and the like.

The interpreter's locks are semaphores up to CPython 3.13. What one is, and whose, is known by the
functions of Python that were running when it was initialized: those of `threading`, `queue` and
the like say what it is a part of, and the first one outside of them where it was created.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace._binding.headers import pttmodel as c
from nptltrace.catalog import DOMAINS
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.code.python_code import code_and_offset, is_python
from nptltrace.trace.objects.chosen import Chosen
from nptltrace.trace.objects.purposes import how_made

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from nptltrace.trace.code.modules import Mapped
    from nptltrace.trace.code.python_code import PythonCode
    from nptltrace.trace.objects.semaphores import Semaphore, Semaphores
    from nptltrace.trace.symbols.location import Locations

__all__ = ["PythonLocks"]

# Functions that are called as the class is whose objects they return.
_CLASSES = frozenset({"RLock", "Lock"})
# Functions that make a lock, beside the class.
_LOCKS = {"allocate_lock": "Lock"}
_CLASS = re.compile(r"class\s+(\w+)")


class _Name(NamedTuple):
    """What semaphores that were initialized in the same way are called.

    Attributes:
        text: The name.
        stays: It is an object of the program's, and not there for a single wait.
        path: What the program has assigned it to, with the class or module; or nothing.
    """

    text: str
    stays: bool
    path: str = ""


_END_OF_THREAD = _Name("end of thread", stays=False)


class PythonLocks:
    """Names semaphores of Python programs.

    Args:
        symbols: Names addresses.
        processes: The processes by number.
        threads: (process, tid) of the threads by number.
        thread_name: Returns the name of a thread by its number, or the empty string.
        semaphores: What is known of their initialization.
    """

    def __init__(
        self,
        symbols: Locations,
        processes: Sequence[Mapped],
        threads: Sequence[tuple[int, int]],
        thread_name: Callable[[int], str],
        semaphores: Semaphores,
    ) -> None:
        self._symbols, self._processes, self._threads = symbols, processes, threads
        self._thread_name, self._semaphores = thread_name, semaphores
        self._known: dict[tuple[int, int, bool], _Name] = {}

    def name(self, process: int, address: int, at_ns: int | None = None) -> str:
        """Return what to call the semaphore at an address, as `Queue of main (app.py:12)`.

        Where it is known what the program assigned it to, that comes first, as in `Pool.jobs =
        Queue of Pool.__init__ (app.py:12)`.

        Args:
            process: Number of the process.
            address: The address.
            at_ns: A time at which it was there; None for all that lay there one after the other.

        Returns:
            The name; the empty string for what no function of Python initialized.
        """
        rows = self._semaphores.at(process, address, at_ns)
        found = list(dict.fromkeys(map(self._name_of_row, rows)))
        return f"{found[0]} and {len(found) - 1} more" if len(found) > 1 else "".join(found)

    def same(
        self, process: NDArray[Any], address: NDArray[Any], at_ns: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return a number for each of some semaphores: the same for those of one name, 0 for none.

        Args:
            process: Number of the process of each.
            address: Its address.
            at_ns: A time at which it was there.
        """
        if not len(self._semaphores):
            return 0 * at_ns
        rows = self._semaphores.rows(process, address, at_ns)
        _, which, turn = self._names
        return ((which + 1) * (len(turn) + 1) + turn)[rows] * (rows >= 0)

    def find(self, name: str) -> list[Chosen]:
        """Return all that have a name, or are assigned to it."""
        names, which, _ = self._names
        found = {
            Chosen(process, int(self._semaphores.address[row]), DOMAINS["sem"], begin_ns, end_ns)
            for number, one in enumerate(names)
            if name.startswith(one.text) or name == one.path
            for row in (which == number).nonzero()[0].tolist()
            if name in {self._name_of_row(row), one.path}
            for process, begin_ns, end_ns in self._semaphores.spans(row)
        }
        return sorted(found)

    def all_names(self) -> list[str]:
        """Return the names of all that stay, with what they are assigned to."""
        names, which, _ = self._names
        rows = [row for row in range(len(which)) if names[which[row]].stays]
        return [*map(self._name_of_row, rows), *(name.path for name in names if name.path)]

    def _name_of_row(self, row: int) -> str:
        names, which, turn = self._names
        name = names[which[row]].text
        return f"{name} #{turn[row]}" if turn[row] else name

    @cached_property
    def _names(self) -> tuple[list[_Name], NDArray[np.int64], NDArray[np.int64]]:
        """All names, which of them each semaphore has, and its turn among those of this name.

        The turn is 0 for one that is alone, or is there for a single wait.
        """
        import numpy as np  # not for a recording

        differing, which = self._semaphores.differing()
        numbers: dict[tuple[int, _Name], int] = {}
        pairs = ((one.process, self._name(one)) for one in differing)
        of = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], np.int64)
        which = of[which]
        order = np.lexsort((self._semaphores.ts_ns, which))
        counts = np.bincount(which, minlength=len(numbers))
        turn = np.zeros(len(which), np.int64)
        turn[order] = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        names = [name for _, name in numbers]
        counted = (counts > 1) & np.array([name.stays for name in names], bool)
        return names, which, np.where(counted[which], turn, 0)

    def _name(self, one: Semaphore) -> _Name:
        key = (one.process, one.stack, one.value > 0)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._of_stack(one)
        if name == _END_OF_THREAD:
            thread = self._thread_name(one.thread)
            text = f"{name.text} {self._threads[one.thread][1]}"
            return _Name(f"{text} ({thread})" if thread else text, stays=False)
        return name

    def _of_stack(self, one: Semaphore) -> _Name:
        process = one.process
        sites = stack_sites(self._semaphores.stacks[process], one.stack)
        made = how_made(
            self._processes[process], sites, self._symbols.passed_over, units=one.value > 0
        )
        if not made.functions:
            return _Name("", stays=False)
        rest = list(filter(is_python, sites))[made.inside :]
        place = str(self._symbols.location(process, rest[0])) if rest else ""
        if made.imports or made.imported:
            what = "import lock of" if made.imports else "Lock made in an import by"
            return _at(what, place, stays=made.imported)
        if made.purpose == c.PTT_FOR_END and made.units:
            return _END_OF_THREAD
        # Of a stack that does not reach the program, the innermost function says more.
        at = made.inside - 1 if place else 0
        function = _qualified(made.functions[at]) if made.inside else ""
        # What a thread is parked at, from 3.13 on.
        if not one.value and made.purpose == c.PTT_FOR_HOLDER:
            owner = function.rpartition(".")[0].lstrip("_") or "mutex"
            return _at(f"{owner} first waited for in", place, stays=True)
        if function:
            found = _part_of(function, place)
        else:
            waits = made.simple and not one.value
            what = "SimpleQueue" if made.simple else "Lock"
            found = _at(f"{what}.get in" if waits else f"{what} of", place, stays=not waits)
        return self._assigned(process, found, rest[0]) if rest and found.stays else found

    def _assigned(self, process: int, name: _Name, site: int) -> _Name:
        """Return the name of what was made at a place with what it was assigned to there."""
        number, instruction = code_and_offset(site)
        code = self._processes[process].codes.get(number)
        if code is None:
            return name
        target, callee = code.targets.get(code.line(instruction), ("", ""))
        if not target or _LOCKS.get(callee, callee) != name.text.partition(" ")[0]:
            return name
        return name._replace(text=f"{target} = {name.text}", path=target)


def _part_of(function: str, place: str) -> _Name:
    """Return what was initialized in a function of the library, which a place has called."""
    owner, _, method = function.rpartition(".")
    if method == "__init__" and owner:
        return _at(f"{owner.lstrip('_')} of", place, stays=True)
    if function in _CLASSES:
        return _at(f"{function} of", place, stays=True)
    return _at(f"{function} in", place, stays=False)


def _at(what: str, place: str, *, stays: bool) -> _Name:
    """Return what is at a place; the last word is for places that are known."""
    return _Name(f"{what} {place}" if place else what.rpartition(" ")[0], stays)


@cache
def _qualified(code: PythonCode) -> str:
    """Return the name of a function with that of its class, which it has not before 3.11.

    Then the source says it, where it is there; else the module stands for it.
    """
    if "." in code.function or code.function in _CLASSES:
        return code.function
    path = Path(code.path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[: code.first_line]
    except (OSError, UnicodeDecodeError):
        lines = []
    if not lines or f"def {code.function}" not in lines[-1]:
        return f"{path.stem}.{code.function}"
    if not lines[-1].startswith((" ", "\t")):
        return code.function
    owner = next(filter(None, map(_CLASS.match, reversed(lines))), None)
    return f"{owner[1]}.{code.function}" if owner else code.function
