"""The JSON documents of the commands, and their JSON Schemas (draft 2020-12)."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from nptltrace.analysis.vocabulary import document_types
from nptltrace.analysis.vocabulary.meanings import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DOCUMENTS", "json_schema", "shapes_of"]

# The shape of the document that a command prints with `--format json`; for view, of each line.
DOCUMENTS: dict[str, Any] = {
    "stat": document_types.Stat,
    "report": document_types.Report,
    "check": document_types.Check,
    "confirm": document_types.Confirm,
    "explore": document_types.Explore,
    "hang": document_types.Hang,
    "verify": document_types.Verify,
    "diff": document_types.Diff,
    "top": document_types.Top,
    "fleet list": document_types.FleetRuns,
    "fleet report": document_types.FleetReport,
    "fleet check": document_types.FleetCheck,
    "fleet diff": document_types.FleetDiff,
    "view": document_types.Event,
}
_PLAIN = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def shapes_of(shape: Any) -> list[Any]:
    """Return a shape and the shapes of its elements, each once."""
    shapes = [shape]
    for each in shapes:
        for hint in get_type_hints(each).values():
            shapes += [part for part in _parts(hint) if part not in shapes]
    return shapes


def _parts(hint: Any) -> Iterator[Any]:
    if hasattr(hint, "__required_keys__"):
        yield hint
    for argument in get_args(hint):
        yield from _parts(argument)


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of the document of a command.

    Args:
        command: A key of `DOCUMENTS`. A document may have more members than the schema names.
    """
    shape = DOCUMENTS[command]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ptt {command}",
        "$ref": f"#/$defs/{shape.__name__}",
        "$defs": {each.__name__: _object(each) for each in shapes_of(shape)},
    }


def _object(shape: Any) -> dict[str, Any]:
    hints = get_type_hints(shape)
    return {
        "type": "object",
        "description": (shape.__doc__ or "").strip(),
        "properties": {
            name: _type(hint) | ({"description": NAMES[name].meaning} if name in NAMES else {})
            for name, hint in hints.items()
        },
        "required": [name for name in hints if name in shape.__required_keys__],
    }


def _type(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is types.UnionType:
        return {"anyOf": [_type(part) for part in arguments]}
    if origin is list:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1])}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    return {"$ref": f"#/$defs/{hint.__name__}"}
