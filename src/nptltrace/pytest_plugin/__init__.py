"""The pytest plugin: `--ptt` records the session, and `--ptt-guard` fails tests that hang.

Every pytest of the environment loads this module, so it imports the rest of PTT on demand.
"""

from __future__ import annotations

import pytest

__all__ = ["pytest_addoption", "pytest_configure"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("ptt", "what threads do to one another (PTT)")
    group.addoption(
        "--ptt", nargs="?", const="pytest.ptt", metavar="DIR",
        help="record the session into DIR (default: pytest.ptt), which is replaced",
    )  # fmt: skip
    group.addoption(
        "--ptt-limit", type=float, metavar="SECONDS",
        help="with --ptt, fail a test that takes longer, with what its threads wait for; "
        "0 = never (default: 60)",
    )  # fmt: skip
    group.addoption(
        "--ptt-guard", type=_seconds, metavar="SECONDS",
        help="fail a test that takes longer, with the stacks of all threads and what they wait "
        "for; records nothing",
    )  # fmt: skip
    group.addoption(
        "--ptt-guard-then", choices=("fail", "continue", "kill"), metavar="WHAT",
        help="with --ptt-guard, after the report: fail the test, continue with the test, or kill "
        "pytest (default: fail)",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, or to guard."""
    directory, limit_s = config.getoption("--ptt"), config.getoption("--ptt-guard")
    if limit_s is None and config.getoption("--ptt-guard-then") is not None:
        raise pytest.UsageError("--ptt-guard-then needs --ptt-guard SECONDS")
    if directory is None and config.getoption("--ptt-limit") is not None:
        raise pytest.UsageError("--ptt-limit SECONDS needs --ptt")
    if directory is not None and limit_s is not None:
        raise pytest.UsageError("--ptt fails tests that hang by itself: use --ptt-limit SECONDS")
    if directory is not None:
        from nptltrace.pytest_plugin.recorded import begin

        begin(config, directory)
    if limit_s is not None:
        from nptltrace.pytest_plugin.guarded import Guarded

        config.pluginmanager.register(Guarded(config, limit_s), "ptt-guard")


def _seconds(text: str) -> float:
    """Return a limit in seconds.

    Raises:
        ValueError: The limit is not above 0.
    """
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds
