/* SPDX-License-Identifier: MIT */
/* others_go_on.cc - the start is notified without the lock before a worker waits for it; main then joins the worker. */
/* expect: lost-wakeup threads=worker objects=go sites=waits */
/* run: hangs 3 */
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
	std::thread([] {
		for_ever();
		for (;;)
			pause(); /* for a signal, or for what a socket may bring */
	}).detach();
	go.notify_one();
	arrive(&notified);
	for_ever();
	worker.join();
}
