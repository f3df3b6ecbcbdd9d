#!/bin/sh
# glibc: sem_clockwait() of a free semaphore ignores a pending cancellation, sem_timedwait() acts on it.
#
# The manual of glibc (Waiting with Explicit Clocks): sem_clockwait() differs from sem_timedwait() in the
# clock alone. POSIX.1-2024 (Cancellation Points) lists both functions as cancellation points. A thread
# that waits for semaphores in a loop, and finds them free each time, cannot be cancelled.
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

cat >"$folder/cancel.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static int which;

static void *wait_for_one(void *unused)
{
	struct timespec later;
	sem_t sem;

	(void)unused;
	clock_gettime(CLOCK_REALTIME, &later);
	later.tv_sec += 60;
	sem_init(&sem, 0, 1);
	pthread_cancel(pthread_self()); /* stays pending until a cancellation point */
	if (which == 0)
		sem_wait(&sem);
	else if (which == 1)
		sem_timedwait(&sem, &later);
	else
		sem_clockwait(&sem, CLOCK_REALTIME, &later);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *result;

	for (which = 0; which < 3; which++) {
		if (pthread_create(&thread, NULL, wait_for_one, NULL))
			return 2;
		pthread_join(thread, &result);
		printf("%s;", result == PTHREAD_CANCELED ? "cancelled" : "returned");
	}
	puts("");
	return 0;
}
END
cc -pthread -o "$folder/cancel" "$folder/cancel.c"

seen=$("$folder/cancel")
echo "calls:    sem_wait;sem_timedwait;sem_clockwait;"
echo "expected: cancelled;cancelled;cancelled;"
echo "seen:     $seen"

[ "$seen" = "cancelled;cancelled;returned;" ] || exit 1
