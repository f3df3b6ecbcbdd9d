/* SPDX-License-Identifier: MIT */
/* locals_of_main.cc - two mutexes are local variables of main; two threads lock them in both orders. */
/* expect: lock-order-inversion threads=first,second objects=a,b sites=ab,ba */
#include "corpus.h"
#include <mutex>
#include <thread>

static int turn;

int main()
{
	std::mutex a, b;
	needs_stack_behind_modules(&a);
	OBJECT(a);
	OBJECT(b);
	std::thread first([&] {
		i_am("first");
		std::unique_lock<std::mutex> one(a);
		std::unique_lock<std::mutex> two(b); /* SITE ab */
		arrive(&turn);
	});
	std::thread second([&] {
		i_am("second");
		await(&turn, 1);
		std::unique_lock<std::mutex> one(b);
		std::unique_lock<std::mutex> two(a); /* SITE ba */
	});
	first.join();
	second.join();
}
