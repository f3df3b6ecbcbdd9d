/* SPDX-License-Identifier: MIT */
/* c11.c - a mutex of the C standard is locked after its destruction. */
/* expect: use-after-destroy threads=main objects=lock sites=locks */
/* also: use-after-destroy */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;

int main(void)
{
	i_am("main");
	OBJECT(lock);
	mtx_init(&lock, mtx_plain);
	mtx_lock(&lock);
	mtx_unlock(&lock);
	mtx_destroy(&lock);
	mtx_lock(&lock); /* SITE locks */
	return 0;
}
