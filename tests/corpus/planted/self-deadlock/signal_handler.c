/* SPDX-License-Identifier: MIT */
/* signal_handler.c - a signal handler counts under the lock that the interrupted thread holds. */
/* expect: self-deadlock threads=main objects=counters sites=again */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t counters = PTHREAD_MUTEX_INITIALIZER;

static void handler(int unused)
{
	(void)unused;
	for_ever();
	pthread_mutex_lock(&counters); /* SITE again */
	pthread_mutex_unlock(&counters);
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler};

	i_am("main");
	OBJECT(counters);
	sigaction(SIGUSR1, &action, NULL);
	pthread_mutex_lock(&counters);
	raise(SIGUSR1);
	pthread_mutex_unlock(&counters);
	return 0;
}
