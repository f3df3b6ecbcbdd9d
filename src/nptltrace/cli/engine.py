"""Options that choose what answers for a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

__all__ = ["add_engine", "chosen_engine"]


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"),
        help="query a store with DuckDB in this process, or with Spark (default: duckdb)",
    )  # fmt: skip
    parser.add_argument(
        "--master", metavar="URL", help="Spark cluster (default: from the settings of Spark)"
    )
    parser.add_argument("--remote", metavar="URL", help="Spark Connect server, sc://HOST")


def chosen_engine(args: argparse.Namespace) -> dict[str, Any]:
    """Return what was chosen, as `nptltrace.fleet.open` takes it."""
    return {"engine": args.engine or "duckdb", "master": args.master, "remote": args.remote}
