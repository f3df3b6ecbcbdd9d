"""Events of a Python program: `nptltrace.user_event("text")` puts them into the trace."""

from __future__ import annotations

from nptltrace._binding.tracer import is_enabled, sender

__all__ = ["is_traced", "user_event"]

_NUMBER_MAX = 127


def is_traced() -> bool:
    """Return whether this process is being recorded, so that making up a text is worth it."""
    return is_enabled()


def user_event(data: str | bytes, *, domain: int = 0, event: int = 0) -> None:
    """Add an event of the program to the trace; do nothing where there is no tracer.

    Args:
        data: What to say, text or bytes. The trace keeps the first 4074 bytes.
        domain: The program's own choice, from 0 to 127.
        event: The program's own choice, from 0 to 127.

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
