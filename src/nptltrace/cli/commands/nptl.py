"""`ptt nptl`: builds, finds, describes and removes the trace-enabled thread library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nptltrace.cli.options import say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

SUMMARY = "build a thread library that records its own locks"
DESCRIPTION = """\
Builds a glibc of the installed version with trace points inside: locks of streams and malloc,
groups of condition variables, rounds of barriers, futex waits and wakes. `ptt record --nptl
auto` runs programs on it. You build it once, without root, into your cache. The glibc of the
system does not change."""
EXAMPLE = """\
ptt nptl build
ptt record --nptl auto --level 4 -- ./program
ptt nptl info
ptt nptl build --source glibc-2.36.tar.xz --prefix ~/nptl"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action, and the options of `build` and `info`."""
    parser.add_argument(
        "action", choices=("build", "path", "info", "clean"),
        help="build the library; print its path; describe it; remove it",
    )  # fmt: skip
    parser.add_argument(
        "--source", metavar="debian|TARBALL|DIR",
        help="source of glibc (default: debian, the package glibc-source)",
    )  # fmt: skip
    parser.add_argument(
        "--prefix", metavar="DIR", type=Path,
        help="where to install the library (default: your cache)",
    )  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, help="compile N files at the same time")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format of info"
    )


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action != "build" and (args.source or args.jobs):
        raise UsageError(f"--source and --jobs are for ptt nptl build, not for {args.action}")
    return {"build": _build, "path": _path, "info": _info, "clean": _clean}[args.action](args)


def _build(args: argparse.Namespace) -> int:
    from nptltrace.nptl.build import build

    if args.jobs is not None and args.jobs < 1:
        raise UsageError("--jobs must be 1 or more")
    built, new = build(
        args.source or "debian", args.prefix, lambda line: say(args, line), args.jobs
    )
    if new:
        say(args, f"built {built.label} in {built.facts['seconds']} s")
        for point in built.facts["missing_points"]:
            say(args, f"this glibc has no place for the trace point {point}")
    print(built.prefix)
    return 0


def _path(args: argparse.Namespace) -> int:
    from nptltrace.nptl.store import find, for_system

    built = find(args.prefix.absolute()) if args.prefix else for_system()
    if built is None:
        raise UsageError("there is no trace-enabled thread library yet (see ptt nptl build)")
    print(built.prefix)
    return 0


def _facts(prefix: Path | None) -> dict[str, Any]:
    from nptltrace.nptl.libc import installed, probe_notes
    from nptltrace.nptl.store import find, for_system, revision

    system = installed()
    notes = probe_notes(system.path)
    built = find(prefix.absolute()) if prefix else for_system()
    facts: dict[str, Any] = {
        "system": {
            "path": str(system.path),
            "package": system.package,
            "version": system.version,
            "probes": notes.total(),
            "probe_names": sorted(notes),
        },
        "revision": revision(),
        "built": None,
    }
    if built is not None:
        facts["built"] = {"path": str(built.prefix), "label": built.label, **built.facts}
    return facts


def _info(args: argparse.Namespace) -> int:
    facts = _facts(args.prefix)
    if args.format == "json":
        print(json.dumps(facts, indent=1))
        return 0
    system, built = facts["system"], facts["built"]
    probes = system["probes"]
    carries = (
        f"carries {probes} SystemTap probe points ({len(system['probe_names'])} names)"
        if probes
        else "carries no SystemTap probe points"
    )
    print(f"system          {system['package']}, {system['path']}")
    print(f"                {carries}")
    if built is None:
        print("trace-enabled   not built for this version (ptt nptl build)")
        return 0
    print(f"trace-enabled   {built['path']}")
    print(f"                {built['label']}")
    print(f"                built from {built['source']} in {built['seconds']} s")
    if built["missing_points"]:
        print(f"                without {', '.join(built['missing_points'])}")
    return 0


def _clean(args: argparse.Namespace) -> int:
    from nptltrace.nptl.store import clean

    size = clean()
    say(args, f"removed {size / 1e6:.0f} MB" if size else "nothing had been built")
    return 0
