#!/usr/bin/env python3
"""Count how hard the text of PTT is to read: relative clauses, long sentences, the reader.

    tools/words.py              # a line for each group of text
    tools/words.py --worst 10   # and the sentences with the most relative clauses
    tools/words.py --files      # and a line for each file

The figures are a yardstick, not a gate: text can satisfy them and still be hard to read.

Relative clauses are counted as the phrases in `RELATIVES`, per 1,000 words. A sentence is long if
it has more than 30 words. A sentence addresses the reader if it says *you* or *your*, or begins
with an imperative. Code blocks and tables are left out; inline code counts as one word.
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import re
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
LONG, SHORT = 30, 3
GROUPS = (
    "README", "CONTRIBUTING", "CHANGELOG", "tutorial", "how-to", "explanation", "reference",
    "help", "errors", "comments", "tests",
)  # fmt: skip
RELATIVES = re.compile(
    r"\b(?:(?:of|in|for|by|to|from|with|on|at|behind|through|under|after|before|whose?) which"
    r"|that which|those (?:that|which|who|whose|of|in|with)|that of|whose"
    r"|what (?:is|are|was|were|has|have)"
    r"|ones? (?:that|which|who|whose)|none (?:that|which)|(?:than|as|like|of|for) that of)\b",
    re.IGNORECASE,
)
_IMPERATIVES = frozenset(
    """
    add allow ask attach avoid begin build call change check choose click close collect
    combine compare compile convert copy count create cut declare define delete describe do
    don't drag draw edit enable end ensure exclude export filter find fix follow get give go
    have hide hold ignore import include install interrupt join keep kill leave let limit link
    list load look make map mark measure merge mind mount move name narrow never note open
    pass pick pin place plan point prefer preload press print publish pull put raise read
    record redirect reduce remember remove rename repeat replace report request rerun reset
    resolve restart resume retry run save say scroll search see select send set share show
    skip sort specify split start state stop store switch take tell test trace try turn type
    unpack unset untick update upgrade use verify wait want watch work write zoom
    """.split()  # noqa: SIM905 -- a list of words is read more easily
)
_MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|`[^`]*`|\*\*?|<[^>]+>|[_|]")


@dataclass
class Text:
    """Sentences of one group.

    Attributes:
        name: The name of the group.
        sentences: Pairs of a place (`file:line` or file) and a sentence.
    """

    name: str
    sentences: list[tuple[str, str]] = field(default_factory=list)

    def add(self, place: str, text: str) -> None:
        """Divide a text into sentences and keep them."""
        plain = _MARKUP.sub(
            lambda match: match.group(1) or ("code" if "`" in match.group() else ""), text
        )
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z\"(`]|code\b)|\n\s*\n", plain):
            words = " ".join(sentence.split())
            if words:
                self.sentences.append((place, words))

    def figures(self) -> tuple[int, float, float, float]:
        """Return the figures of a line.

        Returns:
            Words, relatives per 1,000 words, long sentences in percent, and sentences that
            address the reader in percent. Sentences of up to three words are not counted.
        """
        words = sum(len(sentence.split()) for _, sentence in self.sentences)
        relatives = sum(len(RELATIVES.findall(sentence)) for _, sentence in self.sentences)
        whole = [sentence for _, sentence in self.sentences if len(sentence.split()) > SHORT]
        count = len(whole) or 1
        long = sum(len(sentence.split()) > LONG for sentence in whole)
        reader = sum(map(addresses, whole))
        return words, 1000 * relatives / (words or 1), 100 * long / count, 100 * reader / count


def addresses(sentence: str) -> bool:
    """Return whether a sentence says *you*, or is an imperative."""
    if re.search(r"\byou(?:r|rs|rself)?\b", sentence, re.IGNORECASE):
        return True
    main = re.sub(
        r"^(?:\d+\.|[-*])\s*|^(?:To|If|For|When|Then|In|With|First|Next|On|After|Before)\b[^,]*,\s*",
        "",
        sentence,
    )
    first = re.match(r"(?:Then |First |Next |Also |Now |Please )?([A-Za-z']+)", main)
    return first is not None and first.group(1).lower() in _IMPERATIVES


# ---- where the text is ----


def markdown(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs and list items of a page, without code and tables."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^(```|~~~|:::).*?^\1\s*$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(
        r"^(?: {4,}\S.*| *\|.*|#.*|\[[^\]]+\]:.*|<!--.*-->|:[a-z]+:.*)$",
        "\n",
        text,
        flags=re.MULTILINE,
    )
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if block.strip():
            yield str(path.relative_to(ROOT)), block


def python_parts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield group, place and text of the comments, docstrings, help and errors of a module."""
    source = path.read_text(encoding="utf-8")
    name = str(path.relative_to(ROOT))
    comment: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(
            r"#(?:!| type:| noqa| fmt:| ----| SPDX)", token.string
        ):
            comment.append(token.string.lstrip("# "))
        elif comment and token.type not in {tokenize.NL, tokenize.COMMENT}:
            yield "comments", f"{name}:{token.start[0]}", " ".join(comment)
            comment = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                place = f"{name}:{getattr(node, 'lineno', 1)}"
                yield (
                    "comments",
                    place,
                    re.sub(
                        r"^ +\S.*\n(?= {4,})|^(?:Args|Returns|Raises|Attributes|Yields):$",
                        "\n",
                        text,
                        flags=re.MULTILINE,
                    ),
                )
        elif isinstance(node, ast.Raise) and node.exc:
            yield from (("errors", f"{name}:{node.lineno}", text) for text in _strings(node.exc))
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield from (
                ("help", f"{name}:{node.value.lineno}", text) for text in _strings(node.value)
            )
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in {"SUMMARY", "DESCRIPTION", "EPILOG"}
            for t in node.targets
        ):
            yield from (("help", f"{name}:{node.lineno}", text) for text in _strings(node.value))


def _strings(node: ast.AST) -> Iterator[str]:
    """Yield the text of literals in an expression; a replacement field counts as one word."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        text = "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
        if " " in text:
            yield text
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def c_comments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the comments of a file in C, Java or TypeScript."""
    source = path.read_text(encoding="utf-8")
    lines = re.sub(r"\n[ \t]*//(?= )", "", re.sub(r"\n(?=[ \t]*[^\s/])", "\n\n", source))
    for match in re.finditer(r"/\*(.*?)\*/|(?:^|[\s;])//(?!/) (.*)", lines, re.DOTALL):
        text = match.group(1) if match.group(1) is not None else match.group(2).split("\n\n", 1)[0]
        text = re.sub(r"^\s*\*+ ?", "", text, flags=re.MULTILINE)
        if " " in text.strip() and "SPDX" not in text:
            yield (
                f"{path.relative_to(ROOT)}:{source[: source.find(text[:20])].count(chr(10)) + 1}",
                text,
            )


def generated(path: Path) -> bool:
    """Return whether a file says in its head that a program wrote it."""
    head = path.read_text(encoding="utf-8", errors="replace")[:600].lower()
    return "generated" in head or "written by" in head


def collect(root: Path) -> list[Text]:
    """Return all groups of text below a directory."""
    groups = {name: Text(name) for name in GROUPS}
    for group, place, text in itertools.chain(pages(root), modules(root), sources(root)):
        groups[group].add(place, text)
    return list(groups.values())


def pages(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield group, place and text of the pages."""
    for group in GROUPS[:7]:
        single = root / f"{group}.md"
        found = [single] if single.exists() else sorted((root / "docs" / group).rglob("*.md"))
        for path in found:
            yield from ((group, place, text) for place, text in markdown(path))


def modules(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield group, place and text of the modules in Python."""
    for folder in ("src", "tools", "catalog", "benchmarks", "tests"):
        for path in sorted((root / folder).rglob("*.py")):
            if not generated(path):
                for group, place, text in python_parts(path):
                    yield "tests" if folder == "tests" else group, place, text


def sources(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield group, place and text of the sources in C, Java and TypeScript."""
    for pattern in ("native/**/*.[ch]", "native/**/*.java", "web/src/**/*.ts"):
        for path in sorted(root.glob(pattern)):
            if not generated(path):
                yield from (("comments", place, text) for place, text in c_comments(path))


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        metavar="N",
        help="print the N sentences of each group with most relatives",
    )
    parser.add_argument(
        "--long",
        type=int,
        default=0,
        metavar="N",
        help="print the N longest sentences of each group",
    )
    parser.add_argument("--files", action="store_true", help="print a line for each file as well")
    args = parser.parse_args()
    print(f"{'':<44} {'words':>8} {'relatives/1000':>14} {'> 30 words':>11} {'to the reader':>14}")
    for group in collect(ROOT):
        _line(group.name, group)
        if args.files:
            files: dict[str, Text] = {}
            for place, sentence in group.sentences:
                name = place.split(":")[0]
                files.setdefault(name, Text(name)).sentences.append((place, sentence))
            for name, text in files.items():
                _line(f"  {name}", text)
        worst = sorted(group.sentences, key=lambda pair: -len(RELATIVES.findall(pair[1])))
        longest = sorted(group.sentences, key=lambda pair: -len(pair[1].split()))
        for place, sentence in worst[: args.worst] + longest[: args.long]:
            print(f"    {place}: {sentence}")
    return 0


def _line(name: str, text: Text) -> None:
    words, relatives, long, reader = text.figures()
    print(f"{name:<44} {words:>8,} {relatives:>14.1f} {long:>10.1f}% {reader:>13.1f}%")


if __name__ == "__main__":
    sys.exit(main())
