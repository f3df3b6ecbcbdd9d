#!/usr/bin/env bash
# Runs the whole test suite, from lint to wheel: ./check.sh [--all] [STEP...]. The steps are lint build unit tests nptl asan
# tsan fuzz. --all adds slow tests that seldom find anything: more recordings to compare, larger models, ten times the forks,
# more random input.
# It writes nothing outside build/, except the thread library in the user's cache. As root, it installs missing Debian
# packages.
set -uo pipefail
cd "$(dirname "$0")" || exit
. tools/setup.sh

# If the environment forbids compiled modules, each of thousands of short `ptt` processes would compile them again.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/build/check/pycache

if [ "${1:-}" = --all ]; then
	shift
	export PTT_TESTS=all PTT_STRESS_SECONDS=${PTT_STRESS_SECONDS:-60} PTT_FUZZ_SECONDS=${PTT_FUZZ_SECONDS:-120}
fi
steps=("$@")
[ $# -gt 0 ] || steps=(lint build unit tests nptl asan tsan fuzz)

# The checks have their own build: warnings are errors there, and a developer may not want this.
native=build/check/native
jobs=$(nproc)

# ---- builds for the steps, made once -------------------------------------------------------------------------------
build_build() { make dev PYTHON="$python" BUILD="$native" CMAKE_FLAGS="-DPTT_WERROR=ON -DPTT_MAN=ON"; }
# The thread library for the programs of tests/nptl; it stays in the user's cache for the next time.
build_nptl() { PYTHONPATH=src NPTLTRACE_NATIVE_DIR=$native/stage "$python" -m nptltrace nptl build; }
build_asan() { build_sanitized asan; }
build_tsan() { build_sanitized tsan; }
build_fuzz() { PTT_FUZZ_SECONDS=0 run_fuzz; }
run_fuzz() { PYTHON=$python NPTLTRACE_NATIVE_DIR=$PWD/$native/stage tests/fuzz/run.sh; }
# build_sanitized PRESET: the C tests, and the libraries that run inside traced processes.
build_sanitized() {
	cmake --preset "$1" -DPTT_MAN=OFF -DPTT_PAGE=OFF >/dev/null &&
		cmake --build "build/$1" --parallel "$jobs" --target ptt_sanitized &&
		cmake --install "build/$1" --prefix "build/$1/stage" --component traced >/dev/null
}
# beside STEP...: build for these steps in the background, if they will run. All other work goes first: this build uses
# processors that wait for the network and for tests. The steps repeat the build, so they report its errors.
beside() {
	local step

	renice -n 19 "$BASHPID" >/dev/null
	for step; do
		case " ${steps[*]} " in *" $step "*) "build_$step" >"build/check/$step.log" 2>&1 ;; esac
	done
}

# ---- steps ---------------------------------------------------------------------------------------------------------
step_lint() {
	local status built

	beside build &
	built=$!
	make --jobs="$jobs" --output-sync=target lint PYTHON="$python"
	status=$?
	wait $built
	return $status
}
step_build() { build_build; }
step_unit() { run_ctest "$native"; }
# run_ctest BUILD [PROGRAM...]: the tests in C; PROGRAM starts them.
run_ctest() { "${@:2}" ctest --test-dir "$1" --output-on-failure --parallel "$jobs"; }
# Tests of one file share their recordings. No build runs beside the tests marked `alone`.
step_tests() {
	local status=0

	beside nptl &
	run_pytest -m 'not alone' --ignore=tests/nptl --numprocesses=3 --dist=loadfile --no-loadscope-reorder || status=1
	wait
	run_pytest -m alone --ignore=tests/nptl --numprocesses=2 --dist=worksteal || status=1
	return $status
}
run_pytest() { NPTLTRACE_NATIVE_DIR=$PWD/$native/stage "$python" -m pytest --durations=10 "$@"; }
step_nptl() { build_nptl && run_pytest tests/nptl --numprocesses=2 --dist=loadfile; }
step_asan() { build_asan && run_sanitized asan; }
step_tsan() { build_tsan && run_sanitized tsan; }
# run_sanitized PRESET: the C tests, and the stress tests with the tracer and the handlers of this build.
run_sanitized() {
	# ThreadSanitizer needs fixed addresses for its shadow, but newer kernels may put mappings there at random.
	local still=(setarch "$(uname -m)" --addr-no-randomize)
	"${still[@]}" true 2>/dev/null || still=()
	run_ctest "build/$1" "${still[@]}" && PTT_STRESS_BUILD=build/$1/stage run_pytest -q tests/stress
}
# Fuzzing of parsers in C and of damaged files; other fuzzing is among the tests. PTT_FUZZ_SECONDS: seconds for each fuzzer.
step_fuzz() { build_fuzz && run_fuzz; }

for step in "${steps[@]}"; do
	declare -F "step_$step" >/dev/null || die "no step $step"
done

library() { ldconfig -p | grep -F "$1"; }
urcu() { echo '#include <urcu.h>' | gcc -D_LGPL_SOURCE -fsyntax-only -x c -; }
qemu_runs() { has qemu-aarch64-static || has qemu-aarch64; }
fuzzes() { echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer -x c - -o /dev/null; }

need_build
# A second reader of the traces.
need must babeltrace2 has babeltrace2
# Programs to trace, viewers of manual pages, and shells that complete command lines.
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
need may gdb has gcore
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

failed=() times=()
# timed NAME COMMAND...: run the command, and remember its time.
timed() {
	local start=$SECONDS status=0

	"${@:2}" || status=$?
	times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$1")")
	return $status
}
make_python() {
	make_environment "$environment" || die "no Python environment"
	requirements dev >build/check/requirements.txt
	say "Installing what the tests need into $environment"
	"$python" -m pip install --quiet --disable-pip-version-check -r build/check/requirements.txt ||
		die "pip could not install what the tests need"
}
environment=build/check/venv
python=$PWD/$environment/bin/python
timed "Debian packages" install_wanted
mkdir -p build/check
beside asan tsan fuzz &
timed "Python packages" make_python
# All steps but lint need the build for the tests.
[ "${steps[*]}" = lint ] || case " ${steps[*]} " in *" build "*) ;; *) timed build build_build >/dev/null || die "no build" ;; esac
for step in "${steps[@]}"; do
	say "$step"
	timed "$step" "step_$step" && continue
	failed+=("$step")
	[ "$step" != build ] || break # without a build there is nothing to test
done
wait
say "Time"
printf '%s\n' "${times[@]}"
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
say "All passed"
