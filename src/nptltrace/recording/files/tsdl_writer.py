"""The metadata of a trace: TSDL text that describes the packets (Common Trace Format 1.8)."""

from __future__ import annotations

from nptltrace._dataclasses import dataclass
from nptltrace._files.signature import COMPACT, PLAIN
from nptltrace.catalog import event_classes_tsdl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RECORDS", "SLOTS", "Calibration", "metadata_text"]

SLOTS = 0
RECORDS = 1
_GIGA = 10**9

_TYPES = """\
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 32; signed = false; } := uint32_t;
typealias integer { size = 64; align = 64; signed = false; } := uint64_t;
typealias integer { size = 64; align = 64; signed = false; map = clock.ptt.value; } := ptt_time;
typealias integer { size = 40; align = 1; signed = false; map = clock.ptt.value; } := ptt_time40;
typealias integer {
    size = 64; align = 32; signed = false; map = clock.ptt.value;
} := ptt_time_words;
"""

_PACKET_HEADER = """\
    packet.header := struct {
        integer { size = 32; align = 32; signed = false; base = 16; } magic;
        integer { size = 8; align = 8; signed = false; } uuid[16];
        integer { size = 32; align = 32; signed = false; } stream_id;
        integer { size = 64; align = 64; signed = false; } stream_instance_id;
    };
"""

_PACKET_CONTEXT = """\
    packet.context := struct {
        ptt_time timestamp_begin;
        ptt_time timestamp_end;
        uint64_t content_size;
        uint64_t packet_size;
        uint64_t events_discarded;
        uint64_t packet_seq_num;
        uint32_t pid;
        uint32_t tid;
        uint32_t process;
        integer { size = 32; align = 32; signed = false; base = 16; } crc;
        uint64_t chunk_serial;
        uint32_t chunk_end;
        uint32_t event_count;
        uint64_t thread_serial;
        uint64_t discarded_before;
    };
"""

# The stream classes differ in the event: a slot of 16 bytes, or a record of 32-bit words. The
# length of a record lies between id and time, without a field: readers warn about unknown header
# fields. The context of a slot begins within its first word, so its fields have no alignment.
_STREAMS = {
    SLOTS: """\
    event.header := struct {
        integer { size = 10; align = 1; signed = false; } id;
        ptt_time40 timestamp;
    } align(128);
    event.context := struct {
        integer { size = 14; align = 1; signed = false; } cpu;
        integer { size = 48; align = 1; signed = false; base = 16; } object;
        integer { size = 16; align = 1; signed = false; } site;
    };
""",
    RECORDS: """\
    event.header := struct {
        integer { size = 16; align = 16; signed = false; } id;
        ptt_time_words timestamp;
    } align(32);
    event.context := struct {
        uint32_t pid;
        uint32_t tid;
        integer { size = 64; align = 32; signed = false; base = 16; } object;
        integer { size = 64; align = 32; signed = false; base = 16; } site;
    };
""",
}


@dataclass(frozen=True)
class Calibration:
    """How the clock of a trace maps to the time of day.

    Attributes:
        frequency: Ticks per second.
        unix_ns_at_zero: Unix time at clock value 0, in ns; may be negative.
        name: `tsc` or `monotonic`.
    """

    frequency: int
    unix_ns_at_zero: int
    name: str

    @property
    def offset(self) -> tuple[int, int]:
        """The Unix time at clock value 0, as whole seconds and ticks."""
        seconds, rest = divmod(self.unix_ns_at_zero, _GIGA)
        return seconds, rest * self.frequency // _GIGA

    def unix_ns(self, ticks: int) -> int:
        """Return the Unix time of a clock value, in ns."""
        return self.unix_ns_at_zero + ticks * _GIGA // self.frequency


def metadata_text(
    *,
    uuid: str,
    clock_uuid: str,
    calibration: Calibration,
    env: Mapping[str, str | int],
    stream_class: int = SLOTS,
    compact: bool = False,
) -> str:
    """Return the TSDL of a trace.

    Args:
        uuid: UUID of the trace, with hyphens.
        clock_uuid: UUID of the clock. Traces with the same UUID have the same clock.
        calibration: Calibration of the clock.
        env: Facts about the origin of the trace.
        stream_class: `SLOTS` or `RECORDS`.
        compact: The stream files are compact.
    """
    seconds, cycles = calibration.offset
    description = {"tsc": "processor's time stamp counter", "monotonic": "CLOCK_MONOTONIC"}
    return "".join(
        [
            f"{COMPACT if compact else PLAIN}\n\n",
            "trace {\n    major = 1;\n    minor = 8;\n",
            f'    uuid = "{uuid}";\n    byte_order = le;\n',
            _PACKET_HEADER,
            "};\n\nenv {\n",
            *(f"    {name} = {_value(value)};\n" for name, value in env.items()),
            f'}};\n\nclock {{\n    name = "ptt";\n    uuid = "{clock_uuid}";\n',
            f'    description = "{description.get(calibration.name, calibration.name)}";\n',
            f"    freq = {calibration.frequency};\n    offset_s = {seconds};\n",
            f"    offset = {cycles};\n}};\n\n",
            _TYPES,
            f"\nstream {{\n    id = {stream_class};\n",
            _STREAMS[stream_class],
            _PACKET_CONTEXT,
            "};\n\n",
            event_classes_tsdl(stream_class),
        ]
    )


def _value(value: str | int) -> str:
    """Return an environment value as TSDL."""
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() else "?" for c in escaped) + '"'
