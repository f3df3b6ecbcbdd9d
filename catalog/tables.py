# SPDX-License-Identifier: MIT
"""Read tables.toml, and generate the declarations of the tables of a trace."""

from __future__ import annotations

import sys
import textwrap
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heads import c_head, py_head, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SOURCE = "tables.toml"

KEYS = {"arg", "as", "c", "count", "from", "made", "meaning", "name", "of", "type", "unit"}
# Type and unit of the values of a conversion, unless the column has its own.
CONVERSIONS = {
    "flag": ("bool", ""),
    "gen": ("uint32", ""),
    "kind": ("word", ""),
    "known": ("int64", "ns"),
    "nonzero": ("uint32", ""),
    "object": ("uint64", "address"),
    "object_process": ("uint32", "id"),
    "plain": ("", ""),
    "process": ("uint32", "id"),
    "process_or_null": ("uint32", "id"),
    "processor": ("uint16", ""),
    "site": ("uint64", "address"),
    "site_process": ("uint32", "id"),
    "stack": ("word", "id"),
    "tid": ("uint32", ""),
    "time": ("int64", "ns"),
    "words": ("word", ""),
    "words_or_null": ("word", ""),
}


# Sizes of fields of a row in bytes, and lengths of arrays that are constants of other headers.
C_TYPES = {"int64_t": 8, "uint64_t": 8, "int32_t": 4, "uint32_t": 4, "uint16_t": 2, "uint8_t": 1}
C_COUNTS = {"PTT_KINDS": 16}
# The value in C that stands for null.
C_NULLS = {
    "known": "-1 = null",
    "nonzero": "0 = null",
    "processor": "UINT16_MAX = null",
    "time": "INT64_MIN = null",
    "words_or_null": "0 = null",
}
COMMENT_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Name of the column.
        type: Type in Arrow, or `word`.
        unit: `ns`, `address`, `id`, or empty.
        meaning: Meaning of the column.
        made: The module that makes the column by hand: `model`, `sql`, or empty.
        conversion: Conversion of a field to a value; empty if the column is made by hand.
        source: The field of the struct; for a call stack, the columns that it comes from.
        argument: Argument of the conversion, or None.
        c_type: Type of the field in C, or empty.
        c_count: Length of an array, a number or a constant; 0 if the field is no array.
        c_comment: Comment on the field in C.
    """

    name: str
    type: str
    unit: str
    meaning: str
    made: str
    conversion: str
    source: tuple[str, ...]
    argument: int | str | None
    c_type: str
    c_count: int | str
    c_comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: Name of the table.
        row: Meaning of a row.
        struct: The struct of a row in the tracker, or empty.
        starts: The beginning of the struct: lines of C, each with its size in bytes.
        columns: The columns.
        inputs: Columns that only call stacks and columns made by hand need.
        about: The comment on the struct.
        fields: More fields of the struct.
    """

    name: str
    row: str
    struct: str
    starts: tuple[tuple[str, int], ...]
    columns: tuple[Column, ...]
    inputs: tuple[Column, ...]
    about: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Words in place of numbers.

    Attributes:
        words: The words. The number of a word is its place.
        about: The comment on the constants in C, if C has them.
        prefix: Prefix of the names of these constants.
        count: Name of the constant for the number of words.
    """

    words: tuple[str, ...]
    about: str
    prefix: str
    count: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of tables.toml.

    Attributes:
        version: The version of the schema.
        words: Lists of words by name.
        structs: Structs of rows without a table.
        tables: The tables.
    """

    version: int
    words: dict[str, Words]
    structs: list[Table]
    tables: list[Table]


def load_tables(path: Path) -> Declared:
    """Read the tables, and the words in their columns."""
    declared = tomllib.loads(path.read_text(encoding="utf-8"))
    shared: dict[str, Any] = declared["shared"]

    def load(entry: dict[str, Any]) -> Table:
        name: str = entry.get("name", "")

        def columns(key: str) -> tuple[Column, ...]:
            own = name or entry["struct"]
            known = {} if key == "fields" else shared
            return tuple(_column(own, column, known) for column in entry.get(key, ()))

        return Table(
            name=name,
            row=entry.get("row", ""),
            struct=entry.get("struct", ""),
            starts=tuple((start["c"], start["bytes"]) for start in entry.get("starts", ())),
            columns=columns("columns"),
            inputs=columns("inputs"),
            about=entry.get("about", ""),
            fields=columns("fields"),
        )

    words = {
        name: Words(
            tuple(entry["words"]),
            entry.get("about", ""),
            entry.get("prefix", ""),
            entry.get("count", ""),
        )
        for name, entry in declared["words"].items()
    }
    structs, tables = ([load(entry) for entry in declared[key]] for key in ("struct", "table"))
    return Declared(declared["schema_version"], words, structs, tables)


def _column(table: str, entry: str | dict[str, Any], shared: dict[str, Any]) -> Column:
    own: dict[str, Any] = {"name": entry} if isinstance(entry, str) else entry
    name: str = own["name"]
    if isinstance(entry, str) and name not in shared:
        sys.exit(f"tables.toml: table {table} has {name}, which is not a shared column")
    common: dict[str, Any] = shared.get(name, {})
    if "made" in own or "as" in own:
        common = {key: value for key, value in common.items() if key not in ("as", "c", "from")}
    found = common | own
    if unknown := sorted(found.keys() - KEYS):
        sys.exit(f"tables.toml: {table}.{name} has '{unknown[0]}', which means nothing")
    conversion: str = "" if "made" in found else found.get("as", "plain")
    if conversion and conversion not in CONVERSIONS:
        sys.exit(f"tables.toml: {table}.{name} cannot be made by '{conversion}'")
    implied = CONVERSIONS.get(conversion, ("", ""))
    if not implied[0] and name.endswith("_ns"):
        implied = ("int64", "ns")
    if name in shared and not implied[0]:
        implied = CONVERSIONS[shared[name].get("as", "plain")]
    source = found.get("from", name)
    if "of" in found:
        found["meaning"] = f"call stack of {found['of']}; null when unknown"
    return Column(
        name=name,
        type=found.get("type", implied[0]),
        unit=found.get("unit", "" if "type" in found else implied[1]),
        meaning=found.get("meaning", ""),
        made=found.get("made", ""),
        conversion=conversion,
        source=tuple(source) if isinstance(source, list) else (source,),
        argument=found.get("arg"),
        c_type=found.get("c", ""),
        c_count=found.get("count", 0),
        c_comment="; ".join(filter(None, [own.get("meaning"), C_NULLS.get(conversion)])),
    )


def py_tables(declared: Declared) -> str:
    """The tables for Python, as plain tuples."""
    tables = declared.tables
    out = [
        *py_head(
            "The tables of a trace, and how their columns come from rows of the tracker.", SOURCE
        ),
        "from typing import Literal",
        "",
        "from nptltrace.catalog._domains import SYS_CALLS",
        "",
        f"SCHEMA_VERSION = {declared.version}",
        "",
        f"WaitClass = Literal[{', '.join(map(quoted, declared.words['wait_classes'].words))}]",
        f"WAIT_CLASSES: tuple[WaitClass, ...] = {_tuple(declared.words['wait_classes'].words)}",
        "",
        "# Words by their numbers.",
        *(
            f"{name.upper()}: tuple[str, ...] = {_tuple(words.words)}"
            for name, words in declared.words.items()
            if name != "wait_classes"
        ),
        "",
        "# Name and meaning of a row of each table; name, type, unit and meaning of each column.",
        "TABLES: tuple[tuple[str, str, tuple[tuple[str, str, str, str], ...]], ...] = (",
    ]
    for table in tables:
        out += [f"    ({quoted(table.name)}, {quoted(table.row)}, ("]
        for c in table.columns:
            if not c.type or not c.meaning:
                sys.exit(f"tables.toml: {table.name}.{c.name} needs a type and a meaning")
            out.append(f"        {_tuple((c.name, c.type, c.unit, c.meaning))},")
        out.append("    )),")
    out += [
        ")",
        "",
        "# Of tables of the tracker: columns, their conversions, fields of a row, and arguments.",
        "FROM_ROWS: dict[str, tuple[tuple[str, str, str, int | tuple[str, ...] | None], ...]] = {",
    ]
    traced = [table for table in tables if table.struct]
    for table in traced:
        out.append(f"    {quoted(table.name)}: (")
        for c in (*table.columns, *table.inputs):
            if c.made == "model" or c.conversion not in ("", "stack"):
                known = _tuple((c.name, c.conversion or "made", c.source[0]))[:-1]
                words = c.argument.upper() if isinstance(c.argument, str) else c.argument
                out.append(f"        {known}, {words}),")
        out.append("    ),")
    out += [
        "}",
        "",
        "# Of each of these tables: call stacks, and the columns that they are made of.",
        "STACKS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {",
    ]
    for table in traced:
        stacks = [c for c in table.columns if c.conversion == "stack"]
        out.append(f"    {quoted(table.name)}: (")
        out += [f"        {_tuple((c.name, c.source))}," for c in stacks]
        out.append("    ),")
    return "\n".join([*out, "}", ""])


def c_rows(declared: Declared) -> str:
    """The structs of rows."""
    out = [
        *c_head(
            "model_rows.h - rows of the model's tables: times in ns, numbers of rows, 0 = none.",
            SOURCE,
        ),
        "#ifndef MODEL_ROWS_H",
        "#define MODEL_ROWS_H",
        "",
        "#include <stdint.h>",
        "",
        '#include "../ptttrack.h"',
    ]
    counts = dict(C_COUNTS)
    for words in (words for words in declared.words.values() if words.prefix):
        out += ["", *_c_comment(words.about, ""), "enum {"]
        names = [f"{words.prefix}{word.upper()}" for word in words.words]
        out += [*(f"\t{name}," for name in (*names, words.count)), "};"]
        counts[words.count] = len(names)
    for table in (*declared.structs, *declared.tables):
        if table.struct:
            out += _c_struct(table, counts)
    return "\n".join([*out, "", "#endif", ""])


def _c_struct(table: Table, counts: dict[str, int]) -> list[str]:
    """A struct, the largest fields first so that there are no gaps between them."""
    fields: dict[str, Column] = {}
    for c in (*table.columns, *table.inputs, *table.fields):
        if c.c_type:
            fields.setdefault(c.source[0], c)
    name = f"struct ptt_{'' if table.struct == 'sums' else 'model_'}{table.struct}"
    out = ["", f"/* {table.about} */", f"{name} {{"]
    size = 0
    for line, length in table.starts:
        out.append(f"\t{line}{';' if ' ' in line else ''}")
        size += length
    for c in sorted(fields.values(), key=lambda c: -C_TYPES[c.c_type]):
        out += _c_comment(c.c_comment)
        out.append(f"\t{c.c_type} {c.source[0]}{f'[{c.c_count}]' if c.c_count else ''};")
        count = counts[c.c_count] if isinstance(c.c_count, str) else c.c_count
        size += C_TYPES[c.c_type] * (count or 1)
    if left := -size % 8:
        out.append(f"\tuint8_t reserved[{left}];")
    return [*out, "};", "", f'_Static_assert(sizeof({name}) == {size + left}, "{table.struct}");']


def _c_comment(text: str, indent: str = "\t") -> list[str]:
    lines = textwrap.wrap(text, COMMENT_WIDTH)
    if len(lines) < 2:
        return [f"{indent}/* {line} */" for line in lines]
    return [f"{indent}/*", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def _tuple(values: Iterable[Any]) -> str:
    parts = [
        _tuple(value) if isinstance(value, tuple) else quoted(value) if isinstance(value, str)
        else str(value)
        for value in values
    ]  # fmt: skip
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
