/* SPDX-License-Identifier: MIT */
/* shared_mutexes.cc - readers take two std::shared_mutex in both orders; threads also read one while they hold the other exclusively. */
#include "corpus.h"
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex users, groups;

int main()
{
	std::thread first([] {
		for (int i = 0; i < 100; i++) {
			std::shared_lock one(users);
			std::shared_lock two(groups);
		}
	});
	std::thread second([] {
		for (int i = 0; i < 100; i++) {
			std::shared_lock one(groups);
			std::shared_lock two(users);
		}
	});
	first.join();
	second.join();
	std::thread third([] {
		std::unique_lock one(users);
		std::shared_lock two(groups);
	});
	third.join();
}
