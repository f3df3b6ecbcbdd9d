#!/bin/sh
# glibc: a thread that an exit handler starts and joins ends the process, if main left by pthread_exit().
#
# POSIX: the process ends as if exit(0) were called when its last thread has ended, so exit handlers run
# to their ends. glibc no longer counts the thread that runs the handlers. It mistakes the end of the
# helper thread for the end of the last thread. It calls exit() a second time while the handler still joins.
set -eu

tested=2.36
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$(getconf GNU_LIBC_VERSION)
echo "version: $version (tested: glibc $tested)"
case $version in
"glibc $tested") ;;
*)
	echo "this script knows glibc $tested only"
	exit 1
	;;
esac

cat >"$folder/handler.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *nothing(void *unused)
{
	return unused;
}

static void at_exit(void)
{
	pthread_t thread;

	puts("handler begins");
	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
	puts("handler ends");
}

int main(int argc, char **argv)
{
	(void)argv;
	atexit(at_exit);
	if (argc > 1)
		pthread_exit(NULL);
	return 0;
}
END
cc -pthread -o "$folder/handler" "$folder/handler.c"

returns=$("$folder/handler" | tr '\n' ';')
leaves=$("$folder/handler" by-pthread-exit | tr '\n' ';')
echo "expected, main returns:              handler begins;handler ends;"
echo "seen, main returns:                  $returns"
echo "expected, main calls pthread_exit(): handler begins;handler ends;"
echo "seen, main calls pthread_exit():     $leaves (exit status 0)"

[ "$returns" = "handler begins;handler ends;" ] || exit 1
[ "$leaves" = "handler begins;" ] || exit 1
