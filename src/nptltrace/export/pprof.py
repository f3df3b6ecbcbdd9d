"""pprof: a profile of contention, as Go's runtime writes it for `go tool pprof`.

A sample has the values `contentions` and `delay`, and the label `object`. A location is a place in
a module; a build-id names the module. The format is `profile.proto` of github.com/google/pprof.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from nptltrace.analysis.report.stacks.sums import TITLES
from nptltrace.export.writing.protobuf import message, number, packed
from nptltrace.export.writing.stacks import OPTIONS, Numbers, modules, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.analysis.stack_names import Frame
    from nptltrace.export import Export
    from nptltrace.export.writing.stacks import Sample
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

# Fields of the messages, as profile.proto numbers them.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14


def write(what: Export, out: Target) -> str:
    """Write a profile, compressed by gzip."""
    samples, shown = what.samples, what.shown
    profile = _Profile(what.trace_tables)
    body = [profile.sample(sample) for sample in samples]
    types = [("contentions", "count"), ("delay", "nanoseconds")]
    if shown == "holds":
        types = [("holds", "count"), ("held", "nanoseconds")]
    head = [profile.value_type(_SAMPLE_TYPE, *names) for names in types]
    span = what.traceset.reader.key_range()
    first, last = map(what.traceset.reader.time_of_key, span) if span else (0, 0)
    tail = [
        profile.value_type(_PERIOD_TYPE, *types[0]),
        number(_PERIOD, 1),
        number(_TIME, max(what.traceset.start_unix_ns + first, 0)),
        number(_DURATION, max(last - first, 0)),
        number(_COMMENT, profile.strings[TITLES[shown]]),
        number(_DEFAULT_TYPE, profile.strings[types[1][0]]),
    ]
    with out.file() as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed_file:
        packed_file.writelines([*head, *body, *profile.tables(), *tail])
        packed_file.writelines(message(_STRING, text.encode()) for text in profile.strings)
    return summary(samples, shown)


class _Profile:
    """Numbers strings, functions, locations and mappings as they are used.

    Args:
        tables: The tables of the traceset.

    Attributes:
        strings: The strings, with their numbers.
    """

    def __init__(self, tables: TraceTables) -> None:
        self.strings: Numbers[str] = Numbers()
        self.strings[""]  # the format wants the empty string as number 0
        self._functions: Numbers[tuple[str, str]] = Numbers(1)
        self._locations: Numbers[tuple[Frame, ...]] = Numbers(1)
        self._mappings: Numbers[tuple[str, str]] = Numbers(1)
        self._modules = modules(tables)

    def value_type(self, field: int, name: str, unit: str) -> bytes:
        """Return a message `ValueType`."""
        return message(field, number(1, self.strings[name]), number(2, self.strings[unit]))

    def sample(self, sample: Sample) -> bytes:
        """Return a message `Sample`."""
        places = [self._locations[frames] for frames in _places(sample.frames)]
        label = message(
            3, number(1, self.strings["object"]), number(2, self.strings[sample.object])
        )
        return message(
            _SAMPLE, packed(1, places), packed(2, [sample.count, sample.ns]),
            label if sample.object else b"",
        )  # fmt: skip

    def tables(self) -> Iterator[bytes]:
        """Yield the locations, mappings and functions of all samples made so far."""
        for frames, identity in self._locations.items():
            yield self._location(frames, identity)
        for (module, build_id), identity in self._mappings.items():
            yield self._mapping(module, build_id, identity)
        for (name, path), identity in self._functions.items():
            yield message(
                _FUNCTION, number(1, identity), number(2, self.strings[name]),
                number(3, self.strings[name]), number(4, self.strings[path]),
            )  # fmt: skip

    def _location(self, frames: tuple[Frame, ...], identity: int) -> bytes:
        key = frames[-1].module, frames[-1].build_id
        # The address tells locations without a line apart.
        address = frames[-1].offset + int(self._modules.get(key, {}).get("bias") or 0)
        mapping = self._mappings[key] if frames[-1].module else 0
        lines = [
            message(4, number(1, self._functions[frame.name, frame.path]), number(2, frame.line))
            for frame in frames
        ]
        return message(
            _LOCATION, number(1, identity), number(2, mapping), number(3, address), *lines
        )

    def _mapping(self, module: str, build_id: str, identity: int) -> bytes:
        row = self._modules.get((module, build_id), {})
        start, end = (int(row.get(name) or 0) for name in ("start", "end"))
        path = str(row.get("path") or module)
        # has_functions, has_filenames, has_line_numbers, has_inline_frames
        has = (number(field, 1) for field in (7, 8, 9, 10))
        return message(
            _MAPPING, number(1, identity), number(2, start), number(3, end),
            number(5, self.strings[path]), number(6, self.strings[build_id]), *has,
        )  # fmt: skip


def _places(frames: tuple[Frame, ...]) -> Iterator[tuple[Frame, ...]]:
    """Yield the frames of each place in the code: the inlined functions, then their function."""
    begin = 0
    for at, frame in enumerate(frames):
        if not frame.inlined:
            yield frames[begin : at + 1]
            begin = at + 1
