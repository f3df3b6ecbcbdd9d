/* SPDX-License-Identifier: MIT */
/* futures.cc - futures, promises and packaged tasks; nobody waits for some of them. */
#include "corpus.h"
#include <future>
#include <numeric>
#include <vector>

static long sum(long from, long to)
{
	long all = 0;
	for (long i = from; i < to; i++)
		all += i;
	return all;
}

int main()
{
	std::vector<std::future<long>> parts;
	for (long i = 0; i < 8; i++)
		parts.push_back(std::async(std::launch::async, sum, i * 100, (i + 1) * 100));
	long all = 0;
	for (auto &part : parts)
		all += part.get();
	std::promise<int> early, late;
	auto answer = early.get_future(), other = late.get_future();
	early.set_value(1);
	std::thread thread([&] { late.set_value(answer.get()); });
	bool right = other.get() == 1 && all == sum(0, 800);
	thread.join();
	std::packaged_task<int()> task([] { return 3; });
	auto unread = task.get_future();
	std::thread(std::move(task)).join();
	return right ? 0 : 1;
}
