#!/usr/bin/env bash
# Builds the fuzzers into build/fuzz, and runs each for PTT_FUZZ_SECONDS seconds (5; 0 only builds them), as many at once as
# there are processors: tests/fuzz/run.sh [NAME...]
# The fuzzers of files are kinds of tests/fuzz/files.py; $PYTHON runs them with the native files in $NPTLTRACE_NATIVE_DIR.
# New inputs stay in build/fuzz/NAME-corpus; a small initial corpus lies beside this script.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ne 1 ]; then
	[ $# -gt 0 ] || set -- elf core trace segment verify reader environment symbols unwind # the fuzzer with the longest build comes first
	printf '%s\n' "$@" | xargs --max-procs="$(nproc)" --max-args=1 tests/fuzz/run.sh
	exit
fi
name=$1
seconds=${PTT_FUZZ_SECONDS:-5}
case $name in core | elf | segment | trace)
	[ "$seconds" -gt 0 ] || exit 0
	PYTHONPATH=src exec "${PYTHON:-build/check/venv/bin/python}" -m tests.fuzz.files "$name" ;;
esac
clang=$(command -v clang || command -v clang-14) || { echo "fuzz: $name skipped, there is no clang"; exit 0; }
out=build/fuzz
mkdir -p "$out"
# shellcheck disable=SC2054 # commas within one word
flags=(-std=gnu11 -g -O1 -Wall -Wextra -D_GNU_SOURCE -DENABLE_NPTL_TRACE=1 -DPTT_UNWINDS=1 -fsanitize=fuzzer,address,undefined
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer
	-Inative/include -Inative/ring -Inative/catalog -Inative/reader -Inative/tracer -Inative/tracer/handler -Inative/tracer/real -Inative/tracer/process -Inative/tracer/call_site -Inative/unwind -Inative/tasks -Inative/tracer/java -Inative/tracer/locks -Inative/tracker -Inative/tracker/promises
	-fms-extensions -Wno-microsoft-anon-tag)
declare -A sources=(
	[reader]="native/reader/*.c native/reader/*/*.c native/ring/mapping/truncation.c native/ring/compact/compact.c native/ring/layout/crc32c.c native/ring/record/record.c native/ring/platform/upcalls.c native/catalog/*.c"
	[verify]="native/tracker/promises/*.c native/tracker/state/*.c native/reader/decode.c native/reader/hash_map.c native/reader/tables.c native/ring/record/record.c native/ring/platform/upcalls.c native/ring/layout/crc32c.c native/catalog/*.c"
	[environment]="native/ring/platform/upcalls.c"
	[symbols]="native/ring/platform/upcalls.c native/tracer/call_site/reach.c"
	[unwind]="native/ring/platform/upcalls.c native/unwind/unwind.c native/tasks/unwind_image.c native/tracer/call_site/registers.c native/tracer/call_site/rules.c"
)
[ -n "${sources[$name]+known}" ] || { echo "fuzz: no fuzzer $name" >&2; exit 2; }
program=$out/$name
if [ ! -x "$program" ] || [ -n "$(find native tests/fuzz -newer "$program" -type f -print -quit)" ]; then
	echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, long n) { return d && n < 0; }' >"$program-try.c"
	"$clang" -fsanitize=fuzzer "$program-try.c" -o "$program-try" 2>/dev/null ||
		{ echo "fuzz: $name skipped, clang has no libFuzzer"; exit 0; }
	# shellcheck disable=SC2086
	"$clang" "${flags[@]}" tests/fuzz/fuzz_"$name".c ${sources[$name]} -lpthread -ldl -o "$program"
fi
[ "$seconds" -gt 0 ] || exit 0
mkdir -p "$program-corpus"
ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 "$program" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
	-max_len=65536 -print_final_stats=1 -artifact_prefix="$program-" "$program-corpus" tests/fuzz/corpus/"$name" \
	>"$program.log" 2>&1 || { tail -40 "$program.log"; exit 1; }
echo "fuzz: $name for $seconds s: $(grep -E "stat::number_of_executed_units|DONE" "$program.log" | tail -1)"
