/* SPDX-License-Identifier: MIT */
/* stop_token.cc - std::jthread and std::condition_variable_any use stop tokens with a shared state. */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable_any filled;
static int items = 20;

int main()
{
	std::vector<std::jthread> pool;
	for (int i = 0; i < 3; i++)
		pool.emplace_back([](std::stop_token stop) {
			std::unique_lock<std::mutex> guard(lock);
			while (filled.wait(guard, stop, [] { return items > 0; }))
				items--;
		});
	filled.notify_all();
	for (int left = 1; left;) {
		std::lock_guard<std::mutex> guard(lock);
		left = items;
	}
}
