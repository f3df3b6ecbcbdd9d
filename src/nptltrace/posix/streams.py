"""Active streams and logs: make, start, read and end them."""

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

# The largest data of a system event: the two sets of a FILTER event.
_SYSTEM_DATA = 2 * ctypes.sizeof(c.TraceEventSet)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a stream or a log.

    An active stream reports losses and an error once, a log reports them each time.

    Attributes:
        running: Whether the stream records events.
        full: Whether the stream is full.
        overrun: Whether the stream has lost events since the last call of `status()`.
        flushing: Whether the stream is being flushed to the log.
        flush_error: The first error number of a flush since the last call of `status()`, or 0.
        log_overrun: Whether the log has lost events since the last call of `status()`.
        log_full: Whether the log is full.
    """

    running: bool
    full: bool
    overrun: bool
    flushing: bool
    flush_error: int
    log_overrun: bool
    log_full: bool


class _Readable:
    """The common part of streams and logs."""

    def __init__(self, trid: int, fd: int | None) -> None:
        self._trid = trid
        self._fd = fd  # our own, to be closed at the end; or None
        self._owner = os.getpid()
        self._open = True
        self._local = threading.local()

    @property
    def trid(self) -> int:
        """The `trace_id_t` of the C functions. It is valid in this process only."""
        return self._trid

    def attributes(self) -> Attributes:
        """Return the attributes of the stream.

        Raises:
            PosixTraceError: EINVAL, the stream has ended.
        """
        return attributes_of(self._trid)

    def status(self) -> Status:
        """Return the state.

        Raises:
            PosixTraceError: EINVAL, the stream has ended.
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
        """Return all event types, also types without an event."""
        types: list[EventType] = []
        event_id, at_end = ctypes.c_uint(), ctypes.c_int()
        call("eventtypelist_rewind", self._trid)
        while True:
            call("eventtypelist_getnext_id", self._trid, event_id, at_end)
            if at_end.value:
                return types
            types.append(EventType(event_id.value, self.name_of(event_id.value)))

    def _buffer(self) -> ctypes.Array[ctypes.c_char]:
        """Return a buffer of this thread for the data of an event."""
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
        """End the stream or log once. A child of its process has only the descriptor to close."""
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
    """An active stream from `create()`. It is shut down at the end of a `with` block.

    After the shutdown, an iteration ends, and calls other than `shutdown()` raise
    `PosixTraceError` with EINVAL.
    """

    def start(self) -> None:
        """Start to record."""
        call("start", self._trid)

    def stop(self) -> None:
        """Stop to record."""
        call("stop", self._trid)

    def clear(self) -> None:
        """Drop all events, also events in the log."""
        call("clear", self._trid)

    def flush(self) -> None:
        """Begin to write all events to the log. `status().flushing` is False when this is done.

        Raises:
            PosixTraceError: EINVAL, there is no log.
        """
        call("flush", self._trid)

    def shutdown(self) -> None:
        """Stop, write the remaining events to the log, and end the stream.

        A second call does nothing.

        Raises:
            PosixTraceError: ENOSPC or EFBIG, the log has no room.
        """
        self._end("shutdown")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    def event_type(self, name: str) -> EventType:
        """Return the event type of the traced process with a name, and make it if there is none.

        The process may have opened the type already, or may open it later.

        Raises:
            PosixTraceError: ENAMETOOLONG, the name has more than 63 bytes.
        """
        number = ctypes.c_uint()
        call("trid_eventid_open", self._trid, name.encode(), number)
        return EventType(number.value, name)

    def filter(self) -> EventSet:
        """Return the event types that the stream does not record."""
        events = EventSet()
        call("get_filter", self._trid, events.native)
        return events

    def set_filter(
        self,
        types: EventSet | Iterable[EventType | int],
        how: FilterChange = FilterChange.SET_EVENTSET,
    ) -> None:
        """Change the event types that the stream does not record.

        Args:
            types: A set of event types.
            how: Whether the set replaces the filter, or is added to it, or is removed from it.
        """
        event_set = types if isinstance(types, EventSet) else EventSet(types)
        call("set_filter", self._trid, event_set.native, how)

    def read(self, timeout: float | None = None) -> Event | None:
        """Take the oldest event out of the stream. Wait if there is no event.

        Args:
            timeout: How long to wait, in seconds. 0: do not wait. None: wait without a limit.

        Returns:
            The event, or None if no event came in time.

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
        """Take all present events out of the stream, oldest first."""
        while (event := self.read(0)) is not None:
            yield event

    def __iter__(self) -> Iterator[Event]:
        """Take events out of the stream and wait for more, until the stream is shut down."""
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
    """A log from `open_log()`. It is closed at the end of a `with` block."""

    def read(self) -> Event | None:
        """Return the next event, or None at the end."""
        return self._read("getnext_event")

    def rewind(self) -> None:
        """Start again with the oldest event."""
        call("rewind", self._trid)

    def __iter__(self) -> Iterator[Event]:
        """Return the remaining events, oldest first."""
        while (event := self.read()) is not None:
            yield event

    def close(self) -> None:
        """Close the log. A second call does nothing."""
        self._end("close")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _call_with_log(
    function: str, before: tuple[object, ...], log: str | os.PathLike[str] | int, flags: int
) -> tuple[int, int | None]:
    """Call a function with a log. Return the trace id, and a descriptor to close at the end."""
    trid = ctypes.c_uint()
    if isinstance(log, int):
        call(function, *before, log, trid)
        return trid.value, None
    fd = os.open(log, flags | os.O_CLOEXEC, 0o600)
    try:
        call(function, *before, fd, trid)
    except PosixTraceError:
        os.close(fd)
        raise
    return trid.value, fd


def create(
    pid: int = 0,
    attributes: Attributes | None = None,
    *,
    log: str | os.PathLike[str] | int | None = None,
) -> Stream:
    """Make a stream that traces a process. Call `start()` to start to record.

    See `posix_trace_create()` and `posix_trace_create_withlog()` of POSIX.1-2017.

    Args:
        pid: The process; 0 is this process.
        attributes: The attributes of the stream; None is all defaults.
        log: A path: its file is made, or overwritten. Or a descriptor open for writing, which stays
            open. None is a stream without a log.

    Raises:
        PosixTraceError: ESRCH, there is no such process; EPERM, you may not trace the process;
            EAGAIN, there are too many streams; EINVAL, attributes or log are not suitable;
            EBADF, ENOSPC, ENOMEM.
        OSError: The log cannot be opened.

    Example:
        >>> with posix.create(pid, log="run.log") as stream:
        ...     stream.start()
        ...     input("Enter ends the tracing")
    """
    attr = native_attributes(attributes or Attributes())
    if log is None:
        trid = ctypes.c_uint()
        call("create", pid, attr, trid)
        return Stream(trid.value, None)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
    return Stream(*_call_with_log("create_withlog", (pid, attr), log, flags))


def open_log(log: str | os.PathLike[str] | int) -> Log:
    """Open a log to read it.

    Args:
        log: A path, or a descriptor open for reading, which stays open.

    Raises:
        PosixTraceError: EINVAL, the file is not a log.
        OSError: The file cannot be opened.

    Example:
        >>> with posix.open_log("run.log") as log:
        ...     for event in log:
        ...         print(event.name, event.data)
    """
    return Log(*_call_with_log("open", (), log, os.O_RDONLY))
