"""Messages of a profile of pprof: numbers strings, functions, locations and mappings.

A location is a place in a module; a build-id names the module. The format is `profile.proto` of
github.com/google/pprof.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from nptltrace.export.writing.protobuf import message, number, packed
from nptltrace.export.writing.stacks import Numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from nptltrace.analysis.stack_names import Frame

__all__ = ["PprofProfile"]

# Fields of the messages, as profile.proto numbers them.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14


class PprofProfile:
    """A profile.

    Args:
        types: Name and unit of each value of a sample.
        modules: Rows of the table `modules`, by name and build-id.
    """

    def __init__(
        self,
        types: Sequence[tuple[str, str]],
        modules: Mapping[tuple[str, str], Mapping[str, Any]],
    ) -> None:
        self._strings: Numbers[str] = Numbers()
        self._strings[""]  # the format wants the empty string as number 0
        self._types = types
        self._functions: Numbers[tuple[str, str]] = Numbers(1)
        self._locations: Numbers[tuple[Frame, ...]] = Numbers(1)
        self._mappings: Numbers[tuple[str, str]] = Numbers(1)
        self._modules = modules
        self._head = [self._value_type(_SAMPLE_TYPE, *names) for names in types]
        self._samples: list[bytes] = []

    def add(
        self, frames: tuple[Frame, ...], values: Iterable[int], labels: Mapping[str, str | int]
    ) -> None:
        """Add a sample.

        Args:
            frames: The stack, the innermost frame first.
            values: A value of each type.
            labels: Labels; empty texts are left out.
        """
        places = [self._locations[place] for place in _places(frames)]
        written = [self._label(name, value) for name, value in labels.items() if value != ""]
        self._samples.append(message(_SAMPLE, packed(1, places), packed(2, values), *written))

    def write(
        self, file: BinaryIO, *, begin_unix_ns: int, duration_ns: int, comments: Sequence[str]
    ) -> None:
        """Write the profile, compressed by gzip.

        Args:
            file: The file.
            begin_unix_ns: When the profile began, in ns since 1970.
            duration_ns: How long waits were recorded.
            comments: Lines of text.
        """
        tail = [
            self._value_type(_PERIOD_TYPE, *self._types[0]),
            number(_PERIOD, 1),
            number(_TIME, begin_unix_ns),
            number(_DURATION, duration_ns),
            *(number(_COMMENT, self._strings[comment]) for comment in comments),
            number(_DEFAULT_TYPE, self._strings[self._types[1][0]]),
        ]
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed_file:
            packed_file.writelines([*self._head, *self._samples, *self._tables(), *tail])
            packed_file.writelines(message(_STRING, text.encode()) for text in self._strings)

    def _value_type(self, field: int, name: str, unit: str) -> bytes:
        """Return a message `ValueType`."""
        return message(field, number(1, self._strings[name]), number(2, self._strings[unit]))

    def _label(self, name: str, value: str | int) -> bytes:
        """Return a message `Label`."""
        said = number(3, value) if isinstance(value, int) else number(2, self._strings[value])
        return message(3, number(1, self._strings[name]), said)

    def _tables(self) -> Iterator[bytes]:
        """Yield the locations, mappings and functions of all samples made so far."""
        for frames, identity in self._locations.items():
            yield self._location(frames, identity)
        for (module, build_id), identity in self._mappings.items():
            yield self._mapping(module, build_id, identity)
        for (name, path), identity in self._functions.items():
            yield message(
                _FUNCTION, number(1, identity), number(2, self._strings[name]),
                number(3, self._strings[name]), number(4, self._strings[path]),
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
            number(5, self._strings[path]), number(6, self._strings[build_id]), *has,
        )  # fmt: skip


def _places(frames: tuple[Frame, ...]) -> Iterator[tuple[Frame, ...]]:
    """Yield the frames of each place in the code: the inlined functions, then their function."""
    begin = 0
    for at, frame in enumerate(frames):
        if not frame.inlined:
            yield frames[begin : at + 1]
            begin = at + 1
