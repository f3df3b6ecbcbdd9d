/* SPDX-License-Identifier: MIT */
/* static_destructor.cc - a destructor of static storage writes to a log that has already been destroyed. */
/* expect: use-after-destroy threads=main objects=log sites=locks */
/* also: use-after-destroy */
#include "corpus.h"

struct Client {
	~Client();
};

struct Log {
	pthread_mutex_t lock;
	Log()
	{
		pthread_mutex_init(&lock, nullptr);
	}
	~Log()
	{
		pthread_mutex_destroy(&lock);
	}
	void line()
	{
		pthread_mutex_lock(&lock); /* SITE locks */
		pthread_mutex_unlock(&lock);
	}
};

static Client client;
static Log log_of_all;

Client::~Client()
{
	log_of_all.line();
}

int main()
{
	i_am("main");
	object("log", &log_of_all.lock);
	log_of_all.line();
}
