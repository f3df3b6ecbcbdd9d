/* SPDX-License-Identifier: MIT */
/* freed.c - a record is freed with its lock held; its memory becomes another record. */
/* expect: init-locked threads=main objects=lock sites=locks,makes */
#include "corpus.h"

struct record {
	pthread_mutex_t lock;
};

static struct record pool;

static struct record *new_record(void)
{
	pthread_mutex_init(&pool.lock, NULL); /* SITE makes */
	return &pool;
}

int main(void)
{
	struct record *record;

	i_am("main");
	object("lock", &pool.lock);
	record = new_record();
	pthread_mutex_lock(&record->lock); /* SITE locks */
	record = new_record();
	pthread_mutex_lock(&record->lock);
	pthread_mutex_unlock(&record->lock);
	return 0;
}
