"""`ptt sql`: SQL over the tables of a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.imports import import_whole
from nptltrace.cli.options import add_engine, add_format, chosen_engine, say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace.cli.sql_prompt import Engine

SUMMARY = "query traces with SQL"
DESCRIPTION = """\
Runs a DuckDB SQL query over the tables of one or more traces: runs, processes, threads, objects,
events, waits, holds, wakeups, edges, findings, sites, stacks, modules, lost; and over views such as
contention_by_object. A query cannot read or write files. Without a query, ptt shows a prompt, or
reads queries from standard input. `.tables` and `.schema TABLE` list tables and columns.

The last argument is the query if it is not a trace. The name of a table or view stands for all its
rows."""
EXAMPLE = """\
ptt sql run.ptt 'select name, wait_ns from contention_by_object limit 5'
ptt sql run.ptt 'select event, count(*) from events group by all' --format csv
ptt sql monday.ptt tuesday.ptt < queries.sql
ptt sql --store ~/runs 'select exe, count(*) from runs group by all'
ptt sql run.ptt"""

INTERMIXED = True

FORMATS = ("text", "json", "jsonl", "csv")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="*", help="trace directories, read as one traceset"
    )
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", help="SQL query, or the name of a table"
    )
    parser.add_argument(
        "--store", metavar="STORE", help="query the runs in a store of ptt fleet instead of traces"
    )
    add_engine(parser)
    add_format(parser, FORMATS)
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="write the result to a new file: .parquet, .csv, .json, .jsonl or .txt",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_rules(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Answer the query, or the queries of the prompt."""
    if args.engine == "spark":
        import_whole("pyarrow")
    if args.store is not None:
        return _run_store(args)
    if args.engine is not None:
        raise UsageError("--engine needs --store")
    if args.master is not None or args.remote is not None:
        raise UsageError("--master and --remote need --store STORE --engine spark")
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    traces.load_rules(args)
    paths, query = _arguments(args)
    traceset = Traceset(*paths)
    warner = traces.Warner(args, traceset)
    warner.say()
    symbols = traces.open_symbols(args, traceset)
    say_unmatched(args, traceset, symbols)
    _ask(args, traces.answers(args, traceset, symbols).database, query)
    warner.say()
    return 0


def _run_store(args: argparse.Namespace) -> int:
    """Query a store."""
    from nptltrace.fleet.engines import database_of
    from nptltrace.fleet.store import Store

    words = [*args.traces, *([args.query] if args.query is not None else [])]
    if len(words) > 1:
        raise UsageError(f"with --store there is a query and no trace; {words[0]} is too much")
    query = f"from {words[0]}" if words and _is_table(words[0]) else next(iter(words), None)
    _ask(args, database_of(Store(args.store), **chosen_engine(args)), query)
    return 0


def _ask(args: argparse.Namespace, database: Engine, query: str | None) -> None:
    """Answer the query, or the queries of the prompt, and close the database."""
    try:
        if query is None and sys.stdin.isatty():
            from nptltrace.cli.sql_prompt import Prompt

            Prompt(database, args.format).run()
        else:
            text = sys.stdin.read() if query is None else query
            database.interruptible(lambda: _answer(args, database, text))
    finally:
        database.close()


def _arguments(args: argparse.Namespace) -> tuple[list[str], str | None]:
    """Return the traces and the query; argparse cannot separate them."""
    words = [*args.traces, *([args.query] if args.query is not None else [])]
    if not words:
        raise UsageError("name a trace, or a store with --store (see ptt sql --help)")
    last = words[-1]
    if not last.strip():
        raise UsageError("the query is empty")
    if len(words) == 1 or _exists(last):
        return words, None
    if _is_table(last):
        return words[:-1], f"from {last}"
    if not last.startswith(".") and not any(c.isspace() for c in last.strip()):
        raise UsageError(f"{last} is neither a trace nor a query")
    return words[:-1], last


def _is_table(name: str) -> bool:
    from nptltrace.analysis.sql.schema import TABLES
    from nptltrace.analysis.sql.views import VIEWS

    return name in TABLES or any(view.call == name for view in VIEWS)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # a query may be too long for a file name
        return False


def _answer(args: argparse.Namespace, database: Engine, query: str) -> None:
    """Run queries, and print or write their results."""
    from nptltrace.cli.output.sql_output import write, write_file
    from nptltrace.cli.sql_prompt import Prompt, is_command, parts

    if args.output is not None:
        results = database.results(query)
        result = next(results, None)
        if result is None:
            raise UsageError("the query has no result to write")
        rows = write_file(result, Path(args.output), force=args.force)
        if next(results, None) is not None:
            raise UsageError("-o needs one query that has a result")
        say(args, f"wrote {rows} {plural(rows, 'row')} to {args.output}")
        return
    prompt = Prompt(database, args.format)
    answered = False
    for part in parts(query, database):
        if is_command(part):
            if not prompt.command(part):
                return
            continue
        for result in database.results(part):
            if answered and prompt.style == "text":
                sys.stdout.write("\n")
            write(result, prompt.style, sys.stdout)
            answered = True
