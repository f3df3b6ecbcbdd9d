"""speedscope: profiles for https://www.speedscope.app, one of everything and one an object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nptltrace._version import __version__
from nptltrace.analysis.report.stacks.sums import TITLES
from nptltrace.export.writing.stacks import OPTIONS, Numbers, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.analysis.stack_names import Frame
    from nptltrace.export import Export
    from nptltrace.export.writing.stacks import Sample
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
# Profiles of single objects beside that of everything: those with most time.
_OBJECTS = 50


def write(what: Export, out: Target) -> str:
    """Write sampled profiles, whose weights are nanoseconds."""
    found, shown = what.samples, what.shown
    frames = _Frames()
    profiles = [_profile(TITLES[shown], found, frames)]
    by_object: dict[str, list[Sample]] = {}
    for sample in found:
        by_object.setdefault(sample.object, []).append(sample)
    order = sorted(by_object, key=lambda name: -sum(sample.ns for sample in by_object[name]))
    if len(order) > 1:
        profiles += [_profile(name, by_object[name], frames) for name in order[:_OBJECTS]]
    document = {
        "$schema": _SCHEMA,
        "exporter": f"ptt {__version__}",
        "name": f"{TITLES[shown]}: {', '.join(map(str, what.traceset.paths()))}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.table},
        "profiles": profiles,
    }
    with out.file() as file:
        file.write(json.dumps(document, separators=(",", ":")).encode())
    return summary(found, shown)


class _Frames:
    """The frames of all profiles, each once."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._numbers: Numbers[tuple[str, str, int]] = Numbers()

    def number(self, frame: Frame) -> int:
        """Return the number of a frame."""
        known = self._numbers[frame.name, frame.path, frame.line]
        if known == len(self.table):
            place = {"file": frame.path, "line": frame.line} if frame.line else {}
            self.table.append({"name": frame.name, **place})
        return known


def _profile(name: str, found: Iterable[Sample], frames: _Frames) -> dict[str, Any]:
    timed = [sample for sample in found if sample.ns]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(sample.ns for sample in timed),
        "samples": [[frames.number(f) for f in reversed(sample.frames)] for sample in timed],
        "weights": [sample.ns for sample in timed],
    }
