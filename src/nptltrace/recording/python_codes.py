"""What a process wrote down of the code of Python and Java that is in its stacks."""

from __future__ import annotations

__all__ = ["codes_of_log"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENCODINGS = {0: "utf-8", 1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def codes_of_log(data: bytes) -> tuple[list[list[Any]], int]:
    """Return code objects, as they stand in `info/processes.jsonl`, and how many bytes they took.

    What is not there as a whole is left for the next time.

    Args:
        data: Of the file of the process, from where the last one ended.
    """
    found: list[list[Any]] = []
    done = 0
    while (newline := data.find(b"\n", done)) >= 0:
        try:
            number, minor, first, *sizes = (int(word, 16) for word in data[done:newline].split())
            file_width, file_size, name_width, name_size, lines_size = sizes
        except ValueError:
            break
        begin = newline + 1
        ends = begin + file_size, begin + file_size + name_size
        end = ends[1] + lines_size
        if data[end : end + 1] != b"\n":
            break
        file = data[begin : ends[0]].decode(_ENCODINGS.get(file_width, "latin-1"), "replace")
        name = data[ends[0] : ends[1]].decode(_ENCODINGS.get(name_width, "latin-1"), "replace")
        found.append([number, minor, first, file, name, data[ends[1] : end].hex()])
        done = end + 1
    return found, done
