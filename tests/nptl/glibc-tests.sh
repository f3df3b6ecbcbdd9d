#!/usr/bin/env bash
# Runs glibc's own tests of threads on the trace-enabled library: tests/nptl/glibc-tests.sh SOURCE OBJECTS
#
# SOURCE is the unmodified source of the installed glibc, OBJECTS the directory where it has been configured and built by
# `make` in full. The test programs are built there once and run three times: on the unmodified library, on the
# trace-enabled one with tracing off, and with the tracer loaded and everything traced at level 4 into memory. A test that
# passes the first time must pass the other times, except tests that glibc-tests.except names with a reason.
# Most of the time the tests wait for something: JOBS of them (8) run at once. Results stay in OBJECTS/ptt, and the run on the
# unmodified library is not done again.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$(realpath "$1") objects=$(realpath "$2")
python=${PYTHON:-python3}
export PYTHONPATH=$PWD/src NPTLTRACE_NATIVE_DIR=${NPTLTRACE_NATIVE_DIR:-$PWD/build/dev/stage}
except=$PWD/tests/nptl/glibc-tests.except
library=$("$python" -m nptltrace nptl path)
tracer=$("$python" -m nptltrace config --preload)
results=$objects/ptt
# a test may take ten times the time that is allowed it on an idle machine
export TIMEOUTFACTOR=${TIMEOUTFACTOR:-10}
mkdir -p "$results"

# run NAME [VARIABLE=VALUE...]: all tests, with these in the environment of each; a line "PASS: nptl/name" for each.
run() {
	local name=$1 own
	shift
	own="GCONV_PATH=$objects/iconvdata LOCPATH=$objects/localedata LC_ALL=C"
	rm -f "$objects"/nptl/*.out "$objects"/nptl/*.test-result
	make -C "$source/nptl" -k -r PARALLELMFLAGS= -j"${JOBS:-8}" subdir=nptl ..=../ objdir="$objects" \
		run-program-env="$own $*" tests >"$results/$name.log" 2>&1 || true
	cat "$objects"/nptl/*.test-result | grep -E '^[A-Z]+: ' | sort >"$results/$name"
	echo "$name: $(cut -d: -f1 "$results/$name" | sort | uniq -c | tr -s ' \n' ' ')"
}

# put LIBC: installs the library for the tests, with the time stamp of the library before, so that no test is linked again.
put() {
	touch -r "$objects/libc.so" "$results/time"
	rm "$objects/libc.so"
	cp "$1" "$objects/libc.so"
	touch -r "$results/time" "$objects/libc.so"
}

[ -e "$results/libc.so" ] || cp -p "$objects/libc.so" "$results/libc.so"
trap 'put "$results/libc.so"' EXIT
[ -s "$results/unmodified" ] || run unmodified
put "$library/lib/libc.so.6"
run off
run level4 "LD_PRELOAD=$tracer" "PTHREAD_NPTL_TRACE=file:file=/dev/shm/ptt-glibc-tests,size=1M:4"
rm -rf /dev/shm/ptt-glibc-tests*

failed=0
for name in off level4; do
	# passed before, does not pass now, and has no known reason
	worse=$(comm -23 <(grep '^PASS' "$results/unmodified") <(grep '^PASS' "$results/$name") | sed 's/.*nptl\///' |
		grep -vxF -f <(awk -v run="$name" '!/^#/ && ($2 == run || $2 == "both") { print $1 }' "$except") || true)
	[ -z "$worse" ] || { echo "$name, passed before: $worse"; failed=1; }
done
exit $failed
