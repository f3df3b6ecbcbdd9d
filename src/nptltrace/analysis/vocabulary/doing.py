"""Words for the states of threads that hold a lock."""

from __future__ import annotations

__all__ = ["DOING"]

DOING = {
    "running": "running", "ready": "without a processor", "asleep": "asleep",
    "blocked": "waiting", "unknown": "not known",
}  # fmt: skip
"""The words of a text, by the state in the tables `hold_samples` and `insides`."""
