/* SPDX-License-Identifier: MIT */
/* any_lock.cc - std::condition_variable_any waits with a shared lock and with a home-made one. */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex table;
static std::condition_variable_any changed;
static int value;

int main()
{
	std::thread reader([] {
		std::shared_lock<std::shared_mutex> look(table);
		changed.wait(look, [] { return value == 1; });
	});
	std::thread writer([] {
		std::unique_lock<std::shared_mutex> change(table);
		value = 1;
		changed.notify_all();
	});
	reader.join();
	writer.join();
	std::recursive_mutex tree;
	std::unique_lock<std::recursive_mutex> guard(tree);
	changed.wait_for(guard, std::chrono::milliseconds(1));
}
