/* SPDX-License-Identifier: MIT */
/* promises.cc - promises become ready at thread exit; futures are shared, waited for with time limits, and dropped. */
#include "corpus.h"
#include <future>
#include <thread>
#include <vector>

int main()
{
	for (int round = 0; round < 5; round++) {
		std::promise<int> promise;
		auto answer = promise.get_future().share();
		std::vector<std::thread> readers;
		for (int i = 0; i < 3; i++)
			readers.emplace_back([answer] {
				while (answer.wait_for(std::chrono::milliseconds(1)) !=
				       std::future_status::ready)
					;
				if (answer.get() != 3)
					abort();
			});
		std::thread([promise = std::move(promise)]() mutable {
			promise.set_value_at_thread_exit(3);
		}).detach();
		for (auto &reader : readers)
			reader.join();
		auto dropped = std::async(std::launch::deferred, [] { return 1; });
	}
	await_threads(1);
}
