"""Scripted edits of C name functions and tokens, and move no line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nptltrace.nptl.edit import Edit, EditError, apply_edits, edit_text, load_edits
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
/* lock (x): if (x) return 0; */
#define NAME(x) name_ ## x
static int
lock (int *x)
{
  if (*x /* taken? */
      == 1)
    return 0;
  char *text = "return 0;";
  return wait (x, f (1, 2));
}

int
unlock (int *x)
{
  return 0;
}
"""


def edited(**edit: object) -> str:
    """Return the text after one edit."""
    wanted = Edit("p", ("a.c",), **edit)  # type: ignore[arg-type]
    text, missed = edit_text(SOURCE, [wanted])
    assert not missed
    return text


@pytest.mark.parametrize(
    ("edit", "new"),
    [
        ({"function": ("lock",), "after": "P;"}, "{ P;\n  if (*x"),
        (
            {"function": ("lock",), "find": ("return 0 ;",), "before": "{ P;", "after": "}"},
            '    { P; return 0; }\n  char *text = "return 0;";',
        ),
        (
            {"function": ("unlock",), "find": ("return 0 ;",), "before": "P;"},
            "{\n  P; return 0;\n}",
        ),
        (
            {"find": ("if ( * x == 1 )",), "before": "P;"},
            "  P; if (*x /* taken? */\n      == 1)\n",
        ),
        ({"find": ("wait ( @ )",), "before": "(", "after": ")"}, "return ( wait (x, f (1, 2)) );"),
        ({"find": ("# define NAME",), "replace": {"NAME": "OTHER"}}, "#define OTHER(x)"),
    ],
)
def test_an_edit_finds_tokens_in_functions(edit: dict[str, object], new: str) -> None:
    text = edited(**edit)
    assert new in text
    assert text.count("\n") == SOURCE.count("\n"), "a line has moved"


def test_all_edits_see_the_original_text() -> None:
    edits = [
        Edit("p", ("a.c",), ("unlock",), ("return 0 ;",), before="A;"),
        Edit("p", ("a.c",), ("unlock",), ("return 0 ;",), before="B;"),
    ]
    text, _ = edit_text(SOURCE, edits)
    assert "A; B; return 0;" in text or "B; A; return 0;" in text


def test_a_header_gets_an_include_before_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#ifndef A\n#define A\n#endif\n\n#endif /* A */\n")
    apply_edits(tmp_path, [Edit("p", ("a.h",), include="b.h")])
    assert (tmp_path / "a.h").read_text().endswith("#endif\n\n#include <b.h>\n#endif /* A */\n")


def test_a_missing_place_is_an_error_unless_it_is_optional(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    gone = {"files": ("a.c",), "function": ("destroy",), "after": "P;"}
    assert apply_edits(tmp_path, [Edit("p", **gone, optional=True)]) == ["p"]  # type: ignore[arg-type]
    with pytest.raises(EditError, match=r"wanted_point \(a\.c\)"):
        apply_edits(tmp_path, [Edit("wanted_point", **gone)])  # type: ignore[arg-type]


def test_an_alternative_place_for_a_point_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    gone = Edit("p", ("a.c",), ("destroy",), after="P;", optional=True)
    there = Edit("p", ("a.c",), ("lock",), after="P;", optional=True)
    assert apply_edits(tmp_path, [gone, there]) == []


def test_every_edit_is_for_a_point_in_the_catalogue() -> None:
    header = (ROOT / "native" / "include" / "nptl_trace_points.h").read_text()
    edits = load_edits(ROOT / "native" / "glibc" / "edits.toml")
    assert len(edits) > 50
    for edit in edits:
        for text in (edit.before, edit.after):
            for call in text.split("nptl_trace_")[1:]:
                macro, _, rest = call.partition(" (")
                if macro in {"point", "and", "success"}:
                    name = rest.partition(",")[0]
                    assert f"NPTL_POINT_{name} =" in header, f"{name} is not in the catalogue"
