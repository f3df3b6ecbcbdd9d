/* SPDX-License-Identifier: MIT */
/* inherits.c - a mutex with priority inheritance is locked twice. */
/* expect: self-deadlock threads=main objects=bus sites=again */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t bus;

int main(void)
{
	pthread_mutexattr_t attr;

	i_am("main");
	OBJECT(bus);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&bus, &attr);
	pthread_mutex_lock(&bus);
	for_ever();
	pthread_mutex_lock(&bus); /* SITE again */
	return 0;
}
