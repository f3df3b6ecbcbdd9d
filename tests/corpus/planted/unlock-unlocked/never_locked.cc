/* SPDX-License-Identifier: MIT */
/* never_locked.cc - a guard adopts a mutex that nobody has locked. */
/* expect: unlock-unlocked threads=worker objects=lock */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex lock;

int main()
{
	OBJECT(lock);
	std::thread worker([] {
		i_am("worker");
		std::lock_guard<std::mutex> guard(lock, std::adopt_lock);
	});
	worker.join();
}
