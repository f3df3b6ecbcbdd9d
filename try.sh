#!/usr/bin/env bash
# Builds PTT, installs it into a private environment and traces a program: ./try.sh [PROGRAM [ARGUMENT...]]
# It writes nothing outside build/. As root, it installs missing Debian packages.
set -euo pipefail
cd "$(dirname "$0")"
. tools/setup.sh

# git searches files with several threads. It is a real program, and everyone with this tree has it.
ours=no
if [ $# -eq 0 ]; then
	need must git has git
	set -- git --no-pager grep --no-index --threads=4 --files-with-matches pthread_create -- native
	ours=yes
fi
need_build
install_wanted

environment=build/try/venv trace=build/try/run.ptt
make_environment "$environment"
say "Building PTT and installing it into $environment, which takes half a minute if nothing else runs"
"$environment/bin/pip" install --quiet --disable-pip-version-check .
PATH=$PWD/$environment/bin:$PATH

show() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
show "ptt record -o $trace -- $*"
ptt record --force -o "$trace" -- "$@"
show "ptt stat $trace"
ptt stat "$trace"
show "ptt report $trace | head -n 24"
ptt report "$trace" | head -n 24 || true
show "ptt view $trace | head -n 12"
ptt view "$trace" | head -n 12 || true

if [ $ours = yes ]; then
	say "And a program that hangs: examples/hang/store.c"
	cc -g -pthread -o build/try/store examples/hang/store.c
	show "timeout 2 ptt record -o build/try/hang.ptt -- build/try/store"
	timeout 2 "$environment/bin/ptt" record --force -o build/try/hang.ptt -- build/try/store || true
	show "ptt check build/try/hang.ptt"
	ptt check build/try/hang.ptt || true
	echo
	echo "Each thread waits for a lock of another thread: docs/tutorial/hang.md tells the whole story."
fi

say "Now your program: $environment/bin/ptt record -o mine.ptt -- ./your-program"
