"""`ptt json-schema`: prints the JSON Schemas of the commands' JSON documents."""

from __future__ import annotations

from nptltrace.cli.options import suggest, write_json
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "print the JSON Schema of the JSON that commands print"
DESCRIPTION = """\
Prints the JSON Schema (draft 2020-12) of the document that COMMAND prints with --format json. For
`view` and `top`, the schema describes one line. Without COMMAND, ptt prints an object with the
schemas of all commands by name. A document may have more members than its schema: later versions
add members."""
EXAMPLE = """\
ptt json-schema report > report.schema.json
ptt json-schema fleet check
ptt json-schema | jq keys"""

_COMMANDS = (
    "stat",
    "report",
    "check",
    "confirm",
    "explore",
    "hang",
    "verify",
    "diff",
    "top",
    "view",
    "fleet",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument."""
    named = parser.add_argument(
        "words", metavar="COMMAND", nargs="*",
        help="describe the JSON of this command, such as `report` or `fleet check` (default: all)",
    )  # fmt: skip
    suggest(named, *_COMMANDS)


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    from nptltrace.cli.output.json_documents import DOCUMENTS, json_schema

    name = " ".join(args.words)
    if name and name not in DOCUMENTS:
        raise UsageError(f"{name} has no JSON document: choose from {', '.join(DOCUMENTS)}")
    write_json(json_schema(name) if name else {each: json_schema(each) for each in DOCUMENTS})
    return 0
