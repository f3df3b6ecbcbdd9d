/* SPDX-License-Identifier: MIT */
/* ring.cc - three services call one another in a ring, each with its own lock held. */
/* expect: deadlock threads=users,orders,stock objects=users,orders,stock sites=call */
/* also: lock-order-inversion */
/* run: hangs 4 */
#include "corpus.h"
#include <mutex>
#include <thread>

struct service {
	const char *name;
	std::mutex lock;
	service *next;

	void serve()
	{
		std::lock_guard<std::mutex> guard(lock);
	}
	void run();
};

static int all;

void service::run()
{
	i_am(name);
	std::unique_lock<std::mutex> guard(lock);
	meet(&all, 3);
	for_ever();
	next->serve(); /* SITE call */
}

int main()
{
	auto users = new service{"users", {}, nullptr}, orders = new service{"orders", {}, nullptr};
	auto stock = new service{"stock", {}, nullptr};
	users->next = orders;
	orders->next = stock;
	stock->next = users;
	object("users", &users->lock);
	object("orders", &orders->lock);
	object("stock", &stock->lock);
	std::thread first([=] { users->run(); }), second([=] { orders->run(); });
	std::thread third([=] { stock->run(); });
	for_ever();
	first.join();
	second.join();
	third.join();
}
