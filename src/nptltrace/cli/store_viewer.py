"""The server side of `ptt ui --store`: the page of a store, and viewers of its runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StoreViewer"]


class StoreViewer:
    """Answers requests about the current state of a store.

    Args:
        place: The store.
        host: Address for viewers of runs to listen at.

    Attributes:
        closed: The viewer answers no more requests.
        looking: Number of pages that are known to be open.
    """

    def __init__(self, place: str, host: str) -> None:
        from nptltrace.fleet.store import Store

        self._place, self._host = Store(place).place, host
        self._viewers: dict[str, tuple[subprocess.Popen[str], str]] = {}
        self._opening = Lock()
        self.closed = False
        self.looking = 0

    def start(self) -> None:
        """Begin; there is nothing to prepare."""

    def stop(self) -> None:
        """Answer no more requests."""
        self.closed = True

    def close(self) -> None:
        """End the viewers of runs."""
        for viewer, _ in self._viewers.values():
            viewer.terminate()
        for viewer, _ in self._viewers.values():
            viewer.communicate()

    def page(self, asked: Mapping[str, str]) -> str:
        """Return the page, with runs compared by the query parameter `by`."""
        from nptltrace.cli.output.store_page import store_page
        from nptltrace.fleet import open as open_fleet
        from nptltrace.fleet.check import fleet_check
        from nptltrace.fleet.report import fleet_report
        from nptltrace.fleet.selection import choose, fleet_runs

        with open_fleet(self._place) as fleet:
            chosen = choose(fleet.runs, ())
            names = [name for name in chosen.names if name != "run_id"]
            by = asked.get("by") or ("release" if "release" in names else "host")
            return store_page(
                fleet_report(fleet, chosen, by=by, confidence=0.95),
                fleet_check(fleet, chosen, by=None),
                fleet_runs(fleet, chosen),
                names,
            )

    def style(self) -> str:
        """Return the style sheet of the page."""
        from nptltrace.cli.output.store_page import STYLE

        return STYLE

    def open_run(self, run_id: str) -> str:
        """Return the address of the viewer of a run; start the viewer if it does not run.

        Raises:
            UsageError: The store has no such run, or its trace is gone.
        """
        with self._opening:
            running = self._viewers.get(run_id)
            if running is not None and running[0].poll() is None:
                return running[1]
            command = [sys.executable, "-m", "nptltrace", "ui", "--no-browser"]
            viewer = subprocess.Popen(
                [*command, "--host", self._host, str(self._trace(run_id))],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert viewer.stdout is not None  # noqa: S101
            address = viewer.stdout.readline().strip()
            if not address:
                viewer.communicate()
                raise UsageError(f"run {run_id} cannot be shown: see what ptt ui says")
            self._viewers[run_id] = viewer, address
            return address

    def _trace(self, run_id: str) -> Path:
        """Return the path of the trace of a run.

        Raises:
            UsageError: The store has no such run, or its trace is gone.
        """
        from nptltrace.fleet.store import Store

        for row in Store(self._place).runs().to_pylist():
            if row["run_id"] == run_id:
                path = Path(row["path"] or "")
                if _uuid(path) != run_id:
                    raise UsageError(f"the trace of run {run_id} is not at {path} any more")
                return path
        raise UsageError(f"{self._place} has no run {run_id}")


def _uuid(trace: Path) -> str | None:
    try:
        session = json.loads((trace / "info" / "session.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return session.get("uuid") if isinstance(session, dict) else None
