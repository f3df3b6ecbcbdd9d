"""`ptt mcp`: a Model Context Protocol server for assistants."""

from __future__ import annotations

from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "let an AI assistant use PTT, over the Model Context Protocol"
DESCRIPTION = """\
Speaks the Model Context Protocol on standard input and output. Name the command in the settings of
your assistant or editor, which starts it. The assistant gets the tools record, hang, check, report,
stacks and sql. Answers are short, cite call sites and times, and mark names from the traced program
as untrusted text. The tool record runs any program that the assistant asks for: pass --no-record to
remove it. You need the extra `mcp`: pip install 'nptltrace[mcp]'."""
EXAMPLE = """\
ptt mcp
ptt mcp --no-record"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--no-record", action="store_true", help="do not let the assistant run programs"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    try:
        from nptltrace.mcp_server import server
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'nptltrace[mcp]'") from None
    server(can_record=not args.no_record).run("stdio")
    return 0
