"""Events as babeltrace2 prints them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = re.compile(
    r"\[(?P<cycles>\d+)\] .*?(?P<name>[A-Z0-9_]+): \{ (?P<packet>[^}]*)\}, "
    r"\{ (?P<who>.*?), object = (?P<object>\w+), site = (?P<site>\w+) \}(?P<fields>.*)"
)
NUMBER = re.compile(r"(\w+) = (-?(?:0x[0-9A-Fa-f]+|\d+))")


@dataclass(frozen=True)
class Event:
    """One line."""

    ts: int
    name: str
    process: int
    tid: int
    object: int
    site: int
    fields: dict[str, int]


def read(
    path: Path,
    origin: int,
    frequency: int,
    sites: dict[int, dict[int, int]],
    images: dict[int, int],
) -> Iterator[Event]:
    """Yield the events that babeltrace2 prints.

    Args:
        path: The trace.
        origin: Tick of time 0.
        frequency: Ticks a second.
        sites: Addresses by process image and number.
        images: Process images by pid, for classic records: each record names its pid.
    """
    text = subprocess.run(
        ["babeltrace2", "--clock-cycles", "--no-delta", str(path)],
        capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    for line in text.splitlines():
        match = LINE.match(line)
        assert match, line
        if match["name"] == "STACK":
            continue  # time of the event before it
        packet, thread = (dict(NUMBER.findall(match[part])) for part in ("packet", "who"))
        record = "pid" in thread
        process = images[int(thread["pid"])] if record else int(packet["process"])
        site = int(match["site"], 0)
        fields = {name: int(value, 0) for name, value in NUMBER.findall(match["fields"])}
        yield Event(
            (int(match["cycles"]) - origin) * 10**9 // frequency, match["name"], process,
            int((thread if record else packet)["tid"]), int(match["object"], 0),
            site if record else sites.get(process, {}).get(site, 0), fields,
        )  # fmt: skip
