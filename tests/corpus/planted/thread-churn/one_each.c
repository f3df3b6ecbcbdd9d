/* SPDX-License-Identifier: MIT */
/* one_each.c - an accountant creates a thread for each of ten thousand entries, and waits for it. */
/* expect: thread-churn threads=accountant sites=hires */
#include "corpus.h"

static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *enter(void *entry)
{
	pthread_mutex_lock(&books);
	total += *(long *)entry;
	pthread_mutex_unlock(&books);
	return entry;
}

int main(void)
{
	pthread_t clerk;
	long entries = 0;

	i_am("accountant");
	for (long entry = 1; entry <= 10000; entry++) {
		if (pthread_create(&clerk, NULL, enter, &entry)) /* SITE hires */
			abort();
		join(clerk);
		entries += entry;
	}
	return total != entries;
}
