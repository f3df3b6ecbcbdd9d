#!/usr/bin/env bash
# Builds PTT, installs it into a private environment and traces a program: ./try.sh [PROGRAM [ARGUMENT...]]
# Nothing is written outside build/; when run by root, Debian packages that are missing are installed.
set -euo pipefail
cd "$(dirname "$0")"
. tools/setup.sh

# git searches files with several threads: a real program that everyone who has this tree has, too.
if [ $# -eq 0 ]; then
	need must git has git
	set -- git --no-pager grep --no-index --threads=4 --count pthread_ -- native src tests
fi
need_build
install_wanted

environment=build/try/venv trace=build/try/run.ptt
make_environment "$environment"
say "Building PTT and installing it into $environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check .
PATH=$PWD/$environment/bin:$PATH

show() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
show "ptt record -o $trace -- $*"
ptt record --force -o "$trace" -- "$@"
show "ptt stat $trace"
ptt stat "$trace"
show "ptt view $trace | head -n 20"
ptt view "$trace" | head -n 20 || true

say "Now yours: $environment/bin/ptt record -o mine.ptt -- ./your-program"
