"""Locks, condition variables and semaphores of Python interpreters in opened traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.catalog.runtimes import is_unknown_python
from nptltrace.trace.objects.gils import find_gils
from nptltrace.trace.threads import ALL

if TYPE_CHECKING:
    from nptltrace.trace.info import Process
    from nptltrace.trace.objects.conditions import Condition
    from nptltrace.trace.objects.semaphores import Semaphores, Use
    from nptltrace.trace.open_traces import OpenTraces

__all__ = ["PythonObjects"]

_BUDGET = 1 << 26  # bytes of packets that are searched while a trace is still recorded


class PythonObjects:
    """Finds the purposes of objects of Python interpreters, and keeps the results.

    While a trace is still recorded, only its first events are searched.

    Args:
        traces: The opened traces.
    """

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces
        self._semaphores: Semaphores | None = None
        self._purposes: list[tuple[int, int, bool, int]] | None = None
        self._uses: list[Use] | None = None
        self._conditions: dict[int, dict[int, Condition]] | None = None
        self._gils: dict[int, tuple[int, ...]] = {}

    def forget(self) -> None:
        """Search again at the next question, since the traces have grown."""
        self._semaphores = self._purposes = self._uses = self._conditions = None
        self._gils.clear()

    @property
    def _budget(self) -> int:
        return _BUDGET if self._traces.running else ALL

    def semaphores(self) -> Semaphores | None:
        """Return the semaphores that have a stack of their initialization; None without Python."""
        traces = self._traces
        if self._semaphores is None and any(map(_runs_python, traces.processes)):
            from nptltrace.trace.objects.semaphores import find_semaphores

            self._semaphores = find_semaphores(
                traces.reader, traces.processes, traces.thread_ids, traces.parents(), self._budget
            )
        return self._semaphores

    def purposes(self) -> list[tuple[int, int, bool, int]]:
        """Return the purposes of semaphores; see `objects.semaphores.find_purposes`."""
        semaphores = self.semaphores()
        if self._purposes is None and semaphores is not None:
            from nptltrace.trace.objects.semaphores import find_purposes

            self._purposes = list(find_purposes(self._traces.processes, semaphores))
        return self._purposes or []

    def uses(self) -> list[Use]:
        """Return the uses of semaphores; see `objects.semaphores.find_uses`."""
        semaphores = self.semaphores()
        if self._uses is None and semaphores is not None:
            from nptltrace.trace.objects.semaphores import find_uses

            self._uses = list(find_uses(self._traces.processes, semaphores))
        return self._uses or []

    def gils(self, process: int) -> tuple[int, ...]:
        """Return the addresses of the GILs of a process; see `objects.gils.find_gils`."""
        if process not in self._gils:
            self._gils[process] = self._find_gils(process)
        return self._gils[process]

    def _find_gils(self, process: int) -> tuple[int, ...]:
        traces = self._traces
        map_ = traces.processes[process].map
        if not any(module.is_interpreter for module in map_.modules()):
            return ()
        if self._conditions is None:
            from nptltrace.trace.objects.conditions import find_conditions

            self._conditions = find_conditions(
                traces.reader, traces.processes, traces.thread_ids, self._budget
            )
        return find_gils(self._conditions.get(process, {}), map_.in_interpreter)


def _runs_python(process: Process) -> bool:
    """Return whether a process has functions of Python, or an interpreter of unknown version."""
    return bool(process.codes) or any(
        is_unknown_python(module.runtime) for module in process.map.modules()
    )
