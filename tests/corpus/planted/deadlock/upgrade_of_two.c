/* SPDX-License-Identifier: MIT */
/* upgrade_of_two.c - two readers of a page both decide to write it, and keep each other out. */
/* expect: deadlock threads=left,right objects=page sites=asks */
/* run: hangs 3 */
#include "corpus.h"

static pthread_rwlock_t page = PTHREAD_RWLOCK_INITIALIZER;
static int both;

static void *editor(void *name)
{
	i_am(name);
	pthread_rwlock_rdlock(&page);
	meet(&both, 2);
	for_ever();
	pthread_rwlock_wrlock(&page); /* SITE asks */
	pthread_rwlock_unlock(&page);
	return NULL;
}

int main(void)
{
	pthread_t one, other;

	OBJECT(page);
	one = start(editor, "left");
	other = start(editor, "right");
	for_ever();
	join(one);
	join(other);
	return 0;
}
