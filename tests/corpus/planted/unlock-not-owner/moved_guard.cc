/* SPDX-License-Identifier: MIT */
/* moved_guard.cc - a guard moves into another thread, which then unlocks a mutex that it never locked. */
/* expect: unlock-not-owner threads=finisher objects=lock sites=unlocks */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex lock;

int main()
{
	OBJECT(lock);
	std::unique_lock<std::mutex> guard(lock);
	std::thread finisher([guard = std::move(guard)]() mutable {
		i_am("finisher");
		guard.unlock(); /* SITE unlocks */
	});
	finisher.join();
}
