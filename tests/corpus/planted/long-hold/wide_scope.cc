/* SPDX-License-Identifier: MIT */
/* wide_scope.cc - a guard lives until the end of a function that goes on for long after its update. */
/* expect: long-hold threads=worker objects=lock */
/* options: --long-hold 150ms */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex lock;
static int counter, locked;

int main()
{
	OBJECT(lock);
	std::thread worker([] {
		i_am("worker");
		std::lock_guard<std::mutex> guard(lock);
		counter++;
		arrive(&locked);
		nap_ms(300);
	});
	await(&locked, 1);
	lock.lock();
	lock.unlock();
	worker.join();
}
