"""How sentences end when the library refused what a thread asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.findings.facts import Fact

__all__ = ["refusal"]


def refusal(fact: Fact) -> str:
    """Return the end of the sentence; empty where nothing was refused."""
    return f" (refused with {fact.steps[-1].error})" if fact.refused else ""
