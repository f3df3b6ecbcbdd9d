/* SPDX-License-Identifier: MIT */
/* static_object.cc - an object of static storage is destroyed at exit while a detached thread is in its critical section. */
/* expect: destroy-locked threads=worker objects=lock sites=destroys */
#include "corpus.h"
#include <thread>

struct Store {
	pthread_mutex_t lock;
	Store()
	{
		pthread_mutex_init(&lock, nullptr);
	}
	~Store()
	{
		pthread_mutex_destroy(&lock); /* SITE destroys */
	}
};

static Store store;
static int held;

int main()
{
	object("lock", &store.lock);
	std::thread([] {
		i_am("worker");
		pthread_mutex_lock(&store.lock);
		arrive(&held);
		for (;;)
			pause();
	}).detach();
	await(&held, 1);
}
