/* SPDX-License-Identifier: MIT */
/* many.c - a server creates a thread for each of twenty requests and joins none. */
/* expect: thread-leak threads=request */
/* also: thread-leak */
#include "corpus.h"

static int served;

static void *request(void *number)
{
	if (!number)
		i_am("request");
	arrive(&served);
	return NULL;
}

int main(void)
{
	for (long i = 0; i < 20; i++)
		start(request, (void *)i);
	await(&served, 20);
	await_threads(1);
	exit(0);
}
