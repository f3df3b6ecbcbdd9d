"""The Python declarations of the C headers agree with the compiler."""

from __future__ import annotations

import ctypes
import importlib
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace import _paths
from nptltrace._binding.library import Library
from nptltrace.errors import PttError
from tools import bind_headers

if TYPE_CHECKING:
    from types import ModuleType

    from tools.bind_headers import Declared, Header

LIBRARIES = {
    "collect": "libpttcollect.so",
    "inject": "libpttinject.so",
    "tasks": "libptttasks.so",
    "unwind_image": "libptttasks.so",
    "pttread": "libpttread.so",
    "ptttrack": "libptttrack.so",
    "pttmodel": "libptttrack.so",
    "pttcheck": "libptttrack.so",
    "pttverify": "libptttrack.so",
    "pttdetail": "libptttrack.so",
    "convert": "libpttposix.so",
    "trace": "libposixtrace.so.0",
    "nptl_trace": "libnptltrace.so",
}


@pytest.fixture(scope="module")
def declared() -> dict[Header, Declared]:
    """The declarations of the headers, as the compiler sees them."""
    return bind_headers.read_all()


def module_of(header: Header) -> ModuleType:
    return importlib.import_module(f"nptltrace._binding.headers.{header.module}")


def test_generated_files_are_up_to_date() -> None:
    for path, text in bind_headers.generate().items():
        assert path.read_text("utf-8") == text, f"{path} is stale: run tools/bind_headers.py"


def test_every_layout_agrees_with_the_compiler(declared: dict[Header, Declared]) -> None:
    compared = 0
    for header, found in declared.items():
        module = module_of(header)
        for record in found.records.values():
            layout: Any = getattr(module, record.name, None)
            if layout is None:
                continue  # another header declares it, and no function here takes it by value
            compared += 1
            assert ctypes.sizeof(layout) == record.size, record.c_name
            names = [field[0] for field in layout._fields_]
            assert names == [field.name for field in record.fields], record.c_name
            for field in record.fields:
                assert getattr(layout, field.name).offset == field.offset, (record.c_name, field)
    assert compared > 30


def test_every_constant_agrees_with_the_compiler(declared: dict[Header, Declared]) -> None:
    for header, found in declared.items():
        module = module_of(header)
        for name, value in found.constants.items():
            assert getattr(module, name) == value, f"{header.name}: {name}"


@pytest.mark.usefixtures("native_in_process")
def test_every_function_is_in_its_library(declared: dict[Header, Declared]) -> None:
    for header, found in declared.items():
        if header.name in {"lock_function.h", "model_rows.h", "ptt_abi.h"}:
            assert not found.functions  # code that several libraries share
            continue
        assert found.functions, f"{header.name} declares no function"
        library = Library(LIBRARIES[header.module], module_of(header).FUNCTIONS)
        for name, (_, arguments) in found.functions.items():
            assert len(getattr(library, name).argtypes) == len(arguments), name


@pytest.mark.usefixtures("native_in_process")
def test_a_library_of_another_version_is_refused() -> None:
    from nptltrace._binding.headers import pttread

    name, right = "libpttread.so", pttread.PTT_READ_VERSION
    Library(name, pttread.FUNCTIONS, ("ptt_read_version", right))
    with pytest.raises(PttError, match=r"libpttread\.so belongs to another version"):
        Library(name, pttread.FUNCTIONS, ("ptt_read_version", right + 1))
    library = Library(name, {"ptt_read_tomorrow": (None, ())})
    with pytest.raises(PttError, match=f"{_paths.library(name)} belongs to another version"):
        library.ptt_read_tomorrow()
