/* SPDX-License-Identifier: MIT */
/* upgrade.c - two readers of a table both want to write an entry that they found missing. */
/* expect: deadlock threads=left,right objects=table sites=upgrade */
/* run: hangs 3 */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int both;

static void *reader(void *name)
{
	i_am(name);
	pthread_rwlock_rdlock(&table);
	meet(&both, 2);
	for_ever();
	pthread_rwlock_wrlock(&table); /* SITE upgrade */
	pthread_rwlock_unlock(&table);
	return NULL;
}

int main(void)
{
	pthread_t left, right;

	OBJECT(table);
	left = start(reader, "left");
	right = start(reader, "right");
	for_ever();
	join(left);
	join(right);
	return 0;
}
