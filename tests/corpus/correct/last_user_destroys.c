/* SPDX-License-Identifier: MIT */
/* last_user_destroys.c - the thread that drops the last reference to an object frees it, with its mutex, right after the unlock. */
#include "corpus.h"

struct object {
	pthread_mutex_t lock;
	int references;
};

static void put(struct object *object)
{
	int left;

	pthread_mutex_lock(&object->lock);
	left = --object->references;
	pthread_mutex_unlock(&object->lock);
	if (left == 0) {
		pthread_mutex_destroy(&object->lock);
		free(object);
	}
}

static void *user(void *object)
{
	put(object);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 10; i++) {
		struct object *object = malloc(sizeof(*object));
		pthread_t thread;

		pthread_mutex_init(&object->lock, NULL);
		object->references = 2;
		thread = start(user, object);
		put(object);
		join(thread);
	}
	return 0;
}
