/* SPDX-License-Identifier: MIT */
/* thrown.cc - a function locks by hand, throws, and the thread's top level catches. */
/* expect: exit-holding-lock threads=worker objects=lock sites=locks */
#include "corpus.h"
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex lock;

static void parse(const char *text)
{
	lock.lock(); /* SITE locks */
	if (!*text)
		throw std::runtime_error("empty");
	lock.unlock();
}

int main()
{
	OBJECT(lock);
	std::thread worker([] {
		i_am("worker");
		try {
			parse("");
		} catch (const std::exception &) {
		}
	});
	worker.join();
}
