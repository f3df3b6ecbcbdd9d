"""The Java functions on the stacks of HotSpot's threads (x86-64).

A thread that leaves Java for the virtual machine notes its last frame in Java. The frames of the
interpreter have the method and the current instruction at fixed places (frame_x86.hpp). Of compiled
code, the size of the frame and the method are known, and not the functions inlined into it. The
walk ends at the first frame that is not understood.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.stack.shown_frames import JavaFrame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nptltrace.hang.owners.hotspot import Objects
    from nptltrace.hang.targets.target import Target

__all__ = ["JavaStacks"]

_MACHINE = "x86_64"
# The largest numbers of functions and of frames, and of steps back to the begin of code.
_DEPTH, _FRAMES, _STEPS = 256, 1024, 4096
_WORD = 8
# Places in a frame of the interpreter, in words from the frame pointer.
_METHOD, _INSTRUCTIONS = -3, (-8, -9, -7)
# The place of the wrapper of a call from the virtual machine, in words from the frame pointer.
_WRAPPER = -6
_HAS_LINES = 1
_LINES_MAX = 1 << 16
# A pair of differences in one byte, and the byte that begins a pair of longer numbers.
_LINE_BITS, _LONG = 3, 0xFF
# The numbers of UNSIGNED5: bytes below a limit end a number, others carry six bits. From JDK 20 on,
# no byte is 0.
_LOW, _CARRIED, _BYTES_MAX = 192, 6, 5
_FREE = 0xFF


class _Place(NamedTuple):
    """A frame in Java: stack pointer, frame pointer and program counter."""

    sp: int
    fp: int
    pc: int


class JavaStacks:
    """The stacks of one virtual machine.

    Args:
        process: The process.
        fields: The result of `fields_of`.
        objects: The objects of the virtual machine.
    """

    def __init__(
        self, process: Target, fields: Mapping[tuple[str, str], int], objects: Objects
    ) -> None:
        self._process, self._fields, self._objects = process, fields, objects
        # Versions with this field write numbers without bytes of 0.
        self._excludes = int(("InstanceKlass", "_fieldinfo_stream") in fields)

    def of(self, thread: int) -> list[JavaFrame]:
        """Return the functions of a thread outside Java, the innermost first.

        Args:
            thread: The address of the `JavaThread`.
        """
        frames: list[JavaFrame] = []
        if self._process.machine != _MACHINE:
            return frames
        try:
            for frame in self._walk(thread + self._fields["JavaThread", "_anchor"]):
                frames.append(frame)
                if len(frames) == _DEPTH:
                    break
        except (KeyError, struct.error):
            pass  # another version, or a thread that has gone on
        return frames

    def _walk(self, anchor: int) -> Iterator[JavaFrame]:
        interpreter = self._interpreter()
        entry = self._word(self._fields["StubRoutines", "_call_stub_return_address"])
        place = self._last(anchor)
        for _ in range(_FRAMES):
            if place is None:
                return
            sp = place.sp
            if place.pc in interpreter:
                frame = self._interpreted(place.fp)
                if frame is None:
                    return
                yield frame
                place = _Place(
                    place.fp + 2 * _WORD, self._word(place.fp), self._word(place.fp + _WORD)
                )
            elif place.pc == entry:
                wrapper = self._word(place.fp + _WRAPPER * _WORD)
                place = self._last(wrapper + self._fields["JavaCallWrapper", "_anchor"])
            else:
                blob = self._blob(place.pc)
                size = self._number(blob + self._fields["CodeBlob", "_frame_size"]) if blob else 0
                if not size:
                    return
                if frame := self._compiled(blob):
                    yield frame
                outer = place.sp + size * _WORD
                place = _Place(outer, self._word(outer - 2 * _WORD), self._word(outer - _WORD))
            # Outer frames are at higher addresses.
            if place is not None and place.sp <= sp:
                return

    def _last(self, anchor: int) -> _Place | None:
        """Return the last frame in Java that an anchor names."""
        kind, known = "JavaFrameAnchor", self._fields
        sp, fp, pc = (
            self._word(anchor + known[kind, f"_last_Java_{name}"]) for name in ("sp", "fp", "pc")
        )
        return _Place(sp, fp, pc or self._word(sp - _WORD)) if sp else None

    def _interpreter(self) -> range:
        """Return the addresses of the interpreter's code."""
        code = self._word(self._fields["AbstractInterpreter", "_code"])
        begin = self._word(code + self._fields["StubQueue", "_stub_buffer"])
        size = self._number(code + self._fields["StubQueue", "_buffer_limit"])
        return range(begin, begin + size)

    def _interpreted(self, fp: int) -> JavaFrame | None:
        """Return the function of a frame of the interpreter."""
        known = self._fields
        method = self._word(fp + _METHOD * _WORD)
        constant = self._word(method + known["Method", "_constMethod"])
        begin = constant + known["ConstMethod", ""]
        size = self._number(constant + known["ConstMethod", "_code_size"], "<H")
        words = (self._word(fp + at * _WORD) for at in _INSTRUCTIONS)
        at = next((word - begin for word in words if begin <= word < begin + size), -1)
        return self._function(method, at)

    def _compiled(self, blob: int) -> JavaFrame | None:
        """Return the function of compiled code, without a line; None for a stub."""
        known = self._fields
        name = self._word(blob + known["CodeBlob", "_name"])
        if not self._process.read(name, 8).startswith((b"nmethod\0", b"native n")):
            return None
        layer = "CompiledMethod" if ("CompiledMethod", "_method") in known else "nmethod"
        return self._function(self._word(blob + known[layer, "_method"]), -1)

    def _function(self, method: int, at: int) -> JavaFrame | None:
        """Return a function at an instruction; None if its names cannot be read.

        Args:
            method: The address of the `Method`.
            at: The current instruction; -1 if it is not known.
        """
        known, objects = self._fields, self._objects
        constant = self._word(method + known["Method", "_constMethod"])
        pool = self._word(constant + known["ConstMethod", "_constants"])
        holder = self._word(pool + known["ConstantPool", "_pool_holder"])
        symbols = pool + known["ConstantPool", ""]
        index = self._number(constant + known["ConstMethod", "_name_index"], "<H")
        owner = objects.name_of_class(holder).replace("/", ".")
        name = objects.symbol(self._word(symbols + _WORD * index))
        if not owner or not name:
            return None
        source = 0
        if ("ConstantPool", "_source_file_name_index") in known:
            source = self._number(pool + known["ConstantPool", "_source_file_name_index"], "<H")
        file = objects.symbol(self._word(symbols + _WORD * source)) if source else ""
        return JavaFrame(f"{owner}.{name}", file, self._line(constant, at) if at >= 0 else 0)

    def _line(self, constant: int, at: int) -> int:
        """Return the source line of an instruction, 0 if it is not known.

        Args:
            constant: The address of the `ConstMethod`.
            at: The instruction.
        """
        known, kind = self._fields, "ConstMethod"
        flags = "_flags" if (kind, "_flags") in known else "_flags._flags"
        if not self._number(constant + known[kind, flags], "<H") & _HAS_LINES:
            return 0
        size = self._number(constant + known[kind, "_code_size"], "<H")
        whole = self._number(constant + known[kind, "_constMethod_size"]) * _WORD
        begin = known[kind, ""] + size
        data = self._process.read(constant + begin, min(max(whole - begin, 0), _LINES_MAX))
        line = best = instruction = here = n = 0
        while n < len(data) and data[n]:
            if data[n] == _LONG:
                more, n = self._signed(data, n + 1)
                instruction += more
                more, n = self._signed(data, n)
                here += more
            else:
                instruction += data[n] >> _LINE_BITS
                here += data[n] & (1 << _LINE_BITS) - 1
                n += 1
            if best <= instruction <= at:
                best, line = instruction, here
        return line

    def _signed(self, data: bytes, n: int) -> tuple[int, int]:
        """Return a number in the bytes from a place on, and the next place."""
        value, end = 0, False
        for shift in range(0, _BYTES_MAX * _CARRIED, _CARRIED):
            byte = data[n] if n < len(data) else self._excludes
            value += byte - self._excludes << shift
            n += 1
            end = byte < _LOW
            if end:
                break
        return (value >> 1) ^ -(value & 1), n

    def _blob(self, pc: int) -> int:
        """Return the code that has an address, 0 if there is none (CodeHeap::find_start)."""
        known = self._fields
        heaps = self._word(known["CodeCache", "_heaps"])
        count = self._number(heaps + known["GrowableArrayBase", "_len"])
        first = self._word(heaps + known["GrowableArray<int>", "_data"])
        for heap in self._process.words(first, _WORD * min(count, 8)):
            memory, segments = (
                heap + known["CodeHeap", field] + known["VirtualSpace", "_low"]
                for field in ("_memory", "_segmap")
            )
            low = self._word(memory)
            high = self._word(heap + known["CodeHeap", "_memory"] + known["VirtualSpace", "_high"])
            if not low <= pc < high:
                continue
            shift = self._number(heap + known["CodeHeap", "_log2_segment_size"])
            map_begin, segment = self._word(segments), pc - low >> (shift & 31)
            back = self._number(map_begin + segment, "<B")
            for _ in range(_STEPS):
                if not back or back == _FREE or segment < back:
                    break
                segment -= back
                back = self._number(map_begin + segment, "<B")
            return low + (segment << (shift & 31)) + known["HeapBlock", ""] if not back else 0
        return 0

    def _word(self, address: int) -> int:
        return self._number(address, "<Q")

    def _number(self, address: int, layout: str = "<I") -> int:
        # A damaged frame pointer may lead below the first address.
        data = self._process.read(max(address, 0), struct.calcsize(layout))
        return int(struct.unpack(layout, data)[0])
