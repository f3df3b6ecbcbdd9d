"""speedscope: profiles for https://www.speedscope.app, of everything and of each object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nptltrace._version import __version__
from nptltrace.analysis.report.stacks.sums import TITLES
from nptltrace.export.writing.stacks import OPTIONS, Numbers, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.export import Export
    from nptltrace.export.writing.stacks import Sample
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
# Only the objects with the most time have a profile.
_OBJECTS = 50

# Frames are numbered by name, path and line.
_Frames = Numbers[tuple[str, str, int]]


def write(what: Export, out: Target) -> str:
    """Write sampled profiles. The weight of a sample is its time in nanoseconds."""
    samples, shown = what.samples, what.shown
    frames: _Frames = Numbers()
    profiles = [_profile(TITLES[shown], samples, frames)]
    by_object: dict[str, list[Sample]] = {}
    for sample in samples:
        by_object.setdefault(sample.object, []).append(sample)
    order = sorted(by_object, key=lambda name: -sum(sample.ns for sample in by_object[name]))
    if len(order) > 1:
        profiles += [_profile(name, by_object[name], frames) for name in order[:_OBJECTS]]
    document = {
        "$schema": _SCHEMA,
        "exporter": f"ptt {__version__}",
        "name": f"{TITLES[shown]}: {', '.join(map(str, what.traceset.paths()))}",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [
                {"name": name, **({"file": path, "line": line} if line else {})}
                for name, path, line in frames
            ]
        },
        "profiles": profiles,
    }
    with out.file() as file:
        file.write(json.dumps(document, separators=(",", ":")).encode())
    return summary(samples, shown)


def _profile(name: str, samples: Iterable[Sample], frames: _Frames) -> dict[str, Any]:
    timed = [sample for sample in samples if sample.ns]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(sample.ns for sample in timed),
        "samples": [
            [frames[frame.name, frame.path, frame.line] for frame in reversed(sample.frames)]
            for sample in timed
        ],
        "weights": [sample.ns for sample in timed],
    }
