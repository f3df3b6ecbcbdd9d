/* SPDX-License-Identifier: MIT */
/* static_local.cc - threads need a static local variable; one thread initializes it while the others wait. */
#include "corpus.h"

#include <mutex>
#include <thread>
#include <vector>

static std::mutex engine;

struct Table {
	Table()
	{
		std::lock_guard<std::mutex> lock(engine);
		nap_ms(50);
	}
	int rows = 1;
};

static Table &table()
{
	static Table only;

	return only;
}

static void load()
{
	table();
	std::lock_guard<std::mutex> lock(engine);
	table().rows++;
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back(load);
	for (std::thread &thread : threads)
		thread.join();
	return table().rows != 5;
}
