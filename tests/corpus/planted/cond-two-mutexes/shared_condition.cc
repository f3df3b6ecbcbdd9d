/* SPDX-License-Identifier: MIT */
/* shared_condition.cc - all queues share a condition, but each queue has its own mutex. */
/* expect: cond-two-mutexes threads=first,second objects=filled,one,two */
#include "corpus.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::condition_variable filled;

struct Queue {
	std::mutex lock;
	std::deque<int> items;
	int taker = 0;

	void take(const char *name)
	{
		i_am(name);
		std::unique_lock<std::mutex> guard(lock);
		set_tid(&taker);
		filled.wait(guard, [this] { return !items.empty(); });
		items.pop_front();
	}
	void put(int item)
	{
		std::lock_guard<std::mutex> guard(lock);
		items.push_back(item);
	}
};

int main()
{
	Queue one, two;
	OBJECT(filled);
	object("one", &one.lock);
	object("two", &two.lock);
	std::thread first([&] { one.take("first"); }), second([&] { two.take("second"); });
	await_asleep(&one.taker);
	await_asleep(&two.taker);
	one.put(1);
	two.put(2);
	filled.notify_all();
	first.join();
	second.join();
}
