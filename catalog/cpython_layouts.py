# SPDX-License-Identifier: MIT
"""Generate the offsets of CPython's structures for C and Python, from cpython.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heads import c_head, note

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "cpython.toml"

# Fields that the tracer reads.
IN_PROCESS = (
    "frame", "indirect", "current", "outer", "previous", "code", "instruction", "locals", "owner",
    "entry", "filename", "name", "first_line", "lines", "version", "instructions", "ascii",
    "compact", "type", "size", "bytes", "length", "state", "kind", "stack_ref",
)  # fmt: skip
# Fields that `ptt hang` does not read: it has no C stack beside them, and reads only once.
_TRACER_ONLY = ("outer", "locals", "version", "type")


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of all versions.

    Attributes:
        versions: Offsets by field, by minor version.
        debug_like: For versions with their own offsets: offsets of the fields that they leave out.
        words: For versions with their own offsets: the words with the offsets.
    """

    versions: dict[int, dict[str, int]]
    debug_like: dict[int, dict[str, int]]
    words: dict[int, dict[str, int]]


def load_layouts(path: Path) -> Layouts:
    """Read the layouts."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    versions: dict[int, dict[str, int]] = {}
    for version in document["version"]:
        fields = {name: at for name, at in version.items() if name not in {"minor", "like"}}
        versions[version["minor"]] = {**versions.get(version.get("like"), {}), **fields}
    like: dict[int, dict[str, int]] = {}
    for debug in document["debug"]:
        others = {name: at for name, at in debug.items() if name not in {"minor", "like", "words"}}
        like[debug["minor"]] = versions[debug["like"]] | others
    return Layouts(versions, like, {debug["minor"]: debug["words"] for debug in document["debug"]})


def c_layouts(layouts: Layouts) -> str:
    """The tracer's header."""
    out = [
        *c_head(
            "python_layouts.h - offsets of the fields of CPython's structures, by version.", SOURCE
        ),
        "#ifndef PTT_PYTHON_LAYOUTS_H",
        "#define PTT_PYTHON_LAYOUTS_H",
        "",
        "#include <stdint.h>",
        "",
        "/* Offsets; 0 for a field that the version does not have, if its offset cannot be 0. */",
        "struct ptt_python_layout {",
        "\tuint32_t minor;",
        *(f"\tuint32_t {name};" for name in IN_PROCESS),
        "};",
        "",
        "static const struct ptt_python_layout ptt_python_layouts[] = {",
    ]
    for minor, fields in layouts.versions.items():
        out.append(f"\t{{ .minor = {minor}, {_c_fields(fields)} }},")
    out += [
        "};",
        "",
        "/* For versions with their own offsets: offsets of the fields that they leave out. */",
        "static const struct ptt_python_layout ptt_python_debug_like[] = {",
    ]
    for minor, fields in layouts.debug_like.items():
        out.append(f"\t{{ .minor = {minor}, {_c_fields(fields)} }},")
    out += [
        "};",
        "",
        "/* For the same versions: words with the other offsets, from the cookie; 0 for none. */",
        "static const struct ptt_python_layout ptt_python_debug_words[] = {",
    ]
    for minor, words in layouts.words.items():
        behind = {name: at + 1 for name, at in words.items()}
        out.append(f"\t{{ .minor = {minor}, {_c_fields(behind)} }},")
    out += ["};", "", "#define PTT_PYTHON_FIELDS(X) \\"]
    out += [f"\tX({name}) \\" for name in IN_PROCESS[:-1]]
    out += [f"\tX({IN_PROCESS[-1]})", "", "#endif", ""]
    return "\n".join(out)


def _c_fields(fields: dict[str, int]) -> str:
    return ", ".join(f".{name} = {fields[name]}" for name in IN_PROCESS if fields.get(name))


def py_layouts(layouts: Layouts) -> str:
    """The module for `ptt hang`."""
    out = [
        '"""Offsets of the fields of CPython\'s structures, by version."""',
        "",
        f"# {note(SOURCE)}",
        "# fmt: off",
        "",
        "VERSIONS: dict[int, dict[str, int]] = {",
    ]
    for minor, fields in layouts.versions.items():
        out += [f"    {minor}: {{", *_py_fields(fields, 8), "    },"]
    for name, tables in (("DEBUG_LIKE", layouts.debug_like), ("DEBUG_WORDS", layouts.words)):
        out += ["}", f"{name}: dict[int, dict[str, int]] = {{"]
        for minor, fields in tables.items():
            out += [f"    {minor}: {{", *_py_fields(fields, 8), "    },"]
    return "\n".join([*out, "}", ""])


def _py_fields(fields: dict[str, int], indent: int) -> list[str]:
    return [
        f'{" " * indent}"{name}": {at},' for name, at in fields.items() if name not in _TRACER_ONLY
    ]
