"""What a run did by call stack: for each the figures that a comparison has of call sites.

Waits count at the waiter's stack, holds at that of taking the object, and what others waited
meanwhile at the holder's. Where a trace has no stack of a hold, its call site alone stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.catalog.tables import WAIT_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace._binding import libptttrack_sums

__all__ = ["AtStack", "StackValues"]

_KEYS = ("process", "stack", "site", "kind")
# Sums of waits by class, of the first also while held; of holds; and what was caused.
_CLASSES = len(WAIT_CLASSES)
_WAIT = [f"wait_ns_{number}" for number in range(_CLASSES)]
_SUMS = (*_WAIT, "held_ns", "waits", "hold_ns", "holds", "caused_ns")
_PIECES = 100  # sums to keep before they are made one


@dataclass(frozen=True, slots=True)
class AtStack:
    """What happened at a stack with objects of a kind.

    Attributes:
        process: Number of the process.
        stack: Number of the stack in it, 0 where it is not known.
        site: The call site, a row of the model's sites.
        kind: Kind of the objects, as the model numbers it.
        row: Sums as the model has them of a call site.
    """

    process: int
    stack: int
    site: int
    kind: int
    row: Any


class StackValues:
    """Adds up waits and holds while a model, which keeps rows, follows a trace."""

    def __init__(self) -> None:
        self._pieces: list[pa.Table] = []

    def add(self, model: libptttrack_sums.Model) -> None:
        """Take in the waits and holds that a model has reported."""
        waits, holds = (model.table(name, copy=False) for name in ("waits", "holds"))
        if len(waits) or len(holds):
            process = model.table("threads", copy=False)["process"]
            kinds = model.table("objects", copy=False)["kind"]
            self._add_waits(waits, process)
            self._add(
                process[holds["thread"]], holds["stack"], holds["site"], kinds[holds["object"]],
                hold_ns=holds["dur_ns"], holds=np.ones(len(holds), np.int64),
            )  # fmt: skip
        if len(self._pieces) > _PIECES:
            self._pieces = [_summed(self._pieces)]

    def rows(self) -> list[AtStack]:
        """Return what happened at each stack."""
        if not self._pieces:
            return []
        found = _summed(self._pieces)
        columns = {name: found[name].to_numpy() for name in found.column_names}
        sums = np.zeros(len(found), _ROW)
        sums["wait_ns"] = np.column_stack([columns[name] for name in _WAIT])
        sums["wait_n"][:, 0] = columns["waits"]
        for field, name in (
            ("held_ns", "held_ns"), ("hold_ns", "hold_ns"), ("hold_n", "holds"),
            ("caused_ns", "caused_ns"),
        ):  # fmt: skip
            sums[field] = columns[name]
        # Used times are not added up by stack: none is known.
        sums["undivided_ns"] = 1
        keys = zip(*(columns[name].tolist() for name in _KEYS), strict=True)
        return [
            AtStack(process, stack, site, kind, sums[at])
            for at, (process, stack, site, kind) in enumerate(keys)
        ]

    def _add_waits(self, waits: NDArray[Any], process: NDArray[Any]) -> None:
        what = waits["wait_class"]
        contended = what == 0
        self._add(
            process[waits["thread"]], waits["stack"], waits["site"], waits["kind"],
            **{name: np.where(what == at, waits["dur_ns"], 0) for at, name in enumerate(_WAIT)},
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
        self._pieces.append(_summed([table]))


# As rows of the model's sites have it.
_ROW = np.dtype(
    [("wait_ns", "i8", _CLASSES), ("wait_n", "i8", _CLASSES)]
    + [(name, "i8") for name in ("held_ns", "hold_ns", "hold_n", "caused_ns")]
    + [(name, "i8") for name in ("used_ns", "undivided_ns")]
)


def _summed(pieces: list[pa.Table]) -> pa.Table:
    sums = pa.concat_tables(pieces).group_by(_KEYS)
    found = sums.aggregate([(name, "sum") for name in _SUMS])
    return found.rename_columns([*_KEYS, *_SUMS])
