"""Events of a Python program: `nptltrace.user_event("text")` records one."""

from __future__ import annotations

from nptltrace._binding.tracer import is_enabled, sender

__all__ = ["is_traced", "user_event"]

_NUMBER_MAX = 127


def is_traced() -> bool:
    """Return whether this process is being recorded, so that `user_event` has an effect."""
    return is_enabled()


def user_event(data: str | bytes, *, domain: int = 0, event: int = 0) -> None:
    """Add an event of the program to the trace; do nothing if the process is not traced.

    Args:
        data: Text or bytes. The trace keeps the first 4074 bytes.
        domain: A number of your choice, from 0 to 127.
        event: A number of your choice, from 0 to 127.

    Raises:
        ValueError: `domain` or `event` is out of range.

    Example:
        >>> import nptltrace
        >>> nptltrace.user_event("the cache is warm")
    """
    if not (0 <= domain <= _NUMBER_MAX and 0 <= event <= _NUMBER_MAX):
        raise ValueError(f"domain and event must be from 0 to {_NUMBER_MAX}")
    send = sender()
    if send is None:
        return
    payload = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
    send(domain, event, payload)
