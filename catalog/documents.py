# SPDX-License-Identifier: MIT
"""Read documents.toml, and generate the shapes of JSON documents and the meanings of names."""

from __future__ import annotations

import keyword
import re
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heads import py_head, quoted

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "documents.toml"
WIDTH = 95

# Type in Python of a value, by the type of its name.
DEFAULTS = {
    "address": "str",
    "call site": "str",
    "count": "int",
    "counts": "dict[str, int]",
    "flag": "bool",
    "ns": "int",
    "number": "int",
    "share": "float",
    "text": "str",
    "unix ns": "int",
}
FIELD = re.compile(r"(?P<name>\w+)(?P<null>\?)?(: (?P<type>[^=]+?))?( = (?P<path>[\w.]+))?")
BASE = re.compile(r"\*(?P<name>\w+)( = (?P<path>[\w.]+))?")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a shape.

    Attributes:
        name: Name of the field, or of a base shape.
        type: Type in Python, without null; empty for a base shape.
        null: Whether the value may be null.
        path: The attributes of the source that lead to the value.
        how: How the value is written: `plain`, `hex`, `site`, `list`, `dict`, or a shape.
        depth: Number of nested lists around the value.
    """

    name: str
    type: str
    null: bool
    path: str
    how: str
    depth: int

    @property
    def annotation(self) -> str:
        """The type as Python spells it."""
        return f"{self.type} | None" if self.null else self.type


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of an object in a document.

    Attributes:
        name: Name of the shape.
        about: Meaning of the shape.
        source: The Python class with the values, or empty.
        bases: Base shapes, in the order of Python.
        total: Whether all fields are present.
        fields: The fields, with base shapes at the place of their fields.
    """

    name: str
    about: str
    source: str
    bases: tuple[str, ...]
    total: bool
    fields: tuple[Field, ...]

    @property
    def own(self) -> list[Field]:
        """The fields without base shapes."""
        return [field for field in self.fields if field.type]


@dataclass(frozen=True, slots=True)
class Documents:
    """The declarations of documents.toml.

    Attributes:
        types: Meaning of each type.
        names: Type, meaning and `plural` of each name.
        words: Types with only a few values, with their values.
        shapes: The shapes.
    """

    types: dict[str, str]
    names: dict[str, dict[str, Any]]
    words: dict[str, list[str]]
    shapes: list[Shape]


def load_documents(path: Path) -> Documents:
    """Read the names and shapes."""
    declared = tomllib.loads(path.read_text(encoding="utf-8"))
    names = declared["names"]
    known = {shape["name"] for shape in declared["shape"]}
    shapes = [
        Shape(
            shape["name"],
            shape["about"],
            shape.get("from", ""),
            tuple(shape.get("bases", ())),
            shape.get("total", True),
            tuple(_field(shape["name"], text, names, known) for text in shape.get("fields", ())),
        )
        for shape in declared["shape"]
    ]
    return Documents(declared["types"], names, declared["words"], shapes)


def _field(shape: str, text: str, names: dict[str, dict[str, Any]], known: set[str]) -> Field:
    if base := BASE.fullmatch(text):
        return Field(
            name=base["name"], type="", null=False, path=base["path"] or "", how=base["name"],
            depth=0,
        )  # fmt: skip
    found = FIELD.fullmatch(text)
    if found is None:
        sys.exit(f"documents.toml: {shape} has {text!r}, which is not NAME?: TYPE = PATH")
    name = found["name"]
    if name not in names:
        sys.exit(f"documents.toml: {shape}.{name} is no name of [names]")
    kind: str = names[name]["type"]
    type_ = found["type"] or DEFAULTS.get(kind, "")
    if not type_:
        sys.exit(f"documents.toml: {shape}.{name} needs a type")
    inner, depth = type_, 0
    while inner.startswith("list["):
        inner, depth = inner[5:-1], depth + 1
    if inner in known:
        how = inner
    elif inner == "site":
        how = "site"
    elif inner == "address" or (kind == "address" and not found["type"]):
        how = "hex"
    else:
        how, depth = "dict" if inner.startswith("dict[") else "list" if depth else "plain", 0
    plain = re.sub(r"\b(address|site)\b", "str", type_).replace("'", '"')
    return Field(name, plain, bool(found["null"]), found["path"] or name, how, depth)


def py_meanings(documents: Documents) -> str:
    """The meanings of the names."""
    kinds = ", ".join(quoted(kind) for kind in documents.types)
    out = [
        *py_head(
            "Types and meanings of the names in JSON documents, tables and exports.",
            SOURCE,
        ),
        "from typing import Literal",
        "",
        "from nptltrace._dataclasses import dataclass",
        "",
        '__all__ = ["NAMES", "TYPES", "Name", "Type"]',
        "",
        f"Type = Literal[{kinds}]",
        "",
        "# Meanings of the types.",
        "TYPES: dict[Type, str] = {",
        *(f"    {quoted(kind)}: {quoted(about)}," for kind, about in documents.types.items()),
        "}",
        "",
        "",
        "@dataclass(frozen=True, slots=True)",
        "class Name:",
        '    """A name.',
        "",
        "    Attributes:",
        "        type: Type of the values.",
        "        meaning: Meaning of the values.",
        "        plural: Whether a value may be a number of things as well as their list.",
        '    """',
        "",
        "    type: Type",
        "    meaning: str",
        "    plural: bool = False",
        "",
        "",
        "NAMES: dict[str, Name] = {",
    ]
    for name, entry in documents.names.items():
        values = f"{quoted(entry['type'])}, {quoted(entry['meaning'])}"
        plural = ", plural=True" if entry.get("plural") else ""
        out.append(f"    {quoted(name)}: Name({values}{plural}),")
    return "\n".join([*out, "}", ""])


def py_shapes(documents: Documents) -> str:
    """The shapes as types."""
    exported = sorted([*documents.words, *(shape.name for shape in documents.shapes)])
    names = textwrap.wrap(", ".join(map(quoted, exported)) + ",", WIDTH)
    out = [
        *py_head(
            "Shapes of the JSON documents that commands print and `Traceset` returns, as types.",
            SOURCE,
            "",
            "`meanings` has the meanings and units of the names. A missing value is null, or the",
            "empty text for names of things and call sites.",
        ),
        "from typing import Literal, TypedDict",
        "",
        "from nptltrace.catalog.tables import WaitClass",
        "",
        "__all__ = [",
        *(f"    {line}" for line in names),
        "]",
        "",
    ]
    for name, words in documents.words.items():
        out.append(f"{name} = Literal[{', '.join(map(quoted, words))}]")
    for shape in documents.shapes:
        out += ["", "", *_shape(shape)]
    return "\n".join([*out, ""])


def _shape(shape: Shape) -> list[str]:
    if any(keyword.iskeyword(field.name) for field in shape.own):
        fields = [f"    {quoted(field.name)}: {field.annotation}," for field in shape.own]
        head = f"{shape.name} = TypedDict({quoted(shape.name)}, {{"
        return [head, *fields, "})", f"{shape.name}.__doc__ = {quoted(shape.about)}"]
    bases = ", ".join(shape.bases) or "TypedDict"
    total = "" if shape.total else ", total=False"
    fields = [f"    {field.name}: {field.annotation}" for field in shape.own]
    about = f'    """{shape.about}"""'
    return [f"class {shape.name}({bases}{total}):", about, *(["", *fields] if fields else [])]


def py_sources(documents: Documents) -> str:
    """The sources of the values of the shapes."""
    out = [
        *py_head("The attributes of results that become fields of JSON documents.", SOURCE),
        '__all__ = ["FIELDS"]',
        "",
        "# For each shape and field: the name, the attributes that lead to the value, how to",
        "# write the value, the number of lists around it, and the substitute for None. A field",
        "# without a name stands for all fields of a shape.",
        "FIELDS: dict[str, tuple[tuple[str, tuple[str, ...], str, int, str | None], ...]] = {",
    ]
    for shape in documents.shapes:
        if not shape.source:
            continue
        out += [f"    # From {shape.source}.", f"    {quoted(shape.name)}: ("]
        for field in shape.fields:
            path = ", ".join(map(quoted, field.path.split(".")))
            path += "" if "." in field.path else ","
            none = '""' if field.type == "str" and not field.null else "None"
            name = quoted(field.name if field.type else "")
            out.append(f"        ({name}, ({path}), {quoted(field.how)}, {field.depth}, {none}),")
        out.append("    ),")
    return "\n".join([*out, "}", ""])
