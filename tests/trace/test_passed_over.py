"""PTT passes over frames by function, by module, and by patterns of the user."""

from __future__ import annotations

import pytest

from nptltrace.errors import UsageError
from nptltrace.trace.passed_over import PassedOver, bare_name, patterns


class TestBuiltIn:
    """PTT passes over known wrappers, but not over functions of programs."""

    @pytest.mark.parametrize(
        ("function", "module"),
        [
            ("Lck__Lock", "varnishd"),
            ("mozilla::detail::MutexImpl::lock()", "libxul.so"),
            ("rocksdb::port::Mutex::Lock()", "librocksdb.so.7.8"),
            ("std::unique_lock<std::mutex>::lock()", "program"),
            ("void std::call_once<void (&)()>(std::once_flag&, void (&)())", "program"),
            ("std::sys::sync::mutex::futex::Mutex::lock_contended", "program"),
            ("boost::interprocess::scoped_lock<M>::scoped_lock(M&)", "program"),
            ("void boost::interprocess::ipcdetail::timeout_when_locking_aware_lock<M>(M&)", "p"),
            ("SDL_LockMutex_REAL", "game"),
            ("g_mutex_lock", "program"),
            ("uv_cond_wait", "node"),
            ("uv__sem_wait", "node"),
            ("LWLockAcquire", "postgres"),
            ("std::__detail::__platform_wait<int>", "program"),
            ("ObjectMonitor::enter(JavaThread*)", "libjvm.so"),
            ("PyThread_acquire_lock_timed", "libpython3.11.so.1.0"),
            ("take_gil", "python3.11"),
            ("", "libstdc++.so.6"),
            ("whatever", "libSDL2-2.0.so.0"),
            ("", "libQt5Core.so.5"),
        ],
    )
    def test_known_wrappers_are_passed_over(self, function: str, module: str) -> None:
        assert PassedOver()(function, module)

    @pytest.mark.parametrize(
        ("function", "module"),
        [
            ("main", "program"),
            ("", "program"),
            ("", ""),
            ("my_worker(int)", "program"),
            ("rocksdb::DBImpl::WriteImpl(rocksdb::WriteOptions const&)", "librocksdb.so.7.8"),
            ("lockstep", "program"),
            ("boost::interprocess::message_queue::send(void const*)", "program"),
            ("JavaThread::run()", "libjvm.so"),
            ("std::vector<int>::push_back(int const&)", "program"),
        ],
    )
    def test_functions_of_programs_are_not_passed_over(self, function: str, module: str) -> None:
        assert not PassedOver()(function, module)


class TestUsers:
    """The user's patterns match functions and modules."""

    def test_patterns_match_functions_and_modules(self) -> None:
        rule = PassedOver(patterns("db_*, libwrap.so*"))
        assert rule("db_lock", "program")
        assert rule("anything", "libwrap.so.3")
        assert not rule("read_row", "program")

    def test_an_empty_pattern_is_refused(self) -> None:
        with pytest.raises(UsageError, match="an empty pattern in 'a,,b'"):
            patterns("a,,b")


class TestFirst:
    """The call site is the first frame that PTT does not pass over."""

    def test_the_call_site_is_behind_wrappers(self) -> None:
        frames = [
            ("std::mutex::lock()", "p"),
            ("Lck__Lock", "p"),
            ("work", "p"),
            ("g_once_impl", "p"),
        ]
        assert PassedOver().first(frames) == 2

    def test_nameless_frames_between_wrappers_are_passed_over(self) -> None:
        """In a stripped program, frames between two wrappers belong to the wrappers."""
        lock, release = ("PGSemaphoreUnlock", "p"), ("LWLockRelease", "p")
        assert PassedOver().first([lock, ("", "p"), release, ("work", "p")]) == 3
        assert PassedOver().first([lock, ("", "p"), ("work", "p"), release]) == 1
        assert PassedOver().first([lock, ("wake", "p"), release, ("work", "p")]) == 1
        # a wrapper of another module, or of C++, calls back
        assert PassedOver().first([lock, ("", "p"), ("uv_once", "q"), ("work", "p")]) == 1
        assert PassedOver().first([lock, ("", "p"), ("std::call_once<f>", "p"), ("work", "p")]) == 1

    def test_a_stack_of_wrappers_alone_keeps_all_frames(self) -> None:
        assert PassedOver().first([("Lck__Lock", "p"), ("", "libstdc++.so.6")]) == 0
        assert PassedOver().first([]) == 0


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("f", "f"),
        ("f(int)", "f"),
        ("ns::f(std::pair<int, int>) const", "ns::f"),
        ("void ns::f<int>(int)", "ns::f<int>"),
        ("std::pair<int, int> ns::f<int>(int)", "ns::f<int>"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("ns::(anonymous namespace)::g", "ns::(anonymous namespace)::g"),
        ("ns::f(int)::{lambda()#1}::operator()() const", "ns::f(int)::{lambda()#1}::operator()"),
        ("A::operator bool() const", "A::operator bool"),
        ("", ""),
        ("(", "("),
        (")", ")"),
    ],
)
def test_bare_names_have_no_parameters(name: str, bare: str) -> None:
    assert bare_name(name) == bare
