"""A thing has the same name and type in every document, table and view."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import islice
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from nptltrace._binding.headers import model_rows
from nptltrace.analysis.sql.query import view_columns, view_schemas
from nptltrace.analysis.sql.schema import EVENT_FIELDS, TABLES
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.analysis.vocabulary.meanings import NAMES
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.cli.output import json_documents
from nptltrace.cli.pages import json_page
from nptltrace.ui.shapes import fits
from tests.support import ROOT
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Ptt

SHAPES = {
    shape.__name__: shape
    for document in json_documents.DOCUMENTS.values()
    for shape in json_documents.shapes_of(document)
}
# Types of names, and the types of their values in JSON.
IN_JSON = {
    "address": str, "call site": str, "text": str, "number": int, "count": int, "ns": int,
    "unix ns": int, "share": float, "flag": bool,
}  # fmt: skip
IN_TABLES: dict[str, Callable[[pa.DataType], bool]] = {
    "address": pa.types.is_uint64,
    "call site": pa.types.is_string,
    "text": pa.types.is_string,
    "number": pa.types.is_integer,
    "count": pa.types.is_integer,
    "ns": pa.types.is_int64,
    "unix ns": pa.types.is_int64,
    "share": pa.types.is_floating,
    "flag": pa.types.is_boolean,
}
ADDRESS = re.compile(r"0x[0-9a-f]+")
# The site of an event is the address, as `ptt view` prints it; `site_name` is the text.
SITE_OF_EVENT = ("events", "site")


# ---- declarations ----


def without_null(hint: Any) -> Any:
    """Return the type of a value that is not null."""
    if get_origin(hint) is UnionType:
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    return str if get_origin(hint) is Literal else hint


@pytest.mark.parametrize("shape", SHAPES)
def test_each_name_of_a_document_has_its_type(shape: str) -> None:
    for name, hint in get_type_hints(SHAPES[shape]).items():
        kind, plain = NAMES[name], without_null(hint)
        if kind.type == "element":
            assert hasattr(plain, "__required_keys__") or get_origin(plain) is dict, name
        elif kind.type == "counts":
            assert get_args(plain) == (str, int), name
        elif kind.type == "list":
            assert get_origin(plain) is list or (kind.plural and plain is int), name
        else:
            assert plain is IN_JSON[kind.type], name


@pytest.mark.parametrize("table", TABLES)
def test_each_column_has_the_type_of_its_name(table: str) -> None:
    for field in TABLES[table].schema():
        if field.name in NAMES and not (table == "events" and field.name in EVENT_FIELDS):
            agrees(table, field.name, field.type)


def test_each_column_of_a_view_has_the_type_of_its_name() -> None:
    for view, schema in view_schemas().items():
        for field in schema:
            if field.name in NAMES:
                agrees(view, field.name, field.type)


def agrees(table: str, name: str, type_: pa.DataType) -> None:
    """Check that a column has the one type of its name."""
    kind = NAMES[name]
    if (table, name) == SITE_OF_EVENT:
        assert pa.types.is_uint64(type_)
        return
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    if kind.type == "list":
        is_text = name == "cmdline" and pa.types.is_string(plain)
        assert pa.types.is_list(plain) or is_text or (kind.plural and pa.types.is_integer(plain))
    else:
        assert IN_TABLES[kind.type](plain), (table, name, str(type_))


def test_documents_and_model_have_the_same_classes_of_waits() -> None:
    numbers = [getattr(model_rows, f"PTT_{name.upper()}") for name in WAIT_CLASSES]
    assert numbers == list(range(model_rows.PTT_CLASSES))


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert text == json_page.renewed(text), "run `make commands`"


def test_views_name_no_column_twice() -> None:
    for columns in view_columns().values():
        assert len(columns) == len(set(columns))
    assert len({view.name for view in VIEWS}) == len(VIEWS)


# ---- what commands print ----


def values(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a document with its name, and every element of a list."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from values(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from values(value, name)
    else:
        yield name, document


def check_document(command: str, document: Any) -> None:
    """Check a document against its shape, and its values against their names."""
    assert fits(json_documents.DOCUMENTS[command], document), f"{command} prints another shape"
    validator = Draft202012Validator(json_documents.json_schema(command))
    assert not list(islice(validator.iter_errors(document), 1)), command
    for name, value in values(document):
        known = NAMES.get(name)
        if value is None or known is None:
            continue
        if known.type == "address" or (name == "objects" and isinstance(value, str)):
            assert ADDRESS.fullmatch(value), (command, name, value)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Any) -> list[Path]:
    """Traces of a program with events of many kinds, of several processes, and of a hang."""
    directory = tmp_path_factory.mktemp("rich")
    commands = {
        "mix": (program("mix"), "7", "60"),
        "children": (program("children"),),
        "deadlock": (program("deadlock"), "end"),
    }
    for name, command in commands.items():
        ptt("record", "-o", directory / name, "-l", "3", "--", *command, status=None)
    return [directory / name for name in commands]


COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "stat": [()],
    "report": [(), ("--by", "site"), ("--by", "thread,object")],
    "check": [(), ("--suspects", "--long-hold", "1us")],
    "verify": [()],
    "diff": [(), ("--by", "object"), ("--by", "thread")],
    "top": [()],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_have_their_shapes(ptt: Ptt, rich: list[Path], command: str) -> None:
    for options in COMMANDS[command]:
        for trace in rich:
            traces = [trace, rich[0]] if command == "diff" else [trace]
            printed = ptt(command, "--format", "json", *options, *traces, status=None).stdout
            check_document(command, json.loads(printed))


def test_each_document_has_a_valid_schema(ptt: Ptt) -> None:
    every = json.loads(ptt("json-schema").stdout)
    assert list(every) == list(json_documents.DOCUMENTS)
    for command, schema in every.items():
        Draft202012Validator.check_schema(schema)
        assert json.loads(ptt("json-schema", *command.split()).stdout) == schema
        refused = next(Draft202012Validator(schema).iter_errors({}))
        assert refused.validator == "required", command
    assert "choose from" in ptt("json-schema", "reports", status=2).stderr


def test_several_traces_have_the_same_shapes(ptt: Ptt, rich: list[Path]) -> None:
    for command in ("stat", "report", "check", "verify"):
        printed = ptt(command, "--format", "json", *rich, status=None).stdout
        check_document(command, json.loads(printed))


def test_the_documents_of_the_hang_have_no_empty_lists(ptt: Ptt, rich: list[Path]) -> None:
    """Otherwise the shapes above would hold of empty lists."""
    found = json.loads(ptt("check", "--format", "json", rich[2], status=1).stdout)
    assert "deadlock" in {finding["kind"] for finding in found["findings"]}
    report = json.loads(ptt("report", "--format", "json", *rich).stdout)
    for name in ("objects", "threads", "never_ended", "deadlocks"):
        assert report[name], name
    assert any(thread["waited_for"] for thread in report["threads"])
    # Over all traces, the critical path may lead through the last program alone, which one thread
    # ends.
    one = json.loads(ptt("report", "--format", "json", rich[0]).stdout)
    assert one["critical_path"]["links"]


def test_lines_of_events_have_the_declared_fields(ptt: Ptt, rich: list[Path]) -> None:
    own = set(EVENT_FIELDS.values())
    shape = get_type_hints(json_documents.DOCUMENTS["view"])
    for line in ptt("view", "--format", "jsonl", rich[0]).stdout.splitlines():
        event = json.loads(line)
        common = {name: event.pop(name) for name in shape if name in event}
        check_document("view", common)
        assert ADDRESS.fullmatch(common["site"]) or not common["site"]
        assert event.keys() <= own


@pytest.mark.parametrize("command", [*COMMANDS, "view"])
def test_columns_of_csv_are_names(ptt: Ptt, rich: list[Path], command: str) -> None:
    for options in COMMANDS.get(command, [()]):
        traces = [rich[2], rich[0]] if command == "diff" else [rich[2]]
        printed = ptt(command, "--format", "csv", *options, *traces, status=None).stdout
        header, *rows = csv.reader(io.StringIO(printed))
        assert set(header) <= NAMES.keys()
        for row in rows:
            for name, cell in zip(header, row, strict=True):
                if NAMES[name].type == "address" and cell:
                    assert ADDRESS.fullmatch(cell), (command, name, cell)


def test_tables_and_documents_have_the_same_objects(ptt: Ptt, rich: list[Path]) -> None:
    query = "select address(addr) as object, pid, kind from objects where kind <> 'thread'"
    rows = json.loads(ptt("sql", "--format", "json", rich[0], query).stdout)
    stat = json.loads(ptt("stat", "--format", "json", rich[0]).stdout)
    named = {(item["object"], item["pid"]) for item in stat["objects"]}
    assert named
    assert named == {(row["object"], row["pid"]) for row in rows}


def test_every_answer_reports_what_ptt_did_not_record(ptt: Ptt, tmp_path: Path) -> None:
    made = Builder(tmp_path / "made.ptt")
    made.thread(1, [Event(10**12, "MUTEX_TAKEN", 64, 5), Event(10**12 + 9, "MUTEX_FREE", 64, 6)])
    made.session["uncovered"] = [{"module": "/opt/prog", "why": "static pthread"}]
    trace = made.write()
    for command in ("stat", "report", "check"):
        document = json.loads(ptt(command, "--format", "json", trace).stdout)
        check_document(command, document)
        assert document["uncovered"] == [{"module": "/opt/prog", "why": "static pthread"}]
