/* SPDX-License-Identifier: MIT */
/* heap_mutex.cc - a connection on the heap has destroyed its mutex, but stays for statistics, which lock the mutex. */
/* expect: use-after-destroy threads=main objects=lock sites=locks */
/* also: use-after-destroy */
#include "corpus.h"

struct Connection {
	pthread_mutex_t lock;
	long bytes = 0;
	Connection()
	{
		pthread_mutex_init(&lock, nullptr);
	}
	void close()
	{
		pthread_mutex_destroy(&lock);
	}
	long sent()
	{
		pthread_mutex_lock(&lock); /* SITE locks */
		long all = bytes;
		pthread_mutex_unlock(&lock);
		return all;
	}
};

int main()
{
	i_am("main");
	Connection *connection = new Connection;
	object("lock", &connection->lock);
	long before = connection->sent();
	connection->close();
	long after = connection->sent();
	delete connection;
	return before != after;
}
