"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from typing import TYPE_CHECKING

from nptltrace import __version__  # after the path above
from nptltrace.cli.pages import findings_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "PTT"
author = "the PTT authors"
copyright = author  # noqa: A001 -- Sphinx gives the name
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["man", "pypi.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Nothing is fetched: the pages work where there is no network.
html_theme = "furo"
html_title = f"PTT {release}"
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autoclass_content = "class"
nitpicky = True
# What the Python API mentions of others, whose documentation lies elsewhere.
nitpick_ignore_regex = [
    ("py:.*", r"(pa|pyarrow|np|collections|os|pathlib|types|subprocess|typing|_native)\..*"),
    (
        "py:.*",
        r"(.*\.Damage|NDArray|Choice|Patterns|Stat|Report|Check|Diff|.*\bProcess|Processes|Aliases|PassedOver|Iterator|MessageSocket|Sequence|Mapping|Path|Self|Any|optional|TracebackType|Severity|Rows)",
    ),
]
# An `Event` is of the module that names it: there are those of POSIX and those of findings.
suppress_warnings = ["config.cache", "ref.python"]


def setup(app: Sphinx) -> None:
    """Have the page of the findings say what the modules of the findings say."""
    app.connect("source-read", _fill)


def _fill(_: Sphinx, name: str, source: list[str]) -> None:
    if name == "reference/findings":
        source[0] = findings_page.filled(source[0])
