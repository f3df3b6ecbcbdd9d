/* SPDX-License-Identifier: MIT */
/* three.cc - three threads each lock two of three mutexes, in a ring of orders. */
/* expect: lock-order-inversion threads=ab,bc,ca objects=a,b,c sites=second */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex a, b, c;
static int turn;

static void lock_both(const char *name, std::mutex &outer, std::mutex &inner, int mine)
{
	i_am(name);
	await(&turn, mine);
	{
		std::lock_guard<std::mutex> first(outer);
		std::lock_guard<std::mutex> second(inner); /* SITE second */
	}
	arrive(&turn);
}

int main()
{
	OBJECT(a);
	OBJECT(b);
	OBJECT(c);
	std::thread one(lock_both, "ab", std::ref(a), std::ref(b), 0);
	std::thread two(lock_both, "bc", std::ref(b), std::ref(c), 1);
	std::thread three(lock_both, "ca", std::ref(c), std::ref(a), 2);
	one.join();
	two.join();
	three.join();
}
