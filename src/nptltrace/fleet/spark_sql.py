"""Translates DuckDB's SQL to Spark's, and expands the macros of `ptt sql`.

sqlglot translates nearly everything. This module adds functions that format and round, discrete
percentiles, comparisons of tuples, and macros, which Spark lacks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from nptltrace.analysis.sql.query import QueryError
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["statements"]

_MACROS = {view.name: view for view in VIEWS if view.parameters is not None}
_PLACE = re.compile(r"\{(?::(x))?\}")


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a text, translated to Spark's SQL.

    Args:
        text: One or several statements, in DuckDB's SQL.

    Raises:
        QueryError: The text is not SQL, or calls a macro with a wrong number of arguments.
    """
    try:
        trees = sqlglot.parse(text, read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        what = re.sub(r"\x1b\[\d*m", "", one_line(error)).partition(". Line ")[0]
        raise QueryError(f"sqlglot cannot translate it: {what}") from None
    for tree in trees:
        if tree is not None:
            yield _in_spark(tree).sql(dialect="spark")


def _in_spark(tree: Any) -> Any:
    for select in tree.find_all(exp.Select):
        _write_out(select)
    return tree.transform(_translated)


def _write_out(select: Any) -> None:
    """Write out the columns of `group by all` and `order by all`: old versions of Spark lack it."""
    columns = select.expressions
    if any(column.is_star for column in columns):
        return
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all"):
        kept = [column.unalias().copy() for column in columns if not column.find(exp.AggFunc)]
        select.set("group", exp.Group(expressions=kept) if kept else None)
    if order is not None and order.expressions[0].this.name.lower() == "all":
        places = [exp.Literal.number(place + 1) for place in range(len(columns))]
        ordered = [exp.Ordered(this=place, nulls_first=False) for place in places]
        select.set("order", exp.Order(expressions=ordered))


def _translated(node: Any) -> Any:
    """Return the translation of a node; the node itself if sqlglot translates it."""
    rules = (_equal_tuples, _any_value, _percentile, _rounded_mean, _call_of_value, _call_of_table)
    return next((new for rule in rules if (new := rule(node)) is not None), node)


def _equal_tuples(node: Any) -> Any:
    """Compare tuples column by column: Spark has hash joins by equal columns, not equal tuples."""
    if not (isinstance(node, exp.EQ) and isinstance(node.left, exp.Tuple)):
        return None
    pairs = zip(node.left.expressions, node.right.expressions, strict=True)
    return exp.paren(exp.and_(*(exp.EQ(this=a, expression=b) for a, b in pairs)), copy=False)


def _any_value(node: Any) -> Any:
    """Take any value but null from the filtered rows, as DuckDB does."""
    if not (isinstance(node, exp.Filter) and isinstance(node.this, exp.IgnoreNulls)):
        return None
    if not isinstance(node.this.this, exp.AnyValue):
        return None
    value = node.this.this.this
    valid = exp.and_(node.expression.this, value.is_(exp.null()).not_())
    taken = exp.Anonymous(this="any_value", expressions=[value])
    return exp.Filter(this=taken, expression=exp.Where(this=valid))


def _percentile(node: Any) -> Any:
    """Return an exact discrete percentile; sqlglot makes it approximate."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.PercentileDisc):
        return None
    order = exp.Order(expressions=[exp.Ordered(this=call.this)])
    value: Any = exp.WithinGroup(
        this=exp.func("percentile_disc", call.expression), expression=order
    )
    if call is not node:
        value = exp.Filter(this=value, expression=node.expression)
    return exp.cast(value, "bigint")


def _rounded_mean(node: Any) -> Any:
    """Convert a mean to an integer: DuckDB rounds to the nearest, Spark towards zero."""
    if not (isinstance(node, exp.Cast) and isinstance(node.this, exp.Avg)):
        return None
    return exp.cast(exp.func("bround", exp.cast(node.this, "double")), node.to)


def _call_of_value(node: Any) -> Any:
    """Return the translation of `format`, or the body of a macro for a value."""
    name, arguments = _call(node)
    if name == "format":
        return _formatted(arguments)
    return _expanded(name, arguments) if name in _MACROS else None


def _call_of_table(node: Any) -> Any:
    """Return the body of a macro for a table."""
    name, arguments = _call(node.this) if isinstance(node, exp.Table) else ("", ())
    if name not in _MACROS:
        return None
    alias = node.args.get("alias") or exp.to_identifier(name)
    return exp.Subquery(this=_expanded(name, arguments), alias=alias)


def _call(node: Any) -> tuple[str, Sequence[Any]]:
    """Return the name and the arguments of a call; an empty name for any other node."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower(), node.expressions
    if isinstance(node, exp.Format):
        return "format", [node.this, *node.expressions]
    return "", ()


def _formatted(arguments: Sequence[Any]) -> Any:
    pattern, *values = arguments
    text = _PLACE.sub(lambda place: f"%{place[1] or 's'}", pattern.name.replace("%", "%%"))
    return exp.func("format_string", exp.Literal.string(text), *map(_in_spark, values))


def _expanded(name: str, arguments: Sequence[Any]) -> Any:
    """Return the body of a macro with the arguments in place of its parameters."""
    view = _MACROS[name]
    parameters = view.parameters or ()
    if len(arguments) != len(parameters):
        raise QueryError(f"{view.call} takes {len(parameters)} arguments, not {len(arguments)}")
    values: Mapping[str, Any] = dict(zip(parameters, map(_in_spark, arguments), strict=True))

    def placed(node: Any) -> Any:
        if isinstance(node, exp.Column) and not node.table and node.name in values:
            return exp.paren(values[node.name])
        return node

    body = _in_spark(sqlglot.parse_one(view.body, read="duckdb")).transform(placed)
    return exp.paren(body) if view.value else body
