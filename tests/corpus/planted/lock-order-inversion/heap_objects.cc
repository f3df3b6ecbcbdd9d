/* SPDX-License-Identifier: MIT */
/* heap_objects.cc - accounts on the heap are locked in both orders; no call initialises their std::mutex. */
/* expect: lock-order-inversion threads=east,west objects=mine,yours sites=receiver */
/* options: --long-hold 1h --suspects */
#include "corpus.h"
#include <memory>
#include <mutex>
#include <thread>

struct Account {
	std::mutex lock;
	long balance = 100;
};

static int turn;

static void transfer(const char *name, Account &from, Account &to, int mine)
{
	i_am(name);
	await(&turn, mine);
	{
		std::lock_guard<std::mutex> giver(from.lock);
		std::lock_guard<std::mutex> receiver(to.lock); /* SITE receiver */
		from.balance--;
		to.balance++;
	}
	arrive(&turn);
}

int main()
{
	auto mine = std::make_unique<Account>(), yours = std::make_unique<Account>();
	object("mine", &mine->lock);
	object("yours", &yours->lock);
	std::thread east(transfer, "east", std::ref(*mine), std::ref(*yours), 0);
	std::thread west(transfer, "west", std::ref(*yours), std::ref(*mine), 1);
	east.join();
	west.join();
}
