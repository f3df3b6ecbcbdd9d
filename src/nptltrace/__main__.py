"""Lets `python -m nptltrace` stand for `ptt`."""

from __future__ import annotations

import sys

from nptltrace.cli import main

if __name__ == "__main__":
    sys.exit(main())
