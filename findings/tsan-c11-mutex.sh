#!/bin/sh
# ThreadSanitizer (GCC 12): a counter under a C11 mutex is reported as a data race.
#
# C11 7.26.4: mtx_unlock() synchronizes with the mtx_lock() that comes next, so the program has no race. The
# manual of GCC says that -fsanitize=thread detects data races, and names no unknown kind of mutex. The
# runtime library intercepts pthread_mutex_lock() but not mtx_lock(). glibc's mtx_lock() locks the mutex
# inside the library, where the runtime library cannot intercept the call.
set -eu

tested=12.2.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$(gcc-12 -dumpfullversion)
echo "version: gcc $version, $(getconf GNU_LIBC_VERSION) (tested: gcc $tested, glibc 2.36)"
if [ "$version" != "$tested" ]; then
	echo "this script knows gcc $tested only"
	exit 1
fi

cat >"$folder/counter.c" <<'END'
#include <pthread.h>
#include <threads.h>

#ifdef C11
static mtx_t mutex;
#define INIT() mtx_init(&mutex, mtx_plain)
#define LOCK() mtx_lock(&mutex)
#define UNLOCK() mtx_unlock(&mutex)
#else
static pthread_mutex_t mutex;
#define INIT() pthread_mutex_init(&mutex, NULL)
#define LOCK() pthread_mutex_lock(&mutex)
#define UNLOCK() pthread_mutex_unlock(&mutex)
#endif

static long counter;

static void *work(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		LOCK();
		counter++;
		UNLOCK();
	}
	return unused;
}

int main(void)
{
	pthread_t one, two;

	INIT();
	if (pthread_create(&one, NULL, work, NULL) || pthread_create(&two, NULL, work, NULL))
		return 2;
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	return counter != 2000;
}
END
gcc-12 -g -fsanitize=thread -pthread -o "$folder/posix" "$folder/counter.c"
gcc-12 -g -fsanitize=thread -pthread -DC11 -o "$folder/c11" "$folder/counter.c"

# Print the sanitizer's report on a program, or "nothing".
verdict() {
	"$folder/$1" 2>"$folder/said" || true
	said=$(grep -o 'WARNING: ThreadSanitizer: .*' "$folder/said" | sed 's/ (pid=.*//; s/.*: //' | sort -u)
	[ -s "$folder/said" ] || said=nothing
	echo "${said:-something else}"
}

posix=$(verdict posix)
c11=$(verdict c11)
echo "expected, pthread_mutex_lock(): nothing"
echo "seen, pthread_mutex_lock():     $posix"
echo "expected, mtx_lock():           nothing"
echo "seen, mtx_lock():               $c11"

[ "$posix" = nothing ] || exit 1
[ "$c11" = "data race" ] || exit 1
