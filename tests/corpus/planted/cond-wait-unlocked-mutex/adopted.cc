/* SPDX-License-Identifier: MIT */
/* adopted.cc - a guard adopts a mutex that is not locked; a condition wait uses that guard. */
/* expect: cond-wait-unlocked-mutex threads=waiter objects=filled,lock */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable filled;

int main()
{
	OBJECT(filled);
	OBJECT(lock);
	std::thread waiter([] {
		i_am("waiter");
		std::unique_lock<std::mutex> guard(lock, std::adopt_lock);
		filled.wait_for(guard, std::chrono::milliseconds(5));
	});
	waiter.join();
}
