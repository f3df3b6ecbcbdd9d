/* SPDX-License-Identifier: MIT */
/* thrown.cc - a function locks by hand and throws; the top level of the thread catches the exception. */
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
