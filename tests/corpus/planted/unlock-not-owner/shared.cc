/* SPDX-License-Identifier: MIT */
/* shared.cc - a thread releases a std::shared_mutex that only another thread holds for reading. */
/* expect: unlock-not-owner threads=stranger objects=table sites=unlocks */
/* also: exit-holding-lock unlock-unlocked */
#include "corpus.h"
#include <shared_mutex>
#include <thread>

static std::shared_mutex table;
static int inside, out;

int main()
{
	OBJECT(table);
	std::thread reader([] {
		table.lock_shared();
		arrive(&inside);
		await(&out, 1);
	});
	std::thread stranger([] {
		i_am("stranger");
		await(&inside, 1);
		table.unlock_shared(); /* SITE unlocks */
		arrive(&out);
	});
	reader.join();
	stranger.join();
}
