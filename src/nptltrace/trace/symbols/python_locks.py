"""Names the semaphores of Python programs: locks, or parts of queues, events and the like.

Up to CPython 3.13, locks of the interpreter are semaphores. Their names come from the functions of
Python in the stack of their initialization. Functions of `threading`, `queue` and the like tell the
kind of object. The first other function tells where the program made it.
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

# Functions that have the name of the class of their results.
_CLASSES = frozenset({"RLock", "Lock"})
# Other functions that make a lock, with the class.
_LOCKS = {"allocate_lock": "Lock"}
_CLASS = re.compile(r"class\s+(\w+)")


class _Name(NamedTuple):
    """The name of the semaphores that were initialized in the same way.

    Attributes:
        text: The name.
        stays: Whether it is an object of the program, not made for a single wait.
        path: The variable or attribute that the program assigns it to; or empty.
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
        semaphores: The semaphores.
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
        """Return the name of the semaphore at an address, such as `Queue of main (app.py:12)`.

        The target of the assignment comes first, if it is known: `Pool.jobs = Queue of
        Pool.__init__ (app.py:12)`.

        Args:
            process: Number of the process.
            address: The address.
            at_ns: A time in its life; None for all semaphores at the address.

        Returns:
            The name; the empty string if no function of Python initialized the semaphore.
        """
        rows = self._semaphores.at(process, address, at_ns)
        names = list(dict.fromkeys(map(self._name_of_row, rows)))
        return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)

    def same(
        self, process: NDArray[Any], address: NDArray[Any], at_ns: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return a number for each place, with shape (places,): the same number for one name.

        Args:
            process: By place, the number of the process.
            address: By place, the address.
            at_ns: By place, a time in ns.

        Returns:
            The numbers; 0 without a semaphore.
        """
        if not len(self._semaphores):
            return 0 * at_ns
        rows = self._semaphores.rows(process, address, at_ns)
        _, which, turn = self._names
        return ((which + 1) * (len(turn) + 1) + turn)[rows] * (rows >= 0)

    def find(self, name: str) -> list[Chosen]:
        """Return all semaphores that have a name, or are assigned to a variable of the name."""
        names, which, _ = self._names
        return sorted(
            {
                Chosen(process, int(self._semaphores.address[row]), DOMAINS["sem"], begin, end)
                for number, candidate in enumerate(names)
                if name.startswith(candidate.text) or name == candidate.path
                for row in (which == number).nonzero()[0].tolist()
                if name in {self._name_of_row(row), candidate.path}
                for process, begin, end in self._semaphores.spans(row)
            }
        )

    def all_names(self) -> list[str]:
        """Return the names of all objects of the program, and the variables that have them."""
        names, which, _ = self._names
        rows = [row for row in range(len(which)) if names[which[row]].stays]
        return [*map(self._name_of_row, rows), *(name.path for name in names if name.path)]

    def _name_of_row(self, row: int) -> str:
        names, which, turn = self._names
        name = names[which[row]].text
        return f"{name} #{turn[row]}" if turn[row] else name

    @cached_property
    def _names(self) -> tuple[list[_Name], NDArray[np.int64], NDArray[np.int64]]:
        """All names, and by semaphore the index of its name and its turn with this name.

        The turn counts from 1. It is 0 for the only semaphore of a name, and for semaphores that
        are made for a single wait.
        """
        import numpy as np  # not for a recording

        differing, which = self._semaphores.differing()
        numbers: dict[tuple[int, _Name], int] = {}
        pairs = ((semaphore.process, self._name(semaphore)) for semaphore in differing)
        indices = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], np.int64)
        which = indices[which]
        order = np.lexsort((self._semaphores.ts_ns, which))
        counts = np.bincount(which, minlength=len(numbers))
        turn = np.zeros(len(which), np.int64)
        turn[order] = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        names = [name for _, name in numbers]
        counted = (counts > 1) & np.array([name.stays for name in names], bool)
        return names, which, np.where(counted[which], turn, 0)

    def _name(self, semaphore: Semaphore) -> _Name:
        key = (semaphore.process, semaphore.stack, semaphore.value > 0)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._of_stack(semaphore)
        if name == _END_OF_THREAD:
            thread = self._thread_name(semaphore.thread)
            text = f"{name.text} {self._threads[semaphore.thread][1]}"
            return _Name(f"{text} ({thread})" if thread else text, stays=False)
        return name

    def _of_stack(self, semaphore: Semaphore) -> _Name:
        process = semaphore.process
        sites = stack_sites(self._semaphores.stacks[process], semaphore.stack)
        made = how_made(
            self._processes[process], sites, self._symbols.passed_over, units=semaphore.value > 0
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
        # If the stack does not reach the program, the innermost function says more.
        at = made.inside - 1 if place else 0
        function = _qualified(made.functions[at]) if made.inside else ""
        # From 3.13 on, threads are parked at such semaphores.
        if not semaphore.value and made.purpose == c.PTT_FOR_HOLDER:
            owner = function.rpartition(".")[0].lstrip("_") or "mutex"
            return _at(f"{owner} first waited for in", place, stays=True)
        if function:
            name = _part_of(function, place)
        else:
            waits = made.simple and not semaphore.value
            what = "SimpleQueue" if made.simple else "Lock"
            name = _at(f"{what}.get in" if waits else f"{what} of", place, stays=not waits)
        return self._assigned(process, name, rest[0]) if rest and name.stays else name

    def _assigned(self, process: int, name: _Name, site: int) -> _Name:
        """Return a name with the target of the assignment at the place of the initialization."""
        number, instruction = code_and_offset(site)
        code = self._processes[process].codes.get(number)
        if code is None:
            return name
        target, callee = code.targets.get(code.line(instruction), ("", ""))
        if not target or _LOCKS.get(callee, callee) != name.text.partition(" ")[0]:
            return name
        return name._replace(text=f"{target} = {name.text}", path=target)


def _part_of(function: str, place: str) -> _Name:
    """Return the name of an object that a function of the library makes for its caller."""
    owner, _, method = function.rpartition(".")
    if method == "__init__" and owner:
        return _at(f"{owner.lstrip('_')} of", place, stays=True)
    if function in _CLASSES:
        return _at(f"{function} of", place, stays=True)
    return _at(f"{function} in", place, stays=False)


def _at(what: str, place: str, *, stays: bool) -> _Name:
    """Return a text with a place; without the last word if the place is unknown."""
    return _Name(f"{what} {place}" if place else what.rpartition(" ")[0], stays)


@cache
def _qualified(code: PythonCode) -> str:
    """Return the qualified name of a function.

    Before Python 3.11, code objects lack it. Then the class comes from the source. Without the
    source, the name of the module stands in its place.
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
