/* SPDX-License-Identifier: MIT */
/* main_leaves_first.c - main ends by pthread_exit; a detached thread and a joined thread go on, and the last thread ends the process. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value;

static void *first(void *unused)
{
	pthread_mutex_lock(&lock);
	value++;
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *last(void *unused)
{
	join(start(first, NULL));
	pthread_mutex_lock(&lock);
	value++;
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_detach(start(last, NULL));
	pthread_exit(NULL);
}
