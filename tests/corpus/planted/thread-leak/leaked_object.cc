/* SPDX-License-Identifier: MIT */
/* leaked_object.cc - a thread object on the heap is dropped, and its thread is never joined. */
/* expect: thread-leak threads=timer */
#include "corpus.h"
#include <thread>

static void after(void (*call)())
{
	new std::thread([=] {
		i_am("timer");
		call();
	});
}

int main()
{
	static int called;
	after([] { arrive(&called); });
	await(&called, 1);
	await_threads(1);
}
