/* SPDX-License-Identifier: MIT */
/* scoped_lock.cc - std::scoped_lock and std::lock take two and three mutexes in all orders at once. */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex a, b, c;
static int all;

int main()
{
	std::thread one([] {
		meet(&all, 3);
		for (int i = 0; i < 300; i++)
			std::scoped_lock both(a, b);
	});
	std::thread two([] {
		meet(&all, 3);
		for (int i = 0; i < 300; i++)
			std::scoped_lock three(b, c, a);
	});
	std::thread three([] {
		meet(&all, 3);
		for (int i = 0; i < 300; i++) {
			std::unique_lock<std::mutex> x(c, std::defer_lock), y(b, std::defer_lock);
			std::lock(x, y);
		}
	});
	one.join();
	two.join();
	three.join();
}
