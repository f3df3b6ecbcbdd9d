/* SPDX-License-Identifier: MIT */
/* c11.c - two threads of the C standard lock input and output in opposite orders. */
/* expect: deadlock threads=copier,echo objects=input,output sites=copier-wants,echo-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"
#include <threads.h>

static mtx_t input, output;
static int both;

static int copier(void *unused)
{
	i_am("copier");
	mtx_lock(&input);
	meet(&both, 2);
	for_ever();
	mtx_lock(&output); /* SITE copier-wants */
	return unused != NULL;
}

static int echo(void *unused)
{
	i_am("echo");
	mtx_lock(&output);
	meet(&both, 2);
	for_ever();
	mtx_lock(&input); /* SITE echo-wants */
	return unused != NULL;
}

int main(void)
{
	thrd_t first, second;

	OBJECT(input);
	OBJECT(output);
	mtx_init(&input, mtx_plain);
	mtx_init(&output, mtx_plain);
	thrd_create(&first, copier, NULL);
	thrd_create(&second, echo, NULL);
	for_ever();
	thrd_join(first, NULL);
	thrd_join(second, NULL);
	return 0;
}
