/* SPDX-License-Identifier: MIT */
/* recursive_and_rwlock.cc - a recursive mutex and a read/write lock in opposite orders; one thread reads and the other writes. */
/* expect: deadlock threads=painter,loader objects=scene,textures sites=painter-wants,loader-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::recursive_mutex scene;
static std::shared_mutex textures;
static int both;

static void paint()
{
	i_am("painter");
	std::lock_guard<std::recursive_mutex> outer(scene), inner(scene);
	meet(&both, 2);
	for_ever();
	textures.lock_shared(); /* SITE painter-wants */
}

static void load()
{
	i_am("loader");
	textures.lock();
	meet(&both, 2);
	for_ever();
	scene.lock(); /* SITE loader-wants */
}

int main()
{
	OBJECT(scene);
	OBJECT(textures);
	std::thread first(paint), second(load);
	for_ever();
	first.join();
	second.join();
}
