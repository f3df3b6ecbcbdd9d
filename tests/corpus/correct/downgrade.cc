/* SPDX-License-Identifier: MIT */
/* downgrade.cc - a reader releases the lock before it takes it for writing, and looks again. */
#include "corpus.h"
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex lock;
static std::map<int, int> cache;

static int get(int key)
{
	{
		std::shared_lock look(lock);
		auto found = cache.find(key);
		if (found != cache.end())
			return found->second;
	}
	std::unique_lock change(lock);
	return cache.emplace(key, key * key).first->second;
}

static void run()
{
	for (int i = 0; i < 200; i++)
		if (get(i % 17) != (i % 17) * (i % 17))
			abort();
}

int main()
{
	std::thread one(run), two(run), three(run);
	one.join();
	two.join();
	three.join();
}
