"""Chooses runs of a store by program, host or label, and lists them."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError, near
from nptltrace.fleet.tables import LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from nptltrace.analysis.vocabulary.document_types import FleetRuns
    from nptltrace.fleet.fleet import Fleet

__all__ = ["Chosen", "choose", "fleet_runs", "value_of"]

_OWN = ("host", "exe", "run_id")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen runs.

    Attributes:
        rows: Their rows in `runs`, ordered by the start of the run.
        names: The names that you can choose runs by.
    """

    rows: list[dict[str, Any]]
    names: list[str]

    @property
    def run_ids(self) -> list[str]:
        """Their UUIDs."""
        return [row["run_id"] for row in self.rows]

    def values(self, name: str) -> dict[str, list[int]]:
        """Return the values of a name, and for each value the indices in `rows` of its runs.

        Args:
            name: `host`, `exe`, `run_id` or the name of a label.

        Raises:
            UsageError: No run has such a name.
        """
        if name not in self.names:
            raise _unknown(name, self.names)
        runs: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            value = value_of(row, name)
            if value is not None:
                runs.setdefault(value, []).append(number)
        return runs


def value_of(run: Mapping[str, Any], name: str) -> str | None:
    """Return the value that a run has for a name; None without a value."""
    value = run.get(name if name in _OWN else LABEL + name)
    return PurePath(value).name if name == "exe" and value else value


def choose(runs: pa.Table, wanted: Sequence[str]) -> Chosen:
    """Return the runs that match every name.

    Args:
        runs: The table of runs.
        wanted: Texts `NAME=VALUE`. The name is `host`, `exe`, `run_id` or the name of a label. If
            a name comes several times, any of its values matches.

    Raises:
        UsageError: A text does not have this form, or no run has such a name.
    """
    labels = [name.removeprefix(LABEL) for name in runs.column_names if name.startswith(LABEL)]
    names = [*_OWN, *labels]
    values: dict[str, set[str]] = {}
    for text in wanted:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r}: give NAME=VALUE, such as release=1.4.2 or host=web1")
        if name not in names:
            raise _unknown(name, names)
        values.setdefault(name, set()).add(value)
    rows = [
        row
        for row in runs.to_pylist()
        if all(value_of(row, name) in allowed for name, allowed in values.items())
    ]
    return Chosen(rows, names)


def fleet_runs(fleet: Fleet, chosen: Chosen) -> FleetRuns:
    """Return the document of `ptt fleet list`: the chosen runs, ordered by their start."""
    labels = fleet.store.labels()
    return {
        "store": fleet.store.place,
        "runs": [
            {
                "run_id": row["run_id"], "start_unix_ns": row["start_unix_ns"],
                "added_unix_ns": row["added_unix_ns"], "host": row["host"] or "",
                "exe": PurePath(row["exe"] or "").name, "events": row["events"],
                "summary": row["summary"],
                "labels": [
                    f"{name}={value}" for name in labels if (value := value_of(row, name))
                ],
            }
            for row in chosen.rows
        ],
    }  # fmt: skip


def _unknown(name: str, names: Sequence[str]) -> UsageError:
    known = near(name, names) or f": they have {', '.join(names)}"
    return UsageError(f"no run has a {name}{known}")
