"""Attributes of a stream as one value: what it is to be made with, or what it was made with."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from nptltrace._binding.headers import trace as c
from nptltrace._binding.libposixtrace import call, ns_of
from nptltrace.posix.constants import Inheritance, LogFullPolicy, StreamFullPolicy

__all__ = ["Attributes", "attributes_of", "native_attributes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Attributes of a stream. None stands for what the library takes by default.

    Attributes:
        name: A name for the stream; what is too long is cut.
        stream_size: Bytes of event records that the stream has room for, at least.
        max_data_size: Bytes of data of one event; more are cut.
        stream_full_policy: By default LOOP without a log, FLUSH with one.
        log_size: Bytes of event records that the log may hold.
        log_full_policy: By default LOOP; APPEND knows no `log_size`.
        inherited: Whether children of the process are traced too.
        generation_version: What created the stream; read only.
        create_time_ns: When it was made, in nanoseconds since 1970; read only.
        clock_resolution_ns: Resolution of the time stamps; read only.
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
    """Return an attributes object of the library.

    Raises:
        PosixTraceError: A value is not allowed.
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


def _text(attr: c.TraceAttr, name: str) -> str:
    text = ctypes.create_string_buffer(c.TRACE_NAME_MAX + 1)
    call(f"attr_get{name}", attr, text)
    return text.value.decode("utf-8", "surrogateescape")


def _number(attr: c.TraceAttr, name: str) -> int:
    number = ctypes.c_int()
    call(f"attr_get{name}", attr, number)
    return number.value


def _size(attr: c.TraceAttr, name: str) -> int:
    size = ctypes.c_size_t()
    call(f"attr_get{name}", attr, size)
    return size.value


def _time(attr: c.TraceAttr, name: str) -> int:
    time = c.Timespec()
    call(f"attr_get{name}", attr, time)
    return ns_of(time)


def attributes_of(trid: int) -> Attributes:
    """Return the attributes of an active stream or of a log."""
    attr = c.TraceAttr()
    call("attr_init", attr)
    call("get_attr", trid, attr)
    return Attributes(
        name=_text(attr, "name"),
        stream_size=_size(attr, "streamsize"),
        max_data_size=_size(attr, "maxdatasize"),
        stream_full_policy=StreamFullPolicy(_number(attr, "streamfullpolicy")),
        log_size=_size(attr, "logsize"),
        log_full_policy=LogFullPolicy(_number(attr, "logfullpolicy")),
        inherited=_number(attr, "inherited") == Inheritance.INHERITED,
        generation_version=_text(attr, "genversion"),
        create_time_ns=_time(attr, "createtime"),
        clock_resolution_ns=_time(attr, "clockres"),
    )
