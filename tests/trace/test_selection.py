"""The options that choose events."""

from __future__ import annotations

import pytest

from nptltrace.trace.selection import _words


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("a,b", ["a", "b"]),
        ("one", ["one"]),
        # names of C++ functions contain commas
        (
            "pool<int, char>::run(int, long)+0x1c,main",
            ["pool<int, char>::run(int, long)+0x1c", "main"],
        ),
        ("queue->push,main", ["queue->push", "main"]),
    ],
)
def test_commas_separate_names_except_in_brackets(option: str, words: list[str]) -> None:
    assert _words(option, "--site") == words
