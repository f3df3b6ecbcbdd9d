/* SPDX-License-Identifier: MIT */
/* cache.cc - a reader that holds the cache shared logs a miss; the logger evicts from the cache. */
/* expect: deadlock threads=reader,logger objects=cache,log_lock sites=reader-wants,logger-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex cache;
static std::mutex log_lock;
static int both;

static void reader()
{
	i_am("reader");
	std::shared_lock<std::shared_mutex> look(cache);
	meet(&both, 2);
	for_ever();
	std::lock_guard<std::mutex> line(log_lock); /* SITE reader-wants */
}

static void logger()
{
	i_am("logger");
	std::lock_guard<std::mutex> line(log_lock);
	meet(&both, 2);
	for_ever();
	std::unique_lock<std::shared_mutex> evict(cache); /* SITE logger-wants */
}

int main()
{
	OBJECT(cache);
	OBJECT(log_lock);
	std::thread first(reader), second(logger);
	for_ever();
	first.join();
	second.join();
}
