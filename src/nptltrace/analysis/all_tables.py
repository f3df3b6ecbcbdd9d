"""All tables of a traceset, that of its findings among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.findings import findings
from nptltrace.analysis.sql.tables import TraceTables

if TYPE_CHECKING:
    from nptltrace.analysis.scope import Scope
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["all_tables"]


def all_tables(
    traceset: Traceset, symbols: Symbols | None = None, scope: Scope | None = None
) -> TraceTables:
    """Return the tables of a traceset; arguments as of `TraceTables`."""
    return TraceTables(traceset, symbols, scope, findings)
