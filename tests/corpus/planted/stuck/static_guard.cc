/* SPDX-License-Identifier: MIT */
/* static_guard.cc - the initializer of a static local variable needs a mutex; the holder of the mutex needs the variable. */
/* expect: stuck threads=loader,artist objects=engine sites=draws,loads */
/* run: hangs 3 */
#include "corpus.h"

#include <mutex>
#include <thread>

static std::mutex engine;
static int places[2];

struct Table {
	Table()
	{
		arrive(&places[0]);
		await(&places[1], 1);
		for_ever();
		std::lock_guard<std::mutex> lock(engine); /* SITE loads */
	}
	int rows = 1;
};

static Table &table()
{
	static Table only; /* SITE draws */

	return only;
}

static void draw()
{
	i_am("artist");
	std::lock_guard<std::mutex> lock(engine);
	await(&places[0], 1);
	arrive(&places[1]);
	for_ever();
	table().rows++;
}

static void load()
{
	i_am("loader");
	table().rows++;
}

int main()
{
	OBJECT(engine);
	std::thread artist(draw), loader(load);
	for_ever();
	artist.join();
	loader.join();
}
