"""The page of JSON documents: `python -m nptltrace.cli.pages.json_page FILE` renews its tables."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from nptltrace.analysis.vocabulary import document_types
from nptltrace.analysis.vocabulary.meanings import NAMES, TYPES
from nptltrace.cli.output.json_documents import DOCUMENTS, shapes_of
from nptltrace.cli.pages.markdown import marked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main", "page", "renewed"]

_BEGIN = "<!-- generated from the declaration of the documents by `make commands`: do not edit -->"
_END = "<!-- end of the generated part -->"
# The common members of several shapes are described once.
_COMMON = (document_types.Figures, document_types.LiveFigures)
_PLAIN = {str: "text", int: "integer", float: "number", bool: "flag", type(None): "null"}


def page() -> str:
    """Return the generated part of the page."""
    lines = ["## Types", "", "| type | a value is |", "|---|---|"]
    lines += [f"| {name} | {meaning} |" for name, meaning in TYPES.items()]
    lines += ["", "## Documents"]
    written: set[str] = set()
    for shape in (*DOCUMENTS.values(), *_COMMON):
        for each in shapes_of(shape):
            if each.__name__ not in written:
                written.add(each.__name__)
                lines += ["", *_shape(each)]
    lines += ["", "## Names", "", "| name | type | meaning |", "|---|---|---|"]
    for name in sorted(NAMES):
        type_ = "count or list" if NAMES[name].plural else NAMES[name].type
        lines.append(f"| `{name}` | {type_} | {NAMES[name].meaning} |")
    return "\n".join(lines) + "\n"


def _shape(shape: Any) -> Iterator[str]:
    yield f"### {shape.__name__}"
    yield ""
    yield (shape.__doc__ or "").strip()
    yield ""
    fields = get_type_hints(shape)
    common = [c for c in _COMMON if c is not shape and c.__required_keys__ <= fields.keys()]
    names = [f"all of [{c.__name__}](#{c.__name__.lower()})" for c in common]
    for name, hint in fields.items():
        if not any(name in c.__required_keys__ for c in common):
            text = f"`{name}`: {_type(hint)}"
            names.append(text if name in shape.__required_keys__ else f"{text}, where it applies")
    yield "; ".join(names) + "."


def _type(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is types.UnionType:
        return " or ".join(_type(part) for part in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"{_type(arguments[1])} by name"
    return _PLAIN.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


def renewed(text: str) -> str:
    """Return the page with its generated part renewed."""
    return marked(text, page(), _BEGIN, _END)


def main(path: Path) -> None:
    """Renew the page."""
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
