/* SPDX-License-Identifier: MIT */
/* recursive.cc - a recursive mutex is unlocked once more than it was locked. */
/* expect: unlock-unlocked threads=main objects=tree sites=again */
#include "corpus.h"
#include <mutex>

static std::recursive_mutex tree;

int main()
{
	i_am("main");
	OBJECT(tree);
	tree.lock();
	tree.lock();
	tree.unlock();
	tree.unlock();
	tree.unlock(); /* SITE again */
}
