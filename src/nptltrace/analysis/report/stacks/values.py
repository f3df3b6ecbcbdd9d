"""The figures of a run by call stack, to compare with other runs.

A wait counts at the stack of the waiter. A hold counts at the stack where the thread took the
object, and so does the waiting that the hold caused. If the trace has no stack of a hold, only its
call site counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.catalog.tables import WAIT_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace._binding import libptttrack_sums

__all__ = ["PIECES", "AtStack", "StackValues", "summed"]

PIECES = 100
"""Number of tables of sums to keep before they become one table."""

_KEYS = ("process", "stack", "site", "kind")
_CLASSES = len(WAIT_CLASSES)
_WAIT = [f"wait_ns_{number}" for number in range(_CLASSES)]
_SUMS = (*_WAIT, "held_ns", "waits", "hold_ns", "holds", "caused_ns")


@dataclass(frozen=True, slots=True)
class AtStack:
    """The sums at a stack for objects of one kind.

    Attributes:
        process: Number of the process.
        stack: Number of the stack in the process, 0 if unknown.
        site: The call site: a row of the model's sites.
        kind: Number of the objects' kind in the model.
        row: The sums, with the fields of the model's sites.
    """

    process: int
    stack: int
    site: int
    kind: int
    row: Any


class StackValues:
    """Adds up waits and holds while a model with the flag `ROWS` follows a trace."""

    def __init__(self) -> None:
        self._pieces: list[pa.Table] = []

    def add(self, model: libptttrack_sums.Model) -> None:
        """Take in the new waits and holds of a model."""
        waits, holds = (model.table(name, copy=False) for name in ("waits", "holds"))
        if len(waits) or len(holds):
            process = model.table("threads", copy=False)["process"]
            kinds = model.table("objects", copy=False)["kind"]
            self._add_waits(waits, process)
            self._add(
                process[holds["thread"]], holds["stack"], holds["site"], kinds[holds["object"]],
                hold_ns=holds["dur_ns"], holds=np.ones(len(holds), np.int64),
            )  # fmt: skip
        if len(self._pieces) > PIECES:
            self._pieces = [summed(self._pieces, _KEYS, _SUMS)]

    def rows(self) -> list[AtStack]:
        """Return the sums of each stack."""
        if not self._pieces:
            return []
        table = summed(self._pieces, _KEYS, _SUMS)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        sums = np.zeros(len(table), _ROW)
        sums["wait_ns"] = np.column_stack([columns[name] for name in _WAIT])
        sums["wait_n"][:, 0] = columns["waits"]
        for field, name in (
            ("held_ns", "held_ns"), ("hold_ns", "hold_ns"), ("hold_n", "holds"),
            ("caused_ns", "caused_ns"),
        ):  # fmt: skip
            sums[field] = columns[name]
        # The model has no used times by stack. All of them count as unknown.
        sums["undivided_ns"] = 1
        keys = zip(*(columns[name].tolist() for name in _KEYS), strict=True)
        return [
            AtStack(process, stack, site, kind, sums[at])
            for at, (process, stack, site, kind) in enumerate(keys)
        ]

    def _add_waits(self, waits: NDArray[Any], process: NDArray[Any]) -> None:
        wait_class = waits["wait_class"]
        contended = wait_class == 0
        self._add(
            process[waits["thread"]], waits["stack"], waits["site"], waits["kind"],
            **{name: np.where(wait_class == at, waits["dur_ns"], 0)
               for at, name in enumerate(_WAIT)},
            held_ns=np.where(contended, waits["held_ns"], 0), waits=contended,
        )  # fmt: skip
        caused = waits[contended & (waits["owner"] != 0)]
        self._add(
            process[caused["owner"]], caused["holder_stack"], caused["holder_site"], caused["kind"],
            caused_ns=caused["held_ns"],
        )  # fmt: skip

    def _add(
        self, process: NDArray[Any], stack: NDArray[Any], site: NDArray[Any], kind: NDArray[Any],
        **sums: NDArray[Any],
    ) -> None:  # fmt: skip
        none = np.zeros(len(process), np.int64)
        columns = dict(zip(_KEYS, (process, stack, site, kind), strict=True))
        columns |= {name: sums.get(name, none) for name in _SUMS}
        table = pa.table({name: column.astype(np.int64) for name, column in columns.items()})
        self._pieces.append(summed([table], _KEYS, _SUMS))


# The fields of the model's sites that `measures` reads.
_ROW = np.dtype(
    [("wait_ns", "i8", _CLASSES), ("wait_n", "i8", _CLASSES)]
    + [(name, "i8") for name in ("held_ns", "hold_ns", "hold_n", "caused_ns")]
    + [(name, "i8") for name in ("used_ns", "undivided_ns")]
)


def summed(pieces: Sequence[pa.Table], keys: Sequence[str], sums: Sequence[str]) -> pa.Table:
    """Return the sums of rows with the same keys.

    Args:
        pieces: The rows, as tables with the same schema.
        keys: Columns to group by.
        sums: Columns to add up.

    Returns:
        A table with the columns of `keys` and `sums`.
    """
    groups = pa.concat_tables(pieces).group_by(keys)
    table = groups.aggregate([(name, "sum") for name in sums])
    return table.rename_columns([*keys, *sums])
