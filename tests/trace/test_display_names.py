"""Display names of C++ functions leave out parts that nobody writes."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from nptltrace.trace.symbols.elf.display_names import display_name, is_plumbing, run_by
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
LAMBDA = "main::{lambda()#2}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("worker", "worker"),
        ("db::Write(Options const&, Batch*)", "db::Write"),
        ("void db::f<int>(int) const", "db::f<int>"),
        ("T* make<T>()", "make<T>"),
        (f"Store<{STRING} >::put({STRING} const&, std::function<void ({STRING} const&)>)",
         "Store<std::string>::put"),
        (f"std::map<int, {STRING}, std::less<int>, std::allocator<{STRING} > >::operator[](int&&)",
         "std::map<int, std::string>::operator[]"),
        ("std::unique_ptr<Job, std::default_delete<Job> >::~unique_ptr()",
         "std::unique_ptr<Job>::~unique_ptr"),
        ("std::__1::vector<int, std::__1::allocator<int>>::push_back[abi:v160006](int&&)",
         "std::vector<int>::push_back"),
        # The program's own allocator stays in the name.
        ("std::vector<int, Arena<int> >::push_back(int&&)",
         "std::vector<int, Arena<int>>::push_back"),
        ("Pool<std::allocator<int> >::take()", "Pool<std::allocator<int>>::take"),
        ("std::function<void (int, char const*)>::operator()(int, char const*) const",
         "std::function<void (int, char const*)>::operator()"),
        ("Job::operator()(int)", "Job::operator()"),
        ("Job::operator bool() const", "Job::operator bool"),
        ("operator new(unsigned long)", "operator new"),
        ("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
         "std::operator<<<std::char_traits<char>>"),
        ("main::{lambda()#3}::operator()() const::{lambda(int)#1}::operator()(int) const",
         "main::{lambda #3}::{lambda #1}"),
        ("apply<main()::<lambda()>::<lambda(int)> >", "apply<main::{lambda}::{lambda}>"),
        ("operator()", "{lambda}"),
        ("f()::Local::run()", "f::Local::run"),
        ("f(void (*)(int))", "f"),
        ("ns::Matrix<3ul, (Kind)2>::mul(double (&) [3])", "ns::Matrix<3ul, (Kind)2>::mul"),
        ("app::(anonymous namespace)::hidden(int)", "app::(anonymous namespace)::hidden"),
        ("bool (anonymous namespace)::less<int>(int const&)", "(anonymous namespace)::less<int>"),
        ("f(int) [clone .constprop.0]", "f"),
        # Other languages
        ("<vec::Vec<T> as ops::Drop>::drop", "<vec::Vec<T> as ops::Drop>::drop"),
        ("ops::FnOnce::call_once{{vtable.shim}}", "ops::FnOnce::call_once{{vtable.shim}}"),
        ("Account.pay.<locals>.<lambda>", "Account.pay.<locals>.<lambda>"),
        # Damaged and hostile names: neither an error nor time that doubles with each bracket
        ("f<a" + "(b" * 100 + ")" * 100 + ">()", "f<a" + "(b" * 100 + ")" * 100 + ">"),
        ("f" + "<a" * 5000 + ">" * 5000 + "()", "f" + "<a" * 5000 + ">" * 5000 + "()"),
        ("f" + "(" * 9000, "f" + "(" * 9000),
        ("f{{lambda}}<a>()", "f{{lambda}}<a>"),
        # No name at all
        ("x<y", "x<y"), ("f(", "f("), (")", ")"), ("", ""), ("<", "<"), ("f)(", "f)("),
    ],
)  # fmt: skip
def test_a_name_has_no_parameters_and_no_defaults(name: str, shown: str) -> None:
    assert display_name(name) == shown


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (f"std::thread::_State_impl<std::thread::_Invoker<std::tuple<{LAMBDA}> > >::_M_run()",
         "main::{lambda #2}"),
        (f"std::thread::_State_impl<std::thread::_Invoker<std::tuple<{LAMBDA}, int> > >::_M_run()",
         "main::{lambda #2}"),
        (f"std::_Function_handler<void (), {LAMBDA}>::_M_invoke(std::_Any_data const&)",
         "main::{lambda #2}"),
        ("std::thread::_State_impl<std::thread::_Invoker<std::tuple<Job, int> > >::_M_run()", ""),
        ("std::thread::_State_impl<std::thread::_Invoker<std::tuple<", ""),
        ("worker(int)", ""),
    ],
)  # fmt: skip
def test_a_thread_shows_the_lambda_that_it_runs(name: str, function: str) -> None:
    assert run_by(name) == function


def test_functions_between_a_thread_and_its_lambda_are_plumbing() -> None:
    assert is_plumbing("std::thread::_State_impl<std::thread::_Invoker<std::tuple<J> > >::_M_run()")
    assert is_plumbing("void std::__invoke_impl<void, Job>(std::__invoke_other, Job&&)")
    assert not is_plumbing("std::mutex::lock()")
    assert not is_plumbing("app::_private(int)")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_call_sites_in_lambdas_have_function_and_line(level: str, ptt: Ptt, tmp_path: Path) -> None:
    source = ROOT / "tests" / "programs" / "lambdas.cc"
    program, trace = tmp_path / "lambdas", tmp_path / "t"
    subprocess.run(
        ["g++", "-std=c++17", "-g", level, "-pthread", source, "-o", program], check=True
    )
    ptt("record", "-o", trace, "--", program)
    sites = _sites(ptt("view", trace).stdout)
    places = {re.sub(r"\+0x[0-9a-f]+", "", site.partition(" inlined")[0]) for site in sites}
    assert places == {
        "Store<std::string>::put (lambdas.cc:18)",
        "main::{lambda #2} (lambdas.cc:31)",
        "main::{lambda #3} (lambdas.cc:32)",
        "Job::operator() (lambdas.cc:24)",
    }
    full = " ".join(_sites(ptt("-v", "view", trace).stdout))
    assert "std::__cxx11::basic_string<char" in full
    assert "main::{lambda()#2}" in full


def _sites(text: str) -> list[str]:
    """Return the call sites of the program's locks."""
    lines = (line.partition(" took mutex ")[2] for line in text.splitlines())
    sites = (line.partition(" at ")[2] for line in lines)
    return [site for site in sites if "lambdas.cc" in site]
