/* SPDX-License-Identifier: MIT */
/* main_goes_on.cc - the start is notified before a worker waits for it; main goes on with other things until it is killed. */
/* expect: lost-wakeup threads=worker objects=go sites=waits */
/* run: hangs 2 */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable go;
static int notified;

int main()
{
	OBJECT(go);
	std::thread worker([] {
		i_am("worker");
		await(&notified, 1);
		std::unique_lock<std::mutex> guard(lock);
		for_ever();
		go.wait(guard); /* SITE waits */
	});
	go.notify_one();
	arrive(&notified);
	for_ever();
	pause();
	worker.join();
}
