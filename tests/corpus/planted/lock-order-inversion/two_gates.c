/* SPDX-License-Identifier: MIT */
/* two_gates.c - both orders are taken behind a gate, but not behind the same gate. */
/* expect: lock-order-inversion threads=north,south objects=road,bridge sites=north-second,south-second */
#include "corpus.h"

static pthread_mutex_t road = PTHREAD_MUTEX_INITIALIZER, bridge = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gates[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int turn;

static void *north(void *unused)
{
	i_am("north");
	pthread_mutex_lock(&gates[0]);
	pthread_mutex_lock(&road);
	pthread_mutex_lock(&bridge); /* SITE north-second */
	pthread_mutex_unlock(&bridge);
	pthread_mutex_unlock(&road);
	pthread_mutex_unlock(&gates[0]);
	arrive(&turn);
	return unused;
}

static void *south(void *unused)
{
	i_am("south");
	await(&turn, 1);
	pthread_mutex_lock(&gates[1]);
	pthread_mutex_lock(&bridge);
	pthread_mutex_lock(&road); /* SITE south-second */
	pthread_mutex_unlock(&road);
	pthread_mutex_unlock(&bridge);
	pthread_mutex_unlock(&gates[1]);
	return unused;
}

int main(void)
{
	pthread_t first = start(north, NULL), second = start(south, NULL);

	OBJECT(road);
	OBJECT(bridge);
	join(first);
	join(second);
	return 0;
}
