"""Keeps the server small: what an answer needed is given back to the system behind it."""

from __future__ import annotations

import time
from threading import Lock

from nptltrace._binding import libc

__all__ = ["few_arenas", "give_back"]

_ARENAS = 2
# Giving back costs a walk through what is free: not after each of many answers.
_REST_S = 0.5
_state = {"given": 0.0}
_turn = Lock()


def few_arenas() -> None:
    """Let threads share what they free: each answer is made in a thread of its own.

    To be called before there are threads. Where the C library has no such thing, nothing is done.
    """
    libc.few_arenas(_ARENAS)


def give_back() -> None:
    """Give free memory back to the system, now and then."""
    if not _turn.acquire(blocking=False):
        return
    try:
        now = time.monotonic()
        if now - _state["given"] > _REST_S:
            _state["given"] = now
            libc.give_back()
    finally:
        _turn.release()
