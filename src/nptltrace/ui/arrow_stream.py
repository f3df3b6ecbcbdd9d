"""Tables as `protocol` declares them, of plain columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace.trace.reading import arrow

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["table"]


def table(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of numbers and texts.

    Args:
        schema: What it holds.
        columns: Arrays or lists by name; more may be there.
    """
    arrays = [
        arrow.texts(columns[field.name])
        if pa.types.is_string(field.type)
        else arrow.numbers(np.ascontiguousarray(columns[field.name], dtype=str(field.type)))
        for field in schema
    ]
    return pa.table(arrays, schema=schema)
