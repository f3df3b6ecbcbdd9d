/* SPDX-License-Identifier: MIT */
/* bystander.c - two threads deadlock after a third has waited and timed out; a fourth thread waits for one of their locks. */
/* expect: deadlock threads=first,second objects=left,right sites=first-wants,second-wants */
/* also: lock-order-inversion */
/* run: hangs 4 */
#include "corpus.h"

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right;
static int both, timed_out;

static void *first(void *unused)
{
	i_am("first");
	pthread_mutex_lock(&left);
	meet(&both, 2);
	await(&timed_out, 1);
	for_ever();
	pthread_mutex_lock(&right); /* SITE first-wants */
	return unused;
}

static void *second(void *unused)
{
	i_am("second");
	pthread_mutex_lock(&right);
	meet(&both, 2);
	await(&timed_out, 1);
	for_ever();
	pthread_mutex_lock(&left); /* SITE second-wants */
	return unused;
}

static void *patient(void *unused)
{
	struct timespec soon;

	i_am("patient");
	await(&both, 2);
	soon = in_ms(CLOCK_REALTIME, 10);
	if (pthread_mutex_timedlock(&left, &soon) != ETIMEDOUT)
		abort();
	arrive(&timed_out);
	for_ever();
	pthread_mutex_lock(&left);
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	OBJECT(left);
	OBJECT(right);
	init_mutex(&right, PTHREAD_MUTEX_RECURSIVE);
	threads[0] = start(first, NULL);
	threads[1] = start(second, NULL);
	threads[2] = start(patient, NULL);
	for_ever();
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
