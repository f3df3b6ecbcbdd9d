/* SPDX-License-Identifier: MIT */
/* released_guard.cc - release() is mistaken for unlock(). */
/* expect: exit-holding-lock threads=worker objects=lock */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex lock;
static int counter;

int main()
{
	OBJECT(lock);
	std::thread worker([] {
		i_am("worker");
		std::unique_lock<std::mutex> guard(lock);
		counter++;
		guard.release();
	});
	worker.join();
}
