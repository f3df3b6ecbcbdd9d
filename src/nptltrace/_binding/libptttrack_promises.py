"""Verification: events against the promises of POSIX; see `pttverify.h`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers import pttverify as c
from nptltrace._binding.headers.pttverify import VerifyEvent, VerifyProcess, VerifyViolation
from nptltrace._binding.libptttrack import NEVER, Tracker, load
from nptltrace._binding.library import check

if TYPE_CHECKING:
    from nptltrace._binding.libpttread import Buffer
    from nptltrace._binding.library import Library

__all__ = [
    "NEVER", "SEVERITIES", "Verifier", "VerifyEvent", "VerifyProcess", "VerifyViolation", "rules",
    "skips",
]  # fmt: skip

SEVERITIES = ("error", "warning")


@cache
def library() -> Library:
    """Load the library."""
    return load(c.FUNCTIONS, ("ptt_verify_version", c.PTT_VERIFY_VERSION))


def _names(function: str) -> tuple[str, ...]:
    names: list[str] = []
    name_of = getattr(library(), function)
    while (name := name_of(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


@cache
def rules() -> tuple[str, ...]:
    """Return the names of the rules, in the order of their numbers."""
    return _names("ptt_verify_rule_name")


@cache
def skips() -> tuple[str, ...]:
    """Return the reasons why a rule is not applied, in the order of their numbers."""
    return _names("ptt_verify_skip_name")


class Verifier(Tracker):
    """Compares events with the rules, in time order."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._own("make a verifier", lib.ptt_verify_create(), lib.ptt_verify_destroy)

    def process(self, number: int, facts: VerifyProcess) -> None:
        """Declare facts about a process that its events do not have."""
        status = self._lib.ptt_verify_process(self.handle, number, ctypes.byref(facts))
        check("follow a process", status)

    def feed(self, buffer: Buffer) -> None:
        """Verify the events of a buffer, which may be without the column `cpu`."""
        status = self._lib.ptt_verify_feed(self.handle, buffer.pointer, buffer.count)
        check("verify the events", status)

    def finish(self, patience_ns: int) -> None:
        """Verify the calls that never ended.

        Args:
            patience_ns: A thread that could have gone on for this long before its process ended,
                and did not, was not woken.
        """
        check("finish", self._lib.ptt_verify_finish(self.handle, patience_ns))

    def violations(self) -> list[VerifyViolation]:
        """Return copies of all violations."""
        count = c.u64()
        address = self._lib.ptt_verify_violations(self.handle, ctypes.byref(count))
        if not count.value:
            return []
        rows = (VerifyViolation * count.value).from_address(address)
        return [VerifyViolation.from_buffer_copy(row) for row in rows]

    def checks(self) -> dict[str, int]:
        """Return how often each rule was applied."""
        ask = self._lib.ptt_verify_checks
        return {name: int(ask(self.handle, n)) for n, name in enumerate(rules())}

    def skipped(self) -> dict[str, int]:
        """Return how often a rule was not applied, by reason."""
        ask = self._lib.ptt_verify_skips
        return {name: int(ask(self.handle, n)) for n, name in enumerate(skips())}
