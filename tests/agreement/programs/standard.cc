// SPDX-License-Identifier: MIT
// standard.cc - a queue, a shared mutex, a once flag, a future and a latch of the C++ library.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex lock;
static std::condition_variable filled;
static std::deque<int> queue;
static std::shared_mutex table;
static std::once_flag once;
static std::latch ready(4);

static void work()
{
	std::call_once(once, [] { std::this_thread::sleep_for(2ms); });
	ready.arrive_and_wait();
	for (;;) {
		int item;
		{
			std::unique_lock hold(lock);
			filled.wait(hold, [] { return !queue.empty(); });
			item = queue.front();
			queue.pop_front();
			std::this_thread::sleep_for(100us);
		}
		if (item < 0)
			return;
		if (item % 4) {
			std::shared_lock read(table);
			std::this_thread::sleep_for(100us);
		} else {
			std::unique_lock write(table);
			std::this_thread::sleep_for(100us);
		}
	}
}

int main()
{
	std::vector<std::jthread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work);
	auto sum = std::async(std::launch::async, [] { std::this_thread::sleep_for(3ms); return 1; });
	for (int i = 0; i < 60; i++) {
		std::lock_guard hold(lock);
		queue.push_back(i < 56 ? i : -1);
		filled.notify_one();
	}
	return sum.get() - 1;
}
