"""The page of the tables: `python -m nptltrace.cli.pages.tables_page FILE` renews it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.analysis.sql.query import view_columns
from nptltrace.analysis.sql.schema import SCHEMA_VERSION, TABLES
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.cli.pages.markdown import marked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.analysis.sql.schema import TableType

__all__ = ["main", "page", "renewed"]

_BEGIN = "<!-- generated from the declaration of the tables by `make commands`: do not edit -->"
_END = "<!-- end of the generated part -->"


def page() -> str:
    """Return the generated part of the page."""
    lines = [f"The version of this schema is {SCHEMA_VERSION}.", "", "## Tables"]
    for table in TABLES.values():
        lines += ["", *_table(table)]
    lines += ["", "## Views", ""]
    columns = view_columns()
    for view in VIEWS:
        lines += [f"### {view.call}", "", view.meaning]
        if view.name in columns:
            names = ", ".join(f"`{name}`" for name in columns[view.name])
            lines += ["", f"Columns: {names}."]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _table(table: TableType) -> Iterator[str]:
    yield f"### {table.name}"
    yield ""
    yield f"A row is {table.row}."
    yield ""
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    for column in table.columns:
        type_ = "string" if column.type == "word" else column.type
        yield f"| `{column.name}` | {type_} | {column.unit} | {column.meaning} |"


def renewed(text: str) -> str:
    """Return the page with its generated part renewed."""
    return marked(text, page(), _BEGIN, _END)


def main(path: Path) -> None:
    """Renew the page."""
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
