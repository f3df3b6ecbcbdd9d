/* SPDX-License-Identifier: MIT */
/* hangs.cc - a thread waits for ever with a mutex that it has not locked. */
/* expect: cond-wait-unlocked-mutex threads=waiter objects=filled,lock */
/* also: lost-wakeup */
/* run: hangs 2 */
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
		for_ever();
		filled.wait(guard);
	});
	for_ever();
	waiter.join();
}
