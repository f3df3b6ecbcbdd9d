/* SPDX-License-Identifier: MIT */
/* heap_reuse_unordered.cc - two unordered threads create and destroy objects with a std::mutex; addresses are reused. */
#include "corpus.h"
#include <memory>
#include <mutex>
#include <thread>

struct Node {
	std::mutex lock;
	long value = 0;
	char rest[200];
};

static int turn;

/* Parents are always locked before children, but the addresses change. */
static void run(int mine)
{
	for (int i = 0; i < 10; i++) {
		await(&turn, 2 * i + mine);
		auto one = std::make_unique<Node>(), two = std::make_unique<Node>();
		Node *parent = one.get() < two.get() ? one.get() : two.get();
		Node *child = one.get() < two.get() ? two.get() : one.get();
		if (mine)
			std::swap(parent, child);
		{
			std::lock_guard<std::mutex> outer(parent->lock);
			std::lock_guard<std::mutex> inner(child->lock);
			child->value = ++parent->value;
		}
		one.reset();
		two.reset();
		arrive(&turn);
	}
}

int main()
{
	std::thread other(run, 1);
	run(0);
	other.join();
}
