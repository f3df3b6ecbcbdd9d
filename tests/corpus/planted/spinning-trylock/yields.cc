/* SPDX-License-Identifier: MIT */
/* yields.cc - a thread tries for a std::mutex and yields until another thread has rendered a picture. */
/* expect: spinning-trylock threads=spinner,painter objects=picture */
/* record: -l 3 */
#include <mutex>
#include <thread>

#include "corpus.h"

static std::mutex picture;
static int taken;

int main()
{
	OBJECT(picture);
	i_am("spinner");
	std::thread painter([] {
		i_am("painter");
		std::scoped_lock lock(picture);
		arrive(&taken);
		nap_ms(50);
	});
	await(&taken, 1);
	while (!picture.try_lock())
		std::this_thread::yield();
	picture.unlock();
	painter.join();
}
