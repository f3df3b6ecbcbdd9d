/* SPDX-License-Identifier: MIT */
/* late_logger.c - messages are signalled before the logger thread reaches its queue; it writes them and waits; SIGTERM ends it. */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int messages, go;

static void *logger(void *unused)
{
	await(&go, 1);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!messages) {
			for_ever();
			pthread_cond_wait(&filled, &lock);
		}
		messages = 0;
		pthread_mutex_unlock(&lock);
		nap_ms(1); /* writes */
		pthread_mutex_lock(&lock);
	}
	return unused;
}

int main(void)
{
	start(logger, NULL);
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&lock);
		messages++;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	arrive(&go);
	for_ever();
	for (;;)
		pause();
}
