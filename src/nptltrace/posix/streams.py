"""Active streams and logs: made, started, read, ended."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from typing import TYPE_CHECKING, Self

from nptltrace._binding.headers import trace as c
from nptltrace._binding.libposixtrace import PosixTraceError, call, ns_of, timespec_of
from nptltrace._dataclasses import dataclass
from nptltrace.posix.attributes import Attributes, attributes_of, native_attributes
from nptltrace.posix.constants import FilterChange, StreamState, Truncation
from nptltrace.posix.events import Event, EventSet, EventType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Log", "Status", "Stream", "create", "open_log"]

# The largest data of the system's own: the two sets of a change of filter.
_SYSTEM_DATA = 2 * ctypes.sizeof(c.TraceEventSet)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a stream or a log.

    What is lost, and the error, are reported once of an active stream, and always of a log.

    Attributes:
        running: Whether events are recorded.
        full: Whether the stream has no room.
        overrun: Whether events were lost since this was last asked.
        flushing: Whether events are on their way to the log.
        flush_error: The first error number on that way since this was last asked, or 0.
        log_overrun: Whether events in the log were lost since this was last asked.
        log_full: Whether the log has no room.
    """

    running: bool
    full: bool
    overrun: bool
    flushing: bool
    flush_error: int
    log_overrun: bool
    log_full: bool


class _Readable:
    """What streams and logs have in common."""

    def __init__(self, trid: int, fd: int | None) -> None:
        self._trid = trid
        self._fd = fd  # ours, to be closed at the end
        self._owner = os.getpid()
        self._open = True
        self._local = threading.local()

    @property
    def trid(self) -> int:
        """The identifier that the C functions take; it is valid in this process only."""
        return self._trid

    def attributes(self) -> Attributes:
        """Return what the stream was made with.

        Raises:
            PosixTraceError: EINVAL, there is no such stream any more.
        """
        return attributes_of(self._trid)

    def status(self) -> Status:
        """Return the state.

        Raises:
            PosixTraceError: EINVAL, there is no such stream any more.
        """
        info = c.PosixTraceStatusInfo()
        call("get_status", self._trid, info)
        return Status(
            running=info.posix_stream_status == StreamState.RUNNING,
            full=info.posix_stream_full_status == StreamState.FULL,
            overrun=info.posix_stream_overrun_status == StreamState.OVERRUN,
            flushing=info.posix_stream_flush_status == StreamState.FLUSHING,
            flush_error=info.posix_stream_flush_error,
            log_overrun=info.posix_log_overrun_status == StreamState.OVERRUN,
            log_full=info.posix_log_full_status == StreamState.FULL,
        )

    def name_of(self, event_id: int) -> str:
        """Return the name of an event type.

        Raises:
            PosixTraceError: EINVAL, there is no such type.
        """
        name = ctypes.create_string_buffer(c.TRACE_EVENT_NAME_MAX + 1)
        call("eventid_get_name", self._trid, event_id, name)
        return name.value.decode("utf-8", "surrogateescape")

    def types(self) -> list[EventType]:
        """Return all event types, those included that never occurred."""
        types: list[EventType] = []
        event_id, at_end = ctypes.c_uint(), ctypes.c_int()
        call("eventtypelist_rewind", self._trid)
        while True:
            call("eventtypelist_getnext_id", self._trid, event_id, at_end)
            if at_end.value:
                return types
            types.append(EventType(event_id.value, self.name_of(event_id.value)))

    def _buffer(self) -> ctypes.Array[ctypes.c_char]:
        """Return room for the data of an event, for this thread."""
        buffer: ctypes.Array[ctypes.c_char] | None = getattr(self._local, "buffer", None)
        if buffer is None:
            size = max(self.attributes().max_data_size or 0, _SYSTEM_DATA)
            buffer = self._local.buffer = ctypes.create_string_buffer(size)
        return buffer

    def _read(self, function: str, *more: object, accept: tuple[int, ...] = ()) -> Event | None:
        info, buffer = c.PosixTraceEventInfo(), self._buffer()
        length, none_left = ctypes.c_size_t(), ctypes.c_int()
        error = call(
            function, self._trid, info, buffer, len(buffer), length, none_left, *more,
            accept=accept,
        )  # fmt: skip
        if error or none_left.value:
            return None
        return Event(
            type=EventType(info.posix_event_id, self.name_of(info.posix_event_id)),
            time_ns=ns_of(info.posix_timestamp),
            pid=info.posix_pid,
            thread_id=info.posix_thread_id,
            address=info.posix_prog_address or 0,
            data=ctypes.string_at(buffer, length.value),
            truncation=Truncation(info.posix_truncation_status),
        )

    def _end(self, function: str) -> None:
        """Give up the stream or log; in a child of the process that made it there is nothing to."""
        if not self._open:
            return
        self._open = False
        try:
            if os.getpid() == self._owner:
                call(function, self._trid)
        finally:
            if self._fd is not None:
                os.close(self._fd)


class Stream(_Readable):
    """An active stream, as `create()` makes it. At the end of a `with` block it is shut down."""

    def start(self) -> None:
        """Record from now on."""
        call("start", self._trid)

    def stop(self) -> None:
        """Record no more."""
        call("stop", self._trid)

    def clear(self) -> None:
        """Forget all events, those in the log included."""
        call("clear", self._trid)

    def flush(self) -> None:
        """Begin to write all events to the log; `status().flushing` says when it is done.

        Raises:
            PosixTraceError: EINVAL, there is no log; ENOSPC or EFBIG, it has no room.
        """
        call("flush", self._trid)

    def shutdown(self) -> None:
        """Stop, write the rest to the log, and end the stream. Once more does nothing.

        Raises:
            PosixTraceError: ENOSPC or EFBIG, the log has no room.
        """
        self._end("shutdown")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    def event_type(self, name: str) -> EventType:
        """Return an event type of the traced process, which may open it later or have done so.

        Raises:
            PosixTraceError: ENAMETOOLONG.
        """
        number = ctypes.c_uint()
        call("trid_eventid_open", self._trid, name.encode(), number)
        return EventType(number.value, name)

    def filter(self) -> EventSet:
        """Return the types that are not recorded."""
        events = EventSet()
        call("get_filter", self._trid, events.native)
        return events

    def set_filter(
        self,
        types: EventSet | Iterable[EventType | int],
        how: FilterChange = FilterChange.SET_EVENTSET,
    ) -> None:
        """Change which types are not recorded.

        Args:
            types: A set.
            how: Whether it is the filter, or added to it, or taken out of it.
        """
        chosen = types if isinstance(types, EventSet) else EventSet(types)
        call("set_filter", self._trid, chosen.native, how)

    def read(self, timeout: float | None = None) -> Event | None:
        """Take the oldest event out of the stream, and wait for one if there is none.

        Args:
            timeout: How long to wait, in seconds; 0 not at all, None for ever.

        Returns:
            The event, or None if none came in that time.

        Raises:
            PosixTraceError: EINVAL, the stream was shut down.
        """
        if timeout is None:
            return self._read("getnext_event")
        if timeout <= 0:
            return self._read("trygetnext_event")
        until = timespec_of(time.time_ns() + int(timeout * 1e9))
        return self._read("timedgetnext_event", until, accept=(errno.ETIMEDOUT,))

    def pending(self) -> Iterator[Event]:
        """Take the events that are there out of the stream, oldest first."""
        while (event := self.read(0)) is not None:
            yield event

    def __iter__(self) -> Iterator[Event]:
        """Take events out of the stream as they come, until it is shut down."""
        while True:
            try:
                event = self.read()
            except PosixTraceError as error:
                if error.errno == errno.EINVAL and not self._open:
                    return
                raise
            if event is not None:
                yield event


class Log(_Readable):
    """A log, as `open_log()` opens it. At the end of a `with` block it is closed."""

    def read(self) -> Event | None:
        """Return the next event, or None at the end."""
        return self._read("getnext_event")

    def rewind(self) -> None:
        """Begin again with the oldest event."""
        call("rewind", self._trid)

    def __iter__(self) -> Iterator[Event]:
        """Go through the events from where reading has come to."""
        while (event := self.read()) is not None:
            yield event

    def close(self) -> None:
        """Close the log. Once more does nothing."""
        self._end("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def create(
    pid: int = 0,
    attributes: Attributes | None = None,
    *,
    log: str | os.PathLike[str] | int | None = None,
) -> Stream:
    """Make a stream that traces a process; it is started by `start()`.

    Args:
        pid: The process; 0 is this one.
        attributes: What the stream is to be like; None is all defaults.
        log: A path, whose file is written anew, or a descriptor open for writing, which stays
            open; None is a stream without a log.

    Raises:
        PosixTraceError: ESRCH, there is no such process; EPERM, it is not ours to trace; EAGAIN,
            there are as many streams as there can be; EINVAL, attributes or log are not suitable;
            EBADF, ENOSPC, ENOMEM.
        OSError: The log cannot be opened.

    Example:
        >>> with posix.create(pid, log="run.log") as stream:
        ...     stream.start()
        ...     input("Enter ends the tracing")
    """
    trid = ctypes.c_uint()
    attr = native_attributes(attributes or Attributes())
    if log is None:
        call("create", pid, attr, trid)
        return Stream(trid.value, None)
    if isinstance(log, int):
        call("create_withlog", pid, attr, log, trid)
        return Stream(trid.value, None)
    fd = os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        call("create_withlog", pid, attr, fd, trid)
    except PosixTraceError:
        os.close(fd)
        raise
    return Stream(trid.value, fd)


def open_log(log: str | os.PathLike[str] | int) -> Log:
    """Open a log to read it.

    Args:
        log: A path, or a descriptor open for reading, which stays open.

    Raises:
        PosixTraceError: EINVAL, it is not a log.
        OSError: The file cannot be opened.

    Example:
        >>> with posix.open_log("run.log") as log:
        ...     for event in log:
        ...         print(event.name, event.data)
    """
    trid = ctypes.c_uint()
    if isinstance(log, int):
        call("open", log, trid)
        return Log(trid.value, None)
    fd = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
    try:
        call("open", fd, trid)
    except PosixTraceError:
        os.close(fd)
        raise
    return Log(trid.value, fd)
