"""Options of a profile, for the commands that record."""

from __future__ import annotations

from pathlib import Path

from nptltrace.cli.options import duration_ns
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from nptltrace.recording.settings.profile import ProfileOptions

__all__ = ["add_profile", "level_of", "profile_of"]

# The options that need --profile.
_OF_PROFILE = ("interval", "keep_events", "min_wait", "sample_wait", "to")
# The detail level of a profile, and of a trace.
_LEVEL_OF_PROFILE, _LEVEL = "1", "2"
_INTERVAL_NS = 60_000_000_000


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Add `--profile` and the options that need it."""
    group = parser.add_argument_group("profile")
    add = group.add_argument
    add(
        "--profile", action="store_true",
        help="write sums of waits by lock and call stack, in files for pprof and Parquet, and keep "
        "no events; -o names the directory, which may have other profiles",
    )  # fmt: skip
    add(
        "--interval", metavar="TIME", type=duration_ns,
        help="with --profile: write the sums each time this time is over (default: 60s)",
    )  # fmt: skip
    add(
        "--min-wait", metavar="TIME", type=duration_ns,
        help="with --profile: leave out shorter waits (default: 0)",
    )  # fmt: skip
    add(
        "--sample-wait", metavar="TIME", type=duration_ns,
        help="with --profile: take one sample in so much waited time, on average, and give it a "
        "weight (default: count each wait)",
    )  # fmt: skip
    add(
        "--to", metavar="DIR", type=Path,
        help="with --profile: the directory of the profiles, same as -o",
    )  # fmt: skip
    add(
        "--keep-events", metavar="TRACE", type=Path,
        help="with --profile: also keep the events, as a trace in the directory TRACE",
    )  # fmt: skip


def level_of(args: argparse.Namespace) -> str:
    """Return `--level`, or its default."""
    default = _LEVEL_OF_PROFILE if args.profile else _LEVEL
    return default if args.level is None else str(args.level)


def profile_of(args: argparse.Namespace, program: str) -> ProfileOptions | None:
    """Return the options of the profile; None without `--profile`.

    Args:
        args: The parsed arguments.
        program: Name of the program, for the default directory.

    Raises:
        UsageError: An option needs `--profile`, or options contradict one another.
    """
    if not args.profile:
        for name in _OF_PROFILE:
            if getattr(args, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} needs --profile")
        return None
    from nptltrace.recording.settings.profile import ProfileOptions

    if args.output is not None and args.to is not None:
        raise UsageError("name one directory: -o and --to DIR say the same")
    if args.force:
        raise UsageError("--profile replaces nothing, so it takes no --force")
    return ProfileOptions(
        directory=args.output or args.to or Path(f"ptt-{program}-profile"),
        interval_ns=_INTERVAL_NS if args.interval is None else args.interval,
        min_wait_ns=args.min_wait or 0,
        sample_wait_ns=args.sample_wait or 0,
        trace=args.keep_events,
    )
