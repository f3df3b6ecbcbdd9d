/* SPDX-License-Identifier: MIT */
/* notify_first.cc - the answer is notified before the asker waits for it, without a predicate. */
/* expect: lost-wakeup threads=asker objects=answered sites=waits */
/* run: hangs 2 */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable answered;
static int notified;

static void asker()
{
	i_am("asker");
	await(&notified, 1);
	std::unique_lock<std::mutex> guard(lock);
	for_ever();
	answered.wait(guard); /* SITE waits */
}

int main()
{
	OBJECT(answered);
	std::thread thread(asker);
	{
		std::lock_guard<std::mutex> guard(lock);
		answered.notify_all();
	}
	arrive(&notified);
	for_ever();
	thread.join();
}
