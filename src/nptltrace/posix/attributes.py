"""Attributes of a stream as one value."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TypeVar

from nptltrace._binding.headers import trace as c
from nptltrace._binding.libposixtrace import call, ns_of
from nptltrace.posix.constants import Inheritance, LogFullPolicy, StreamFullPolicy

__all__ = ["Attributes", "attributes_of", "native_attributes"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Attributes of a stream (`trace_attr_t`). None stands for the default of the library.

    `create()` ignores the last three attributes.

    Attributes:
        name: A name for the stream; a longer name is cut to 63 bytes.
        stream_size: Bytes of event records that the stream has room for, at least.
        max_data_size: Largest data of an event, in bytes; longer data are cut.
        stream_full_policy: By default LOOP without a log, FLUSH with a log.
        log_size: Bytes of event records that the log may hold. APPEND ignores it.
        log_full_policy: By default LOOP.
        inherited: Whether children of the process are traced too.
        generation_version: Name and version of the library that made the stream.
        create_time_ns: When the stream was made, in nanoseconds since 1970.
        clock_resolution_ns: Resolution of the time stamps, in nanoseconds.
    """

    name: str = ""
    stream_size: int | None = None
    max_data_size: int | None = None
    stream_full_policy: StreamFullPolicy | None = None
    log_size: int | None = None
    log_full_policy: LogFullPolicy | None = None
    inherited: bool = False
    generation_version: str = ""
    create_time_ns: int = 0
    clock_resolution_ns: int = 0


def native_attributes(attributes: Attributes) -> c.TraceAttr:
    """Return the attributes as an object of the library.

    Raises:
        PosixTraceError: EINVAL, a policy is not allowed.
    """
    attr = c.TraceAttr()
    call("attr_init", attr)
    call("attr_setname", attr, attributes.name.encode())
    inherited = Inheritance.INHERITED if attributes.inherited else Inheritance.CLOSE_FOR_CHILD
    call("attr_setinherited", attr, inherited)
    values = {
        "streamsize": attributes.stream_size,
        "maxdatasize": attributes.max_data_size,
        "streamfullpolicy": attributes.stream_full_policy,
        "logsize": attributes.log_size,
        "logfullpolicy": attributes.log_full_policy,
    }
    for name, value in values.items():
        if value is not None:
            call(f"attr_set{name}", attr, value)
    return attr


def attributes_of(trid: int) -> Attributes:
    """Return the attributes of an active stream or of a log.

    Raises:
        PosixTraceError: EINVAL, there is no such stream or log.
    """
    attr = c.TraceAttr()
    call("attr_init", attr)
    call("get_attr", trid, attr)

    def get(name: str, value: _Value) -> _Value:
        call(f"attr_get{name}", attr, value)
        return value

    def text(name: str) -> str:
        value = get(name, ctypes.create_string_buffer(c.TRACE_NAME_MAX + 1)).value
        return value.decode("utf-8", "surrogateescape")

    return Attributes(
        name=text("name"),
        stream_size=get("streamsize", ctypes.c_size_t()).value,
        max_data_size=get("maxdatasize", ctypes.c_size_t()).value,
        stream_full_policy=StreamFullPolicy(get("streamfullpolicy", ctypes.c_int()).value),
        log_size=get("logsize", ctypes.c_size_t()).value,
        log_full_policy=LogFullPolicy(get("logfullpolicy", ctypes.c_int()).value),
        inherited=get("inherited", ctypes.c_int()).value == Inheritance.INHERITED,
        generation_version=text("genversion"),
        create_time_ns=ns_of(get("createtime", c.Timespec())),
        clock_resolution_ns=ns_of(get("clockres", c.Timespec())),
    )
