/* SPDX-License-Identifier: MIT */
/* writer_waits_for_recursion.c - a reader reads again while a writer waits; by default readers are let in. */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int held, writer_tid;

static void *writer(void *unused)
{
	await(&held, 1);
	set_tid(&writer_tid);
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread = start(writer, NULL);

	pthread_rwlock_rdlock(&table);
	arrive(&held);
	await_asleep(&writer_tid);
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	if (pthread_rwlock_trywrlock(&table) == 0)
		return 1;
	pthread_rwlock_unlock(&table);
	join(thread);
	return 0;
}
