"""DuckDB's SQL in Spark's words, the macros of `ptt sql` in the place of their names.

What the two write differently sqlglot knows, but for what is here: functions that format and round,
discrete percentiles, tuples that are compared, and macros, of which Spark has none.
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
    """Yield the statements of a text in DuckDB's SQL, in Spark's.

    Args:
        text: One or several statements.

    Raises:
        QueryError: It is no SQL.
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
    return tree.transform(_changed)


def _write_out(select: Any) -> None:
    """Name what `group by all` and `order by all` mean, which not every Spark knows."""
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


def _changed(node: Any) -> Any:
    """Return what stands for a node in Spark; the node itself where sqlglot knows it."""
    ways = (_column_by_column, _known, _exact, _rounded, _called, _called_table)
    return next((new for way in ways if (new := way(node)) is not None), node)


def _column_by_column(node: Any) -> Any:
    """Compare tuples so: Spark joins by equal columns, but not by equal tuples, with hashes."""
    if not (isinstance(node, exp.EQ) and isinstance(node.left, exp.Tuple)):
        return None
    pairs = zip(node.left.expressions, node.right.expressions, strict=True)
    return exp.paren(exp.and_(*(exp.EQ(this=a, expression=b) for a, b in pairs)), copy=False)


def _known(node: Any) -> Any:
    """Take any value that is not null of some rows, as DuckDB does: Spark has no such filter."""
    if not (isinstance(node, exp.Filter) and isinstance(node.this, exp.IgnoreNulls)):
        return None
    if not isinstance(node.this.this, exp.AnyValue):
        return None
    value = node.this.this.this
    known = exp.and_(node.expression.this, value.is_(exp.null()).not_())
    taken = exp.Anonymous(this="any_value", expressions=[value])
    return exp.Filter(this=taken, expression=exp.Where(this=known))


def _exact(node: Any) -> Any:
    """Return a discrete percentile as it is; sqlglot takes an approximate one."""
    if isinstance(node, exp.Filter) and isinstance(node.this, exp.PercentileDisc):
        kept = exp.Filter(this=_percentile(node.this), expression=node.expression)
        return exp.cast(kept, "bigint")
    return exp.cast(_percentile(node), "bigint") if isinstance(node, exp.PercentileDisc) else None


def _percentile(node: Any) -> Any:
    order = exp.Order(expressions=[exp.Ordered(this=node.this)])
    return exp.WithinGroup(this=exp.func("percentile_disc", node.expression), expression=order)


def _rounded(node: Any) -> Any:
    """Make an integer of a mean: DuckDB takes the nearest, Spark the one towards zero."""
    if not (isinstance(node, exp.Cast) and isinstance(node.this, exp.Avg)):
        return None
    return exp.cast(exp.func("bround", exp.cast(node.this, "double")), node.to)


def _called(node: Any) -> Any:
    """Return what a call of a function, or of a macro for a value, stands for."""
    name, arguments = _call(node)
    if name == "format":
        return _formatted(arguments)
    return _expanded(name, arguments) if name in _MACROS else None


def _called_table(node: Any) -> Any:
    """Return what a call of a macro for a table stands for."""
    name, arguments = _call(node.this) if isinstance(node, exp.Table) else ("", ())
    if name not in _MACROS:
        return None
    alias = node.args.get("alias") or exp.to_identifier(name)
    return exp.Subquery(this=_expanded(name, arguments), alias=alias)


def _call(node: Any) -> tuple[str, Sequence[Any]]:
    """Return the name and the arguments of a call; no name for anything else."""
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
    """Return the body of a macro, with what it is called with."""
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
