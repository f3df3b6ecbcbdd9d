/* SPDX-License-Identifier: MIT */
/* timed_idle.cc - workers wait for work with time limits that often pass, and are stopped in the end. */
#include "corpus.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable filled;
static std::deque<int> items;
static bool over;

static void work()
{
	std::unique_lock<std::mutex> guard(lock);
	while (!over || !items.empty()) {
		filled.wait_for(guard, std::chrono::milliseconds(2), [] { return !items.empty(); });
		if (!items.empty())
			items.pop_front();
	}
}

int main()
{
	std::thread one(work), two(work);
	for (int i = 0; i < 10; i++) {
		{
			std::lock_guard<std::mutex> guard(lock);
			items.push_back(i);
		}
		filled.notify_one();
		nap_ms(3);
	}
	{
		std::lock_guard<std::mutex> guard(lock);
		over = true;
	}
	filled.notify_all();
	one.join();
	two.join();
}
