"""Lets `python -m nptltrace` stand for `ptt`."""

from __future__ import annotations

from nptltrace.cli import entry

if __name__ == "__main__":
    entry()
