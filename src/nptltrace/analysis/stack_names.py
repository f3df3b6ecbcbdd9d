"""Names the stacks of the table `stacks`, by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._dataclasses import replace
from nptltrace.trace.symbols.frames import TRUNCATED, UNKNOWN, Frame, frames_at, from_call_site

if TYPE_CHECKING:
    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["UNKNOWN", "Frame", "Frames"]


class Frames:
    """Names the stacks of a traceset.

    Args:
        tables: The tables of the traceset.
    """

    def __init__(self, tables: TraceTables) -> None:
        self._tables = tables
        rows = tables.table("stacks", ["stack_id", "site_id", "frames", "truncated"])
        columns = [rows[name].to_pylist() for name in rows.column_names]
        self._sites_of: dict[str, list[str]] = {
            stack: frames[frames.index(site) :]
            for stack, site, frames, _ in zip(*columns, strict=True)
        }
        # A single frame is a call site without a stack. It needs no sign that frames are missing.
        self._truncated: set[str] = {
            stack
            for stack, _, frames, truncated in zip(*columns, strict=True)
            if truncated and len(frames) > 1
        }
        self._places: dict[str, tuple[int, int]] | None = None
        self._frames_of: dict[str, tuple[Frame, ...]] = {}

    def of(self, stack: str | None, doing: str | None = None) -> tuple[Frame, ...]:
        """Return the frames from the call site on, the innermost first; none if unknown.

        If outer frames are missing, `TRUNCATED` is the last frame.

        Args:
            stack: The id of the stack, or None.
            doing: What the thread did at the stack; it is the first frame. None to leave it out.
        """
        if doing is not None:
            label = f"[{doing}]"
            return (replace(UNKNOWN, function=label, text=label), *(self.of(stack) or (UNKNOWN,)))
        frames = [frame for site in self._sites_of.get(stack or "", ()) for frame in self._at(site)]
        named = from_call_site(frames, self._tables.symbols.passed_over)
        return (*named, TRUNCATED) if stack in self._truncated else named

    def texts(self, stack: str | None, doing: str | None = None) -> list[str]:
        """Return the frames as text; see `of`."""
        return [frame.text for frame in self.of(stack, doing)]

    def _at(self, site: str) -> tuple[Frame, ...]:
        frames = self._frames_of.get(site)
        if frames is None:
            if self._places is None:
                self._places = self._tables.places()
            frames = self._frames_of[site] = frames_at(self._tables.symbols, *self._places[site])
        return frames
