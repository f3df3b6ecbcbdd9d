/* SPDX-License-Identifier: MIT */
/* order_by_address.c - transfers go both ways between two accounts; each transfer locks the account with the lower address first. */
#include "corpus.h"

#define ACCOUNTS 8

struct account {
	pthread_mutex_t lock;
	long balance;
};

static struct account accounts[ACCOUNTS];

static void transfer(struct account *from, struct account *to)
{
	struct account *low = from < to ? from : to, *high = from < to ? to : from;

	pthread_mutex_lock(&low->lock);
	pthread_mutex_lock(&high->lock);
	from->balance--;
	to->balance++;
	pthread_mutex_unlock(&low->lock);
	pthread_mutex_unlock(&high->lock);
}

static void *teller(void *seed)
{
	unsigned int state = (unsigned int)(long)seed;

	for (int i = 0; i < 500; i++) {
		int from = rand_r(&state) % ACCOUNTS, to = rand_r(&state) % ACCOUNTS;

		if (from != to)
			transfer(&accounts[from], &accounts[to]);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	long sum = 0;

	for (int i = 0; i < ACCOUNTS; i++)
		pthread_mutex_init(&accounts[i].lock, NULL);
	for (long i = 0; i < 4; i++)
		threads[i] = start(teller, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	for (int i = 0; i < ACCOUNTS; i++) {
		sum += accounts[i].balance;
		pthread_mutex_destroy(&accounts[i].lock);
	}
	return sum != 0;
}
