"""A reader of pprof's profiles: protobuf's runtime, with the fields of the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

__all__ = ["Location", "Mapping", "Profile", "Sample", "read_profile"]

# Messages and their fields: number, name, type (a message by its name), repeated.
_MESSAGES = {
    "ValueType": [(1, "type", "int64", False), (2, "unit", "int64", False)],
    "Label": [(1, "key", "int64", False), (2, "str", "int64", False), (3, "num", "int64", False),
              (4, "num_unit", "int64", False)],
    "Sample": [(1, "location_id", "uint64", True), (2, "value", "int64", True),
               (3, "label", "Label", True)],
    "Mapping": [(1, "id", "uint64", False), (2, "memory_start", "uint64", False),
                (3, "memory_limit", "uint64", False), (4, "file_offset", "uint64", False),
                (5, "filename", "int64", False), (6, "build_id", "int64", False),
                (7, "has_functions", "bool", False)],
    "Line": [(1, "function_id", "uint64", False), (2, "line", "int64", False)],
    "Location": [(1, "id", "uint64", False), (2, "mapping_id", "uint64", False),
                 (3, "address", "uint64", False), (4, "line", "Line", True)],
    "Function": [(1, "id", "uint64", False), (2, "name", "int64", False),
                 (3, "system_name", "int64", False), (4, "filename", "int64", False)],
    "Profile": [(1, "sample_type", "ValueType", True), (2, "sample", "Sample", True),
                (3, "mapping", "Mapping", True), (4, "location", "Location", True),
                (5, "function", "Function", True), (6, "string_table", "string", True),
                (9, "time_nanos", "int64", False), (10, "duration_nanos", "int64", False),
                (14, "default_sample_type", "int64", False)],
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A sample: functions with the innermost first, values, and labels."""

    functions: list[str]
    values: list[int]
    labels: dict[str, str]


@dataclass(frozen=True)
class Mapping:
    """A module."""

    start: int
    end: int
    file: str
    build_id: str


@dataclass(frozen=True)
class Location:
    """A place in a module."""

    mapping: int
    address: int


@dataclass(frozen=True)
class Profile:
    """A profile with its numbers resolved."""

    sample_types: list[tuple[str, str]]
    samples: list[Sample]
    mapping_of: dict[int, Mapping]
    locations: dict[int, Location]

    @property
    def mappings(self) -> list[Mapping]:
        """The modules."""
        return list(self.mapping_of.values())


def read_profile(data: bytes) -> Profile:
    """Return a resolved profile; every number in the profile must be valid."""
    message = _profile_class()()
    message.ParseFromString(data)
    strings = list(message.string_table)
    assert strings[0] == ""
    functions = {function.id: strings[function.name] for function in message.function}
    lines = {
        location.id: [functions[line.function_id] for line in location.line]
        for location in message.location
    }
    assert 0 not in functions
    assert 0 not in lines
    return Profile(
        sample_types=[(strings[kind.type], strings[kind.unit]) for kind in message.sample_type],
        samples=[
            Sample(
                [name for place in sample.location_id for name in lines[place]],
                list(sample.value),
                {strings[label.key]: strings[label.str] for label in sample.label},
            )
            for sample in message.sample
        ],
        mapping_of={
            mapping.id: Mapping(
                mapping.memory_start,
                mapping.memory_limit,
                strings[mapping.filename],
                strings[mapping.build_id],
            )
            for mapping in message.mapping
        },
        locations={
            location.id: Location(location.mapping_id, location.address)
            for location in message.location
        },
    )


def _profile_class() -> Any:
    """Return the class of the message with the fields above."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    types = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
    for name, fields in _MESSAGES.items():
        made = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            one = made.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in types:
                one.type = types[kind]
            else:
                one.type, one.type_name = 11, f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))
