"""Writes `web/src/base/protocol.ts`: the declarations of `protocol`, in TypeScript.

python -m nptltrace.ui.typescript web/src/base/protocol.ts
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from nptltrace.ui import protocol

__all__ = ["generated"]

_HEAD = """\
// Generated from src/nptltrace/ui/protocol.py by `make web-protocol`: do not edit.
"""
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
_ARRAYS = {
    pa.uint8(): "Uint8Array", pa.uint16(): "Uint16Array", pa.uint32(): "Uint32Array",
    pa.int32(): "Int32Array", pa.uint64(): "BigUint64Array", pa.int64(): "BigInt64Array",
    pa.utf8(): "string[]",
}  # fmt: skip


def generated() -> str:
    """Return the text of the page's declarations."""
    shapes: dict[str, Any] = {}
    for endpoint in protocol.ENDPOINTS:
        for shape in (endpoint.answer, endpoint.body):
            if isinstance(shape, type):
                _collect(shape, shapes)
    for shape in protocol.SHAPES:
        _collect(shape, shapes)
    tables = _tables()
    parts = [_HEAD, _constants()]
    parts += [_interface(name, shapes[name]) for name in shapes]
    parts += [_columns(name, schema) for name, schema in tables.items()]
    parts += [_parameters(endpoint) for endpoint in protocol.ENDPOINTS if endpoint.parameters]
    parts.append(_endpoints(tables))
    return "\n".join(parts)


def _tables() -> dict[str, pa.Schema]:
    return {name: value for name, value in vars(protocol).items() if isinstance(value, pa.Schema)}


def _constants() -> str:
    lines = [
        f"export const {name} = {json.dumps(value)} as const;\n"
        for name, value in vars(protocol).items()
        if name in protocol.__all__ and isinstance(value, (str, int, tuple, dict))
        if name not in {"ENDPOINTS", "SHAPES"}
    ]
    return "".join(lines)


def _is_shape(type_: Any) -> bool:
    return isinstance(type_, type) and hasattr(type_, "__required_keys__")


def _collect(type_: Any, shapes: dict[str, Any]) -> None:
    """Add a shape and the shapes of its fields."""
    if _is_shape(type_):
        if type_.__name__ not in shapes:
            shapes[type_.__name__] = type_
            for hint in get_type_hints(type_).values():
                _collect(hint, shapes)
        return
    for part in get_args(type_):
        _collect(part, shapes)


def _type(hint: Any) -> str:
    """Return a type of TypeScript."""
    origin, args = get_origin(hint), get_args(hint)
    text = _PLAIN.get(hint)
    if text is None and _is_shape(hint):
        text = str(hint.__name__)
    elif origin is Literal:
        text = " | ".join(json.dumps(value) for value in args)
    elif origin in {Union, types.UnionType}:
        text = " | ".join(_type(part) for part in args)
    elif origin is list:
        inner = _type(args[0])
        text = f"({inner})[]" if "|" in inner else f"{inner}[]"
    elif origin is dict:
        text = f"Record<{_type(args[0])}, {_type(args[1])}>"
    if text is None:
        raise TypeError(f"the page has no type for {hint}")
    return text


def _interface(name: str, shape: Any) -> str:
    """Return a shape as an interface."""
    lines = [
        f"  {key}{'' if key in shape.__required_keys__ else '?'}: {_type(hint)};\n"
        for key, hint in get_type_hints(shape).items()
    ]
    return f"{_comment(shape.__doc__)}export interface {name} {{\n{''.join(lines)}}}\n"


def _comment(text: str | None) -> str:
    if not text or text.startswith("dict("):
        return ""
    return "".join(f"// {line.strip()}".rstrip() + "\n" for line in text.strip().splitlines())


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _columns(name: str, schema: pa.Schema) -> str:
    """Return the columns of a table as an interface, and their names."""
    fields = [f"  {field.name}: {_ARRAYS[field.type]};\n" for field in schema]
    types_ = {field.name: str(field.type) for field in schema}
    return (
        f"export interface {_pascal(name)}Columns {{\n{''.join(fields)}}}\n"
        f"export const {name}_SCHEMA = {json.dumps(types_)} as const;\n"
    )


def _parameters(endpoint: protocol.Endpoint) -> str:
    """Return the parameters of an endpoint as an interface."""
    lines = []
    for parameter in endpoint.parameters:
        type_ = {"int": "number", "text": "string", "rows": "readonly number[]"}.get(
            parameter.type if isinstance(parameter.type, str) else "",
            " | ".join(json.dumps(choice) for choice in parameter.type),
        )
        optional = "" if parameter.default is None else "?"
        lines.append(f"  {parameter.name}{optional}: {type_}; // {parameter.meaning}\n")
    return f"export interface {_pascal(endpoint.name)}Parameters {{\n{''.join(lines)}}}\n"


def _endpoints(tables: dict[str, pa.Schema]) -> str:
    """Return maps from the names of endpoints to their declarations, as values and as types."""
    values, types_ = "", ""
    for endpoint in protocol.ENDPOINTS:
        answers, answer = _answer(endpoint.answer, tables)
        about = {
            "method": endpoint.method, "path": endpoint.path, "answers": answers,
            "later": endpoint.later,
        }  # fmt: skip
        values += f"  // {endpoint.meaning}\n  {endpoint.name}: {json.dumps(about)},\n"
        parameters = f"{_pascal(endpoint.name)}Parameters"
        types_ += (
            f"  {endpoint.name}: {{\n"
            f"    parameters: {parameters if endpoint.parameters else 'Record<string, never>'};\n"
            f"    body: {'null' if endpoint.body is None else _type(endpoint.body)};\n"
            f"    answer: {answer};\n  }};\n"
        )
    return (
        f"export const ENDPOINTS = {{\n{values}}} as const;\n\n"
        f"export interface EndpointTypes {{\n{types_}}}\n"
    )


def _answer(answer: Any, tables: dict[str, pa.Schema]) -> tuple[str, str]:
    """Return how an endpoint answers, and the type of the answer."""
    if isinstance(answer, pa.Schema):
        name = next(name for name, schema in tables.items() if schema is answer)
        return "table", f"{_pascal(name)}Columns"
    return (answer, "string") if isinstance(answer, str) else ("json", _type(answer))


def main(path: Path) -> None:
    """Write the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(generated(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
