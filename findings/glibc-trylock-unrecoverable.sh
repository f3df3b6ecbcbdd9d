#!/bin/sh
# glibc: pthread_mutex_trylock() reports an unrecoverable robust mutex once, and then says that it is locked.
#
# POSIX (pthread_mutex_consistent, pthread_mutex_lock): after an unlock without a call of
# pthread_mutex_consistent(), every further attempt to lock the mutex fails with ENOTRECOVERABLE.
# glibc's pthread_mutex_lock() does so each time. Its pthread_mutex_trylock() takes the lock word before
# it looks at the state, and does not give the word back: the second attempt fails with EBUSY.
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

cat >"$folder/robust.c" <<'END'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex;

static void *end_with_it(void *unused)
{
	pthread_mutex_lock(&mutex);
	return unused;
}

static const char *name(int error)
{
	switch (error) {
	case EBUSY:
		return "EBUSY";
	case EOWNERDEAD:
		return "EOWNERDEAD";
	case ENOTRECOVERABLE:
		return "ENOTRECOVERABLE";
	default:
		return error ? "another error" : "0";
	}
}

int main(int argc, char **argv)
{
	int (*attempt)(pthread_mutex_t *) = argc > 1 ? pthread_mutex_trylock : pthread_mutex_lock;
	pthread_mutexattr_t attr;
	pthread_t thread;

	(void)argv;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &attr);
	if (pthread_create(&thread, NULL, end_with_it, NULL))
		return 2;
	pthread_join(thread, NULL);
	printf("%s;", name(attempt(&mutex)));
	pthread_mutex_unlock(&mutex); /* without pthread_mutex_consistent() */
	printf("%s;", name(attempt(&mutex)));
	printf("%s;\n", name(attempt(&mutex)));
	return 0;
}
END
cc -pthread -o "$folder/robust" "$folder/robust.c"

expected="EOWNERDEAD;ENOTRECOVERABLE;ENOTRECOVERABLE;"
locks=$("$folder/robust")
tries=$("$folder/robust" by-trylock)
echo "expected, pthread_mutex_lock():    $expected"
echo "seen, pthread_mutex_lock():        $locks"
echo "expected, pthread_mutex_trylock(): $expected"
echo "seen, pthread_mutex_trylock():     $tries"

[ "$locks" = "$expected" ] || exit 1
[ "$tries" = "EOWNERDEAD;ENOTRECOVERABLE;EBUSY;" ] || exit 1
