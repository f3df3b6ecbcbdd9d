/* SPDX-License-Identifier: MIT */
/* tellers.c - two tellers move money between two accounts, each from its own side. */
/* expect: deadlock threads=anna,bert objects=alice,bob sites=anna-wants,bert-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t alice = PTHREAD_MUTEX_INITIALIZER, bob = PTHREAD_MUTEX_INITIALIZER;
static int both;

static void *anna(void *unused)
{
	i_am("anna");
	pthread_mutex_lock(&alice); /* SITE anna-has */
	meet(&both, 2);
	for_ever();
	pthread_mutex_lock(&bob); /* SITE anna-wants */
	return unused;
}

static void *bert(void *unused)
{
	i_am("bert");
	pthread_mutex_lock(&bob); /* SITE bert-has */
	meet(&both, 2);
	for_ever();
	pthread_mutex_lock(&alice); /* SITE bert-wants */
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(alice);
	OBJECT(bob);
	first = start(anna, NULL);
	second = start(bert, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
