"""The prompt of `ptt sql`: statements of several lines, history, completion, a few commands.

The commands also work in a script that is piped to `ptt sql`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from nptltrace._units import plural
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.cli.output.sql_output import write
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

__all__ = ["Engine", "Prompt", "is_command", "parts"]

T = TypeVar("T")

_FORMATS = ("text", "json", "jsonl", "csv")
_HELP = """\
A statement ends with a semicolon, and may take several lines. Commands beside SQL:
  .tables          list the tables and views
  .schema [NAME]   list the columns of a table, or of all tables
  .format NAME     set the output format: text, json, jsonl, csv
  .help            print this help
  .quit            end, like Ctrl-D
Ctrl-C drops your input, and stops a query that takes too long.
"""
# Completion offers these words, tables and columns.
_WORDS = (
    "select", "from", "where", "group by all", "order by", "limit", "having", "left join", "using",
    "and", "or", "not", "null", "between", "count", "sum", "avg", "min", "max", "distinct", "desc",
)  # fmt: skip


class Engine(Protocol):
    """A database: DuckDB's `Database`, or Spark's."""

    def query(self, sql: str) -> pa.Table:
        """Return the result of a query."""

    def results(self, sql: str, /) -> Iterator[pa.RecordBatchReader]:
        """Run statements, and yield the results of statements that return rows."""

    def is_complete(self, sql: str) -> bool:
        """Return whether a text ends with a whole statement."""

    def interruptible(self, work: Callable[[], T]) -> T:
        """Run work that Ctrl-C can stop, and return its result."""

    def close(self) -> None:
        """Close the database."""


def is_command(text: str) -> bool:
    """Return whether a text is a command of the prompt, and not SQL."""
    return text.lstrip().startswith(".")


def parts(text: str, database: Engine) -> Iterator[str]:
    """Yield the commands of a script, and the statements between them.

    A command is a line that begins with a dot, outside of a statement.
    """
    lines: list[str] = []
    for line in text.splitlines():
        statements = "\n".join(lines)
        if is_command(line) and (not statements.strip() or database.is_complete(statements)):
            if statements.strip():
                yield statements
            yield line
            lines.clear()
        else:
            lines.append(line)
    if lines:
        yield "\n".join(lines)


class Prompt:
    """Reads statements from the terminal and prints their results.

    Args:
        database: Runs the statements.
        style: The first output format.

    Attributes:
        style: The output format.
    """

    def __init__(self, database: Engine, style: str = "text") -> None:
        self._database, self.style = database, style

    def run(self) -> None:
        """Read statements and print results until the user ends the prompt."""
        with _history(self._words()):
            print("Type SQL. .tables lists the tables, .help the commands; Ctrl-D ends.")
            while self._turn():
                pass

    def _turn(self) -> bool:
        """Read and answer once; return False if the user ends the prompt."""
        try:
            text = self._read()
            if text is None:
                return False
            if is_command(text):
                return self.command(text)
            self._database.interruptible(lambda: self._print(text))
        except KeyboardInterrupt:
            print()
        except PttError as error:
            print(f"error: {error}")
        return True

    def _read(self) -> str | None:
        """Return a statement or command, None at the end."""
        lines: list[str] = []
        while True:
            try:
                lines.append(input("ptt> " if not lines else "...> "))
            except EOFError:
                print()
                return None
            text = "\n".join(lines)
            if not text.strip():
                lines.clear()
            elif (len(lines) == 1 and is_command(text)) or (
                text.rstrip().endswith(";") and self._database.is_complete(text)
            ):
                return text

    def _print(self, text: str) -> None:
        for result in self._database.results(text):
            rows = write(result, self.style, sys.stdout)
            if self.style == "text":
                print(f"({rows} {plural(rows, 'row')})")

    def command(self, text: str) -> bool:
        """Run a command; return False for `.quit`.

        Raises:
            UsageError: There is no such command, or no such table.
        """
        words = text.split()
        name, arguments = words[0], words[1:]
        if name in {".quit", ".exit", ".q"}:
            return False
        if name == ".tables":
            _print_tables()
        elif name == ".schema":
            self._schema(arguments or [*TABLES, *(view.name for view in VIEWS)])
        elif name == ".format" and len(arguments) == 1 and arguments[0] in _FORMATS:
            self.style = arguments[0]
        elif name == ".help":
            print(_HELP, end="")
        else:
            raise UsageError(f"no command {' '.join(words)}: .help lists the commands")
        return True

    def _schema(self, names: list[str]) -> None:
        views = {view.name: view for view in VIEWS}
        for name in names:
            if name in TABLES:
                print(f"{name}: a row is {TABLES[name].row}")
                for column in TABLES[name].columns:
                    print(f"  {column.name:<16} {column.type:<15} {column.meaning}")
            elif name in views:
                print(f"{views[name].call}: {views[name].meaning}")
                if views[name].parameters is None:
                    described = self._database.query(f"describe {name}").to_pylist()
                    for column, kind, *_ in (row.values() for row in described):
                        print(f"  {column:<16} {kind.lower()}")
            else:
                raise UsageError(f"no table {name}: .tables shows which there are")

    @staticmethod
    def _words() -> list[str]:
        """Return the words that completion offers."""
        columns = {name for table in TABLES.values() for name in table.names}
        names = [*TABLES, *(view.name for view in VIEWS)]
        commands = [".tables", ".schema", ".format", ".help", ".quit"]
        return sorted({*columns, *names, *_WORDS}) + commands


def _print_tables() -> None:
    for table in TABLES.values():
        print(f"{table.name:<22} a row is {table.row}")
    for view in VIEWS:
        print(f"{view.call:<22} {view.meaning}")


@contextlib.contextmanager
def _history(words: list[str]) -> Iterator[None]:
    """Edit and complete lines with readline, and keep a history file."""
    try:
        import readline
    except ImportError:  # a Python built without it
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "ptt" / "sql-history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)

    def complete(text: str, number: int) -> str | None:
        matches = [word for word in words if word.startswith(text)]
        return matches[number] if number < len(matches) else None

    readline.set_history_length(1000)
    readline.set_completer_delims(" \t\n,()=<>*+-/;'\"")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
