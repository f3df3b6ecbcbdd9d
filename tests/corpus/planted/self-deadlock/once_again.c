/* SPDX-License-Identifier: MIT */
/* once_again.c - a once routine calls pthread_once for itself. */
/* expect: self-deadlock threads=main objects=ready sites=again */
/* run: hangs 1 */
#include "corpus.h"

static pthread_once_t ready = PTHREAD_ONCE_INIT;

static void initialise(void)
{
	for_ever();
	pthread_once(&ready, initialise); /* SITE again */
}

int main(void)
{
	i_am("main");
	OBJECT(ready);
	pthread_once(&ready, initialise);
	return 0;
}
