"""Tables that are too large for memory come back unchanged from a file."""

from __future__ import annotations

import resource
import tempfile
from typing import NoReturn

import pyarrow as pa
import pytest

from nptltrace.analysis.sql.spill import Shelf
from nptltrace.errors import PttError


def _pieces() -> list[pa.Table]:
    """Return pieces with different dictionaries, as pieces of runs and call sites have."""
    return [
        pa.table(
            {
                "t_ns": pa.array(range(n * 1000, (n + 1) * 1000), pa.int64()),
                "word": pa.array([f"w{n}", "", None, f"v{n}"] * 250).dictionary_encode(),
                "list": pa.array([[n], [], None, [n, n]] * 250, pa.list_(pa.uint32())),
            }
        )
        for n in range(20)
    ]


@pytest.mark.parametrize("in_memory", [0, 100_000, 1 << 30])
def test_all_rows_come_back(in_memory: int) -> None:
    shelf = Shelf(in_memory)
    for piece in _pieces():
        shelf.add(piece)
    table = shelf.table()
    expected = pa.concat_tables(_pieces())
    assert table.schema == expected.schema
    assert table.to_pydict() == expected.to_pydict()


def test_a_table_in_a_file_takes_no_memory() -> None:
    pieces = _pieces()
    before = pa.total_allocated_bytes()
    shelf = Shelf(0)
    for piece in pieces:
        shelf.add(piece)
    table = shelf.table()
    assert table.num_rows == 20_000
    assert pa.total_allocated_bytes() - before < table.nbytes / 4


def test_without_a_file_all_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    shelf = Shelf(0)
    for piece in _pieces():
        shelf.add(piece)
    assert shelf.table().to_pydict() == pa.concat_tables(_pieces()).to_pydict()


@pytest.mark.parametrize("room", [0, 1000, 100_000])
def test_a_file_that_cannot_grow_is_reported_with_a_remedy(room: int) -> None:
    shelf = Shelf(0)

    def put_away() -> None:
        for piece in _pieces():
            shelf.add(piece)
        shelf.table()

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(PttError) as reported:
            put_away()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert tempfile.gettempdir() in str(reported.value)
    assert "set TMPDIR" in str(reported.value)
    assert "\n" not in str(reported.value)


def test_a_table_without_rows_has_its_columns() -> None:
    shelf = Shelf(0)
    empty = _pieces()[0].slice(0, 0)
    shelf.add(empty)
    assert shelf.table().schema == empty.schema
