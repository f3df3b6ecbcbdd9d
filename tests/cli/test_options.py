"""Sizes, durations and the other small languages of option values."""

from __future__ import annotations

import argparse

import pytest

from nptltrace.cli import options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("4096", 4096),
        ("1k", 1024),
        ("64K", 65536),
        ("64KiB", 65536),
        ("64M", 64 << 20),
        ("1.5m", 3 << 19),
        ("1G", 1 << 30),
        ("2T", 2 << 40),
        ("16 MB", 16 << 20),
        ("12b", 12),
    ],
)
def test_sizes_have_units(text: str, expected: int) -> None:
    assert options.size(text) == expected


@pytest.mark.parametrize("text", ["", "M", "-1", "1.5.2", "12x", "1e3", "0x10", "1 M M"])
def test_a_wrong_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size"):
        options.size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 10**9),
        ("250ns", 250),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("1.5ms", 1_500_000),
        ("0.000000001", 1),
        ("2s", 2 * 10**9),
        ("3m", 180 * 10**9),
        ("3min", 180 * 10**9),
        ("1h", 3600 * 10**9),
        ("0.1s", 10**8),
        ("9007199.254740993s", 9007199254740993),
    ],
)
def test_durations_have_units(text: str, expected: int) -> None:
    assert options.duration_ns(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1s", "1d", "1 2", "1..2s"])
def test_a_wrong_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        options.duration_ns(text)


def test_format_takes_the_first_choice_by_default() -> None:
    parser = argparse.ArgumentParser()
    options.add_format(parser, ("text", "jsonl"))
    assert parser.parse_args([]).format == "text"
    assert parser.parse_args(["--format", "jsonl"]).format == "jsonl"


@pytest.mark.parametrize(
    ("verbosity", "needed", "shown"),
    [(0, 0, True), (-1, 0, False), (0, 1, False), (1, 1, True), (2, 1, True), (-1, -1, True)],
)
def test_remarks_obey_the_verbosity(
    capsys: pytest.CaptureFixture[str], verbosity: int, needed: int, *, shown: bool
) -> None:
    options.say(argparse.Namespace(verbosity=verbosity), "hello", verbosity=needed)
    captured = capsys.readouterr()
    assert captured.err == ("ptt: hello\n" if shown else "")
    assert not captured.out
