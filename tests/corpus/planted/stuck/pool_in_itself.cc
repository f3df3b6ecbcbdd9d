/* SPDX-License-Identifier: MIT */
/* pool_in_itself.cc - a task waits for the result of another task; the only thread of the pool would have to run it. */
/* expect: stuck threads=main,worker sites=inner,outer */
/* run: hangs 2 */
#include "corpus.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable filled;
static std::deque<std::function<void()>> jobs;

static std::future<int> submit(std::function<int()> work)
{
	auto task = std::make_shared<std::packaged_task<int()>>(std::move(work));

	std::lock_guard<std::mutex> held(lock);
	jobs.emplace_back([task] { (*task)(); });
	filled.notify_one();
	return task->get_future();
}

static void worker()
{
	i_am("worker");
	for (;;) {
		std::unique_lock<std::mutex> held(lock);
		filled.wait(held, [] { return !jobs.empty(); });
		auto job = std::move(jobs.front());
		jobs.pop_front();
		held.unlock();
		job();
	}
}

static int sum(int n)
{
	std::future<int> rest = submit([] { return 1; });

	for_ever();
	return n + rest.get(); /* SITE inner */
}

int main()
{
	std::thread thread(worker);
	std::future<int> result;

	i_am("main");
	result = submit([] { return sum(3); });
	for_ever();
	result.get(); /* SITE outer */
	thread.join();
	return 0;
}
