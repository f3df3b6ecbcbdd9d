"""Names for the rows of a model: threads, objects, call sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace._escaping import for_terminal
from nptltrace.analysis.objects import Objects, kind_of
from nptltrace.catalog import DOMAINS, LLL_PURPOSES
from nptltrace.trace.code.call_site import hex_of_site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["NamedObject", "Naming", "ThreadName"]

# Names of low-level locks by their purpose.
_PURPOSES = {
    "stdio": "stdio stream", "malloc": "malloc arena", "thread": "thread descriptor",
    "loader": "dynamic linker",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ThreadName:
    """Ids and name of a thread.

    Attributes:
        pid: Process id.
        tid: Kernel thread id; 0 for a thread that never ran.
        name: Name of the thread, or empty.
    """

    pid: int
    tid: int
    name: str

    def __str__(self) -> str:
        """Return the thread as `thread 12 (worker)`."""
        return f"thread {self.tid}" + (f" ({for_terminal(self.name)})" if self.name else "")


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object, as the base of its figures.

    Attributes:
        kind: Kind of the object.
        address: Address of the object.
        name: Global variable or alias, or empty.
    """

    kind: str
    address: int
    name: str

    @property
    def label(self) -> str:
        """The name of the object, or its address."""
        return self.name or f"{self.address:#x}"


class Naming:
    """Names rows of a model.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        threads: The model's table of threads.
        objects: The model's table of objects.
        sites: The model's table of sites.
    """

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols | None,
        threads: NDArray[Any],
        objects: NDArray[Any],
        sites: NDArray[Any],
    ) -> None:
        self._source, self._symbols = source, symbols
        self._threads, self._objects, self._sites = threads, objects, sites
        self._processes = source.processes
        self._number = {pair: n for n, pair in enumerate(source.thread_ids)}
        self._thread_names: dict[int, ThreadName] = {}

    def pid(self, process: int) -> int:
        """Return the process id of a process by its number."""
        return self._processes[process].pid if process < len(self._processes) else 0

    def thread(self, row: int) -> ThreadName:
        """Return a thread."""
        thread = self._thread_names.get(row)
        if thread is None:
            process, tid = int(self._threads["process"][row]), int(self._threads["tid"][row])
            number, first_ns = self._number.get((process, tid)), int(self._threads["first_ns"][row])
            name = "" if number is None else self._source.names.of(number, first_ns)
            thread = self._thread_names[row] = ThreadName(self.pid(process), tid, name)
        return thread

    def address(self, row: int) -> int:
        """Return the address of an object."""
        return int(self._objects["address"][row])

    def object_pid(self, row: int) -> int:
        """Return the process id of an object."""
        return self.pid(int(self._objects["process"][row]))

    def kind(self, row: int) -> str:
        """Return the kind of an object."""
        item = self._objects[row]
        user_types = self._source.lock_types(int(item["process"]))
        return kind_of(int(item["kind"]), int(item["flags"]), user_types)

    def object_name(self, row: int) -> str:
        """Return the name of an object, or the empty string."""
        return self.lasting_name(row) or self._name(row, domain=int(self._objects[row]["kind"]))

    def lasting_name(self, row: int) -> str:
        """Return the name of an object that is the same in other versions of the program, or empty.

        The name of a low-level lock that is no variable is its purpose.
        """
        item = self._objects[row]
        name = self._name(row)
        if name or int(item["kind"]) != DOMAINS["lll"]:
            return name
        number = int(item["flags"]) >> libptttrack_sums.TYPE_SHIFT
        purpose = _PURPOSES.get(LLL_PURPOSES[number]) if number < len(LLL_PURPOSES) else None
        return f"{purpose} {self.address(row):#x}" if purpose else ""

    def _name(self, row: int, domain: int = 0) -> str:
        if self._symbols is None:
            return ""
        item = self._objects[row]
        place = int(item["process"]), int(item["address"])
        return self._symbols.object_name(*place, domain, int(item["first_ns"]))

    def object(self, row: int) -> str:
        """Return the name of an object, or its address."""
        return self.object_name(row) or f"{self.address(row):#x}"

    def first_alike(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return for each object the index in `rows` of the first object it is counted with."""
        items = self._objects[rows]
        columns = (items[name] for name in ("process", "address", "kind", "init_site", "first_ns"))
        return Objects(*columns).first_alike(
            lambda at: bool(self.object_name(int(rows[at]))), self._symbols
        )

    def site(self, row: int) -> str:
        """Return a call site as text; empty if there is none."""
        if not row:
            return ""
        return self.site_at(int(self._sites["process"][row]), int(self._sites["address"][row]))

    def site_at(self, process: int, site: int) -> str:
        """Return a call site as text, by its process and address; empty if there is none."""
        if not site:
            return ""
        name = self._symbols.site_name(process, site) if self._symbols is not None else ""
        return name or hex_of_site(site)
