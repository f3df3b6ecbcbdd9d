"""How recording reads ELF files, and which programs it reports as untraceable."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace._files.elf import read_elf
from nptltrace.hang.targets.mapped_modules import Mapping, modules_of
from nptltrace.recording.launch import CannotRun, find_program, why_untraceable
from nptltrace.recording.mappings import Modules, modules_of_log

if TYPE_CHECKING:
    from tests.support import Compiler

PLAIN = "int main(void) { return 0; }"


def test_build_id_is_that_of_readelf(compile_c: Compiler) -> None:
    path = compile_c(PLAIN, "-Wl,--build-id=sha1")
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True)
    elf = read_elf(path)
    assert elf is not None
    assert f"Build ID: {elf.build_id}" in notes.stdout


def test_headers_that_point_outside_the_file_do_no_harm(
    compile_c: Compiler, tmp_path: Path
) -> None:
    data = compile_c(PLAIN).read_bytes()
    (table,) = struct.unpack_from("<Q", data, 32)
    places = [32, *(table + 56 * n + 8 for n in range(struct.unpack_from("<H", data, 56)[0]))]
    for place in places:
        for value in (1 << 63, (1 << 64) - 8):
            damaged = bytearray(data)
            struct.pack_into("<Q", damaged, place, value)
            (tmp_path / "damaged").write_bytes(damaged)
            elf = read_elf(tmp_path / "damaged")
            assert elf is None or elf.machine


def test_modules_of_this_process_give_back_their_addresses() -> None:
    maps = Path("/proc/self/maps").read_text()
    modules = {Path(m["path"]).name: m for m in Modules().of_maps(maps)}
    libc = next(module for name, module in modules.items() if name.startswith("libc.so"))
    import ctypes

    address = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    assert address is not None
    assert int(libc["start"], 16) <= address < int(libc["end"], 16)
    symbols = subprocess.run(
        ["readelf", "-W", "--dyn-syms", libc["path"]], capture_output=True, text=True, check=True
    )
    value = next(
        int(line.split()[1], 16)
        for line in symbols.stdout.splitlines()
        if line.split()[-1:] == ["getpid@@GLIBC_2.2.5"]
    )
    assert int(libc["bias"], 16) + value == address


def test_a_small_file_is_one_module(compile_c: Compiler) -> None:
    """All segments lie in the first page of the file and are mapped from there."""
    path = compile_c(PLAIN, "-Wl,-z,noseparate-code")
    places = [
        (0x555555554000, 0),
        (0x555555555000, 0),
        (0x555555556000, 0x1000),
        (0x7FFFF7000000, 0),
    ]
    mappings = [Mapping(at, at + 0x1000, offset, str(path)) for at, offset in places]
    maps = (f"{m.start:x}-{m.end:x} r-xp {m.offset:x} 08:01 77 {path}\n" for m in mappings)
    biases = [int(module["bias"], 16) for module in Modules().of_maps("".join(maps))]
    assert biases == [0x555555554000, 0x7FFFF7000000]
    image = path.read_bytes()

    def read(address: int, size: int) -> bytes:
        at = next(m.start for m in mappings if m.start <= address < m.end)
        return image[address - at :][:size]

    assert [module.bias for module in modules_of(mappings, read)] == biases


def test_paths_are_those_of_the_process_and_not_the_recorders() -> None:
    fd = os.memfd_create("plugin")
    try:
        line = f"1 7f0000000000 7f0000001000 7f0000000000 ab- /proc/self/fd/{fd}\n"
        (found,) = modules_of_log(line, "/bin/program", "", os.getpid())
        assert found["path"] == "/memfd:plugin"
        (found,) = modules_of_log(line, "/bin/program", "", 1 << 30)
        assert found["path"] == f"/proc/{1 << 30}/fd/{fd}"
    finally:
        os.close(fd)


def test_malformed_files_are_not_read_as_elf(tmp_path: Path) -> None:
    for number, data in enumerate(
        [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(10), os.urandom(999)]
    ):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert read_elf(path) is None


class TestWhyUntraceable:
    """Each untraceable program has its reason."""

    def test_ordinary(self, compile_c: Compiler) -> None:
        assert why_untraceable(compile_c(PLAIN)) is None

    @pytest.mark.parametrize("flag", ["-static", "-static-pie"])
    def test_static(self, compile_c: Compiler, flag: str) -> None:
        assert why_untraceable(compile_c(PLAIN, flag)) == "it is statically linked"

    def test_other_architecture(self, compile_c: Compiler) -> None:
        path = compile_c(PLAIN)
        data = bytearray(path.read_bytes())
        data[18:20] = (243).to_bytes(2, "little")
        path.write_bytes(data)
        assert "another architecture (riscv" in str(why_untraceable(path))

    def test_setgid(self, compile_c: Compiler) -> None:
        path = compile_c(PLAIN)
        if os.getuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, 65534, 65534)
        path.chmod(path.stat().st_mode | stat.S_ISUID)
        assert "other privileges" in str(why_untraceable(path))

    def test_script(self, tmp_path: Path, compile_c: Compiler) -> None:
        path = tmp_path / "script"
        path.write_text(f"#!{sys.executable}\n")
        assert why_untraceable(path) is None
        path.write_text(f"#!{compile_c(PLAIN, '-static')} x\n")
        assert "statically linked" in str(why_untraceable(path))


def test_programs_are_found_as_a_shell_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_program("true").name == "true"
    (tmp_path / "dull").write_text("")
    with pytest.raises(CannotRun, match="not executable") as refused:
        find_program("dull")
    assert refused.value.exit_status == 126
    with pytest.raises(CannotRun, match="not found") as missing:
        find_program("no-such-program")
    assert missing.value.exit_status == 127
