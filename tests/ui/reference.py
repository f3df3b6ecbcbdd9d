"""The reference for the levels of detail: waits and holds from the tables of the analysis."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace.analysis.model import model_tables
from nptltrace.api import Traceset
from nptltrace.ui import protocol
from nptltrace.ui.jobs import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from nptltrace.ui.viewer import Viewer

__all__ = ["Reference", "ask", "ask_once", "column"]


@dataclass
class Reference:
    """Waits and holds by row.

    Attributes:
        spans: Start times and durations by (row, state).
        waits: The table of waits.
    """

    spans: dict[tuple[int, int], tuple[NDArray[Any], NDArray[Any]]]
    waits: Any

    @classmethod
    def of(cls, trace: Path, viewer: Viewer, by: str) -> Reference:
        """Return the waits and holds of a trace, with the rows of the viewer."""
        tables = model_tables(Traceset(trace))
        rows = viewer._worker.rows()
        spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for table, is_wait in ((tables.waits, True), (tables.holds, False)):
            states = table["class" if is_wait else "mode"].to_pylist()
            numbers = table["lock_id"].to_pylist()
            tids, begins = table["tid"].to_pylist(), table["t_ns"].to_pylist()
            durations = table["dur_ns"].to_pylist()
            processes = table["process"].to_pylist()
            if by == "thread":
                pairs = list(zip(processes, tids, strict=True))
                at = rows.rows_of_threads(pairs, begins)
            else:
                at = [rows.row_of(number) for number in numbers]
            for row, state, t, dur in zip(at, states, begins, durations, strict=True):
                name = {"exclusive": "held"}.get(state, state)
                if row:
                    spans.setdefault((row, protocol.STATES.index(name)), []).append((t, dur))
        arrays = {
            key: (np.array([t for t, _ in found]), np.array([dur for _, dur in found]))
            for key, found in spans.items()
        }
        return cls(arrays, tables.waits)


def ask(viewer: Viewer, name: str, **arguments: Any) -> Any:
    """Ask an endpoint until it has an answer. Missing arguments get their defaults."""
    while True:
        try:
            return ask_once(viewer, name, **arguments)
        except NotReady:
            time.sleep(0.01)


def ask_once(viewer: Viewer, name: str, **arguments: Any) -> Any:
    """Ask an endpoint once. It may have no answer yet."""
    endpoint = next(e for e in protocol.ENDPOINTS if e.name == name)
    defaults: dict[str, Any] = {
        parameter.name: [] if parameter.type == "rows" else parameter.default
        for parameter in endpoint.parameters
    }
    return getattr(viewer, name)(**(defaults | arguments))


def column(table: Any, name: str) -> NDArray[Any]:
    """Return a column of an Arrow table."""
    return np.asarray(table[name].to_numpy())
