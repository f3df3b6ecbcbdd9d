/* SPDX-License-Identifier: MIT */
/* thread_local.cc - destructors of thread_local objects and of thread-specific data lock at the end of their threads. */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex registry;
static int members;
static pthread_key_t key;

struct Member {
	Member()
	{
		std::lock_guard<std::mutex> guard(registry);
		members++;
	}
	~Member()
	{
		std::lock_guard<std::mutex> guard(registry);
		members--;
	}
};

static thread_local Member member;

static void forget(void *)
{
	std::lock_guard<std::mutex> guard(registry);
	members--;
}

int main()
{
	pthread_key_create(&key, forget);
	std::thread threads[3];
	for (auto &thread : threads)
		thread = std::thread([] {
			Member *mine = &member;
			pthread_setspecific(key, mine);
			std::lock_guard<std::mutex> guard(registry);
			members++;
		});
	for (auto &thread : threads)
		thread.join();
	return members != 0;
}
