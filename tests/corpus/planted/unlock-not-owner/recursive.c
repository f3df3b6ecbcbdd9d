/* SPDX-License-Identifier: MIT */
/* recursive.c - a recursive mutex is unlocked by another thread while its owner is two levels deep. */
/* expect: unlock-not-owner threads=stranger objects=tree sites=unlocks */
#include "corpus.h"
#include <threads.h>

static mtx_t tree;
static int held, refused;

static int owner(void *unused)
{
	mtx_lock(&tree);
	mtx_lock(&tree);
	arrive(&held);
	await(&refused, 1);
	mtx_unlock(&tree);
	mtx_unlock(&tree);
	return unused != NULL;
}

static int stranger(void *unused)
{
	i_am("stranger");
	await(&held, 1);
	if (mtx_unlock(&tree) != thrd_error) /* SITE unlocks */
		abort();
	arrive(&refused);
	return unused != NULL;
}

int main(void)
{
	thrd_t first, second;

	OBJECT(tree);
	mtx_init(&tree, mtx_plain | mtx_recursive);
	thrd_create(&first, owner, NULL);
	thrd_create(&second, stranger, NULL);
	thrd_join(first, NULL);
	thrd_join(second, NULL);
	return 0;
}
