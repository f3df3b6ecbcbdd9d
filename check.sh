#!/usr/bin/env bash
# Runs the whole test suite, from lint to wheel: ./check.sh [STEP...], each of lint build nptl unit tests asan tsan fuzz.
# Nothing is written outside build/ but the thread library, which belongs into the cache of the user; when run by root,
# Debian packages that are missing are installed.
set -uo pipefail
cd "$(dirname "$0")" || exit
. tools/setup.sh

# Each of thousands of short-lived `ptt` would compile all its modules anew where the environment forbids to keep them.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/build/check/pycache

[ $# -gt 0 ] || set -- lint build nptl unit tests asan tsan fuzz

# The checks have a build of their own: warnings are errors in it, which a developer may not want.
native=build/check/native
flags=(BUILD="$native" CMAKE_FLAGS="-DPTT_WERROR=ON -DPTT_MAN=ON")

step_lint() { make --jobs="$(nproc)" --output-sync=target lint PYTHON="$python"; }
step_build() { make dev PYTHON="$python" "${flags[@]}"; }
# The thread library that tests/nptl runs programs on; it stays in the user's cache for the next time.
step_nptl() {
	step_build >/dev/null && PYTHONPATH=src NPTLTRACE_NATIVE_DIR=$native/stage "$python" -m nptltrace nptl build
}
step_unit() { step_build >/dev/null && ctest --test-dir "$native" --output-on-failure; }
# Tests wait for programs more than they compute; those of one file share what they recorded.
step_tests() {
	local status=0

	step_build >/dev/null && suite 'not alone' -n 3 --dist loadfile || status=1
	suite alone || status=1
	return $status
}
# suite WHICH [OPTION...]: the tests that are marked so.
suite() { tried_twice "$1" -m "$1" --durations=10 "${@:2}"; }
# tried_twice NAME OPTION...: tests. On a busy machine a program may come to a time limit that it never comes to by itself:
# what failed has a second try, with nothing beside it. Both are printed.
tried_twice() {
	local again=(--last-failed --last-failed-no-failures none)

	NPTLTRACE_NATIVE_DIR=$PWD/$native/stage "$python" -m pytest "${@:2}"
	case $? in
	0) ;;
	1)
		say "What failed ($1), by itself"
		NPTLTRACE_NATIVE_DIR=$PWD/$native/stage "$python" -m pytest "${@:2}" -n 0 "${again[@]}"
		;;
	*) return 1 ;;
	esac
}

# sanitize NAME: the C tests under one of the presets with a sanitizer.
sanitize() {
	# ThreadSanitizer wants its shadow where newer kernels may put something at random.
	local still=(setarch "$(uname -m)" --addr-no-randomize)
	"${still[@]}" true 2>/dev/null || still=()
	cmake --preset "$1" -DPTT_MAN=OFF >/dev/null && cmake --build "build/$1" --parallel "$(nproc)" &&
		"${still[@]}" ctest --test-dir "build/$1" --output-on-failure && stress "$1"
}
# stress NAME: the mix of everything, with tracer and handlers of that build and the rest of the ordinary one.
stress() {
	step_build >/dev/null && cmake --install "build/$1" --prefix "build/$1/stage" >/dev/null &&
		PTT_STRESS_BUILD=build/$1/stage tried_twice "stress under $1" -q tests/stress
}
step_asan() { sanitize asan; }
step_tsan() { sanitize tsan; }
# The fuzzers in C; those in Python are among the tests. PTT_FUZZ_SECONDS says for how long each of them.
step_fuzz() { tests/fuzz/run.sh; }

for step; do
	declare -F "step_$step" >/dev/null || die "no step $step"
done

library() { ldconfig -p | grep -F "$1"; }
urcu() { echo '#include <urcu.h>' | gcc -D_LGPL_SOURCE -fsyntax-only -x c -; }
qemu_runs() { has qemu-aarch64-static || has qemu-aarch64; }
fuzzes() { echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer -x c - -o /dev/null; }

need_build
# A second reader of the traces.
need must babeltrace2 has babeltrace2
# Programs to trace, and what shows manual pages and completes command lines.
need may clang has clang
need may "libclang-rt-dev|libclang-rt-14-dev" fuzzes
need may bubblewrap has bwrap
need may chromium has chromium
need may default-jdk-headless has javac
need may dwz has dwz
need may ffmpeg has ffmpeg
need may firefox-esr has firefox-esr
need may fish has fish
need may gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
need may gcc-riscv64-linux-gnu has riscv64-linux-gnu-gcc
need may groff-base has groff
need may mandoc has mandoc
need may libboost-thread-dev test -e /usr/include/boost/thread.hpp
need may libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/pthread.h
need may libc6-dev-riscv64-cross test -e /usr/riscv64-linux-gnu/include/pthread.h
need may libjemalloc2 library libjemalloc.so.2
need may libmemcached-tools has memcslap
need may "libmimalloc3|libmimalloc2.0" library libmimalloc.so
need may libomp5 library libomp.so.5
need may libtbb-dev test -d /usr/include/tbb
need may "libtcmalloc-minimal4t64|libtcmalloc-minimal4" library libtcmalloc_minimal.so.4
need may mariadb-client-core has mariadb
need may mariadb-server-core has mariadbd
need may memcached has memcached
need may liburcu-dev urcu
need may nodejs has node
need may p7zip-full has 7z
need may npm has npm
need may pajeng has pj_dump
need may pigz has pigz
need may pkg-config has pkg-config
need may python3-pyqt5 /usr/bin/python3 -c 'import PyQt5.QtGui'
need may "qemu-user-static|qemu-user" qemu_runs
need may redis-server has redis-server
need may redis-tools has redis-benchmark
need may ruby has ruby
need may spin has spin
need may strace has strace
need may sysbench has sysbench
need may valgrind has valgrind
need may vite has vite
need may x264 has x264
need may xz-utils has xz
need may zsh has zsh
need may zstd has zstd
install_wanted

environment=build/check/venv
make_environment "$environment" || die "no Python environment"
python=$PWD/$environment/bin/python
requirements dev >build/check/requirements.txt
say "Installing what the tests need into $environment"
"$python" -m pip install --quiet --disable-pip-version-check -r build/check/requirements.txt ||
	die "pip could not install what the tests need"

failed=()
for step; do
	say "$step"
	start=$SECONDS
	"step_$step" || failed+=("$step")
	echo "$step: $((SECONDS - start)) s"
done
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
say "All passed"
