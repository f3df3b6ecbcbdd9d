/* SPDX-License-Identifier: MIT */
/* readers_and_writers.c - two threads read two tables in opposite orders; a waiting writer would keep the second reader out. */
/* expect: lock-order-inversion threads=by_user,by_group objects=users,groups sites=user_first,group_first */
#include "corpus.h"

static pthread_rwlock_t users, groups;
static int turn;

static void *by_user(void *unused)
{
	i_am("by_user");
	pthread_rwlock_rdlock(&users);
	pthread_rwlock_rdlock(&groups); /* SITE user_first */
	pthread_rwlock_unlock(&groups);
	pthread_rwlock_unlock(&users);
	arrive(&turn);
	return unused;
}

static void *by_group(void *unused)
{
	i_am("by_group");
	await(&turn, 1);
	pthread_rwlock_rdlock(&groups);
	pthread_rwlock_rdlock(&users); /* SITE group_first */
	pthread_rwlock_unlock(&users);
	pthread_rwlock_unlock(&groups);
	arrive(&turn);
	return unused;
}

static void *writer(void *unused)
{
	await(&turn, 2);
	pthread_rwlock_wrlock(&users);
	pthread_rwlock_unlock(&users);
	pthread_rwlock_wrlock(&groups);
	pthread_rwlock_unlock(&groups);
	return unused;
}

int main(void)
{
	pthread_rwlockattr_t attributes;
	pthread_t threads[3];

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&users, &attributes);
	pthread_rwlock_init(&groups, &attributes);
	OBJECT(users);
	OBJECT(groups);
	threads[0] = start(by_user, NULL);
	threads[1] = start(by_group, NULL);
	threads[2] = start(writer, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
