/* SPDX-License-Identifier: MIT */
/* timed_backoff.cc - a thread waits for the second of two timed mutexes with a time limit, and gives up. */
#include "corpus.h"
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::timed_mutex a, b;
static std::shared_timed_mutex table;
static int both;

static void run(std::timed_mutex &first, std::timed_mutex &second)
{
	meet(&both, 2);
	for (int i = 0; i < 20; i++) {
		std::lock_guard<std::timed_mutex> one(first);
		std::unique_lock<std::timed_mutex> two(second, std::chrono::milliseconds(1));
	}
}

int main()
{
	std::thread one([] { run(a, b); }), two([] { run(b, a); });
	one.join();
	two.join();
	std::unique_lock<std::shared_timed_mutex> writer(table);
	std::thread reader([] {
		if (table.try_lock_shared_for(std::chrono::milliseconds(2)))
			abort();
	});
	reader.join();
}
