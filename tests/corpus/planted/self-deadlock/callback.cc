/* SPDX-License-Identifier: MIT */
/* callback.cc - a subscriber unsubscribes inside a call that holds the lock of all subscribers. */
/* expect: self-deadlock threads=publisher objects=lock sites=again */
/* run: hangs 2 */
#include "corpus.h"
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Topic {
public:
	void subscribe(std::function<void()> call)
	{
		std::lock_guard<std::mutex> guard(lock);
		calls.push_back(call);
	}
	void clear()
	{
		for_ever();
		std::lock_guard<std::mutex> guard(lock); /* SITE again */
		calls.clear();
	}
	void publish()
	{
		std::lock_guard<std::mutex> guard(lock);
		for (auto &call : calls)
			call();
	}
	std::mutex lock;

private:
	std::vector<std::function<void()>> calls;
};

int main()
{
	Topic topic;

	object("lock", &topic.lock);
	topic.subscribe([&] { topic.clear(); });
	std::thread publisher([&] {
		i_am("publisher");
		topic.publish();
	});
	for_ever();
	publisher.join();
}
