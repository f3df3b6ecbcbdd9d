/* SPDX-License-Identifier: MIT */
/* helper.c - a helper locks the list that its caller has locked already. */
/* expect: self-deadlock threads=main objects=list sites=again */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) int length(void)
{
	int n = 0;

	for_ever();
	pthread_mutex_lock(&list); /* SITE again */
	n++;
	pthread_mutex_unlock(&list);
	return n;
}

int main(void)
{
	int n;

	i_am("main");
	OBJECT(list);
	pthread_mutex_lock(&list); /* SITE first */
	n = length();
	pthread_mutex_unlock(&list);
	return n;
}
