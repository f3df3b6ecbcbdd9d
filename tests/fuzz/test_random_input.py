"""Any text that PTT reads leads to a value, or to an error with a sentence.

`PTT_FUZZ_SECONDS` is the length of each test in seconds (5).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nptltrace.cli.options import duration_ns, size
from nptltrace.errors import PttError
from nptltrace.recording.settings.filters import parse_filter
from nptltrace.recording.settings.levels import parse_levels
from nptltrace.trace.info import read_info
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.tsdl_reader import read_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Compiler, Ptt

SECONDS = float(os.environ.get("PTT_FUZZ_SECONDS", "5"))
pytestmark = pytest.mark.timeout(300 + 10 * SECONDS)
TRY = settings(
    max_examples=int(100 * SECONDS),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = st.sampled_from(
    [
        *(
            "mutex",
            "cond",
            "*_IN",
            "!",
            "=",
            ",",
            ":",
            "LEVEL_",
            "0",
            "3",
            "-1",
            "all",
            "99999999999",
            ".",
            "1.5",
        ),
        *("ms", "K", "G", "h", "#", "0x", "0xffffffffffffffffff", "name", "é", "٣", "²"),
        *(" ", "\n", "\0", "\ud800"),
    ]
)
TEXT = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map("".join))


def message(error: Exception) -> None:
    assert str(error)


@TRY
@given(TEXT)
def test_any_size_or_duration_is_a_value_or_an_error(text: str) -> None:
    for convert in (size, duration_ns):
        try:
            assert convert(text) >= 0
        except (argparse.ArgumentTypeError, ValueError) as error:
            message(error)


@TRY
@given(TEXT)
def test_any_level_is_a_value_or_an_error(text: str) -> None:
    try:
        levels = parse_levels(text)
    except PttError as error:
        message(error)
    else:
        assert parse_levels(str(levels)) == levels


@TRY
@given(TEXT)
def test_any_filter_is_a_value_or_an_error(text: str) -> None:
    try:
        found = parse_filter(text)
    except PttError as error:
        message(error)
    else:
        assert len(found.argument) < 512  # the filter that the tracer gets
        assert all("!" not in name for name in found.facts()["filtered_out"])


@TRY
@given(st.one_of(st.binary(max_size=80), TEXT.map(lambda t: t.encode("utf-8", "surrogatepass"))))
def test_any_alias_file_is_read_or_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "aliases"
    path.write_bytes(data)
    try:
        read_aliases([path])
    except PttError as error:
        message(error)


# ------------------------------------------------------------------ the texts of a trace


@pytest.fixture
def trace(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> Path:
    """Return the path of a small trace."""
    program = compile_c(
        "#include <pthread.h>\n"
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
        "int main(void) { pthread_mutex_lock(&m); return pthread_mutex_unlock(&m); }\n"
    )
    ptt("record", "-o", tmp_path / "trace", program)
    return tmp_path / "trace"


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Return data with a few places changed, cut, doubled or swapped."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(changed) + 1)
        end = min(len(changed), at + dice.randint(0, 30))
        kind = dice.randrange(6)
        if kind == 0:
            del changed[at:end]
        elif kind == 1:
            changed[at:at] = changed[at:end]
        elif kind == 2:
            changed[at:at] = dice.choice(
                [b"null", b"[]", b"{}", b"-1", b"1e999", b'"', b"9" * 30, b"\\u"]
            )
        elif kind == 3:
            changed[at:end] = dice.randbytes(end - at)
        elif kind == 4:
            del changed[at:]
        elif changed:
            changed[at % len(changed)] ^= 1 << dice.randrange(8)
    return bytes(changed)


def json_mutate(value: object, dice: random.Random) -> object:
    """Return a JSON value with some parts of another kind."""
    if dice.random() < 0.03:
        return dice.choice([None, [], {}, -1, 1e300, 2**80, "", "x", True, [[]], {"": 0}, "\ud800"])
    if isinstance(value, dict):
        return {key: json_mutate(item, dice) for key, item in value.items() if dice.random() > 0.02}
    if isinstance(value, list):
        return [json_mutate(item, dice) for item in value]
    return value


def attempts() -> Iterator[random.Random]:
    """Yield random generators until the time is over, each with its own seed."""
    seed, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield random.Random(seed)  # noqa: S311 -- dice, no secrets
        seed += 1


def try_file(
    path: Path, change: Callable[[bytes, random.Random], bytes], read: Callable[[], object]
) -> None:
    """Change a file again and again; the reading may only fail with a sentence."""
    whole = path.read_bytes()
    for dice in attempts():
        data = change(whole, dice)
        path.write_bytes(data)
        try:
            read()
        except PttError as error:
            message(error)
        except Exception as error:
            raise AssertionError(repr(data[:4000])) from error


def json_lines(data: bytes, dice: random.Random) -> bytes:
    lines = [json.loads(line) for line in data.splitlines() if line.strip()]
    return b"\n".join(json.dumps(json_mutate(line, dice)).encode() for line in lines)


def test_damaged_metadata_is_read_or_an_error(trace: Path) -> None:
    try_file(trace / "metadata", mutate, lambda: read_metadata(trace))


@pytest.mark.parametrize("change", [mutate, json_lines])
def test_damaged_process_info_is_read_or_an_error(
    trace: Path, change: Callable[[bytes, random.Random], bytes]
) -> None:
    try_file(trace / "info" / "processes.jsonl", change, lambda: read_info(trace))


def test_damaged_session_info_is_read_or_an_error(trace: Path) -> None:
    def whole(data: bytes, dice: random.Random) -> bytes:
        if dice.random() < 0.5:
            return mutate(data, dice)
        return json.dumps(json_mutate(json.loads(data), dice)).encode()

    try_file(trace / "info" / "session.json", whole, lambda: read_info(trace))


def test_commands_on_damaged_texts_print_one_error(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    for dice in attempts():
        damaged = tmp_path / "damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(trace, damaged)
        name = dice.choice(["metadata", "info/session.json", "info/processes.jsonl"])
        data = (trace / name).read_bytes()
        change = json_lines if name.endswith("l") and dice.random() < 0.7 else mutate
        (damaged / name).write_bytes(change(data, dice))
        command = dice.choice(["stat", "view", "report", "recover"])
        done = ptt(command, damaged, status=None)
        assert done.returncode in {0, 1, 2}, (command, done)
        assert "Traceback" not in done.stderr, (
            command,
            done.stderr,
            (damaged / name).read_bytes()[:4000],
        )
