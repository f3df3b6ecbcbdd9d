/* SPDX-License-Identifier: MIT */
/* after_timeout.c - a thread gives up waiting for a semaphore that guards an account, and posts it all the same. */
/* expect: extra-post threads=impatient,teller,clerk objects=account sites=post,teller,clerk */
#include "corpus.h"

static sem_t account;
static int teller_in, posted, clerk_in;

static void *tells(void *unused)
{
	i_am("teller");
	sem_wait(&account); /* SITE teller */
	arrive(&teller_in);
	await(&clerk_in, 1);
	sem_post(&account);
	return unused;
}

static void *writes(void *unused)
{
	i_am("clerk");
	await(&posted, 1);
	sem_wait(&account); /* SITE clerk */
	arrive(&clerk_in);
	sem_post(&account);
	return unused;
}

int main(void)
{
	struct timespec limit;
	pthread_t teller, clerk;

	OBJECT(account);
	i_am("impatient");
	sem_init(&account, 0, 1);
	for (int i = 0; i < 3; i++) {
		sem_wait(&account);
		sem_post(&account);
	}
	teller = start(tells, NULL);
	clerk = start(writes, NULL);
	await(&teller_in, 1);
	limit = in_ms(CLOCK_REALTIME, 5);
	sem_timedwait(&account, &limit);
	sem_post(&account); /* SITE post */
	arrive(&posted);
	join(teller);
	join(clerk);
	return 0;
}
