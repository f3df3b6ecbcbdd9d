/* SPDX-License-Identifier: MIT */
/* made_by_initializer.cc - objects in static data are destroyed by calls, and made again by initializers. */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

struct Service {
	std::mutex lock;
	std::condition_variable started;
	bool ready = false;
};

static std::optional<Service> service;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

int main()
{
	for (int i = 0; i < 3; i++) {
		service.emplace();
		std::thread other([] {
			std::lock_guard guard(service->lock);
			service->ready = true;
			service->started.notify_one();
		});
		{
			std::unique_lock guard(service->lock);
			service->started.wait(guard, [] { return service->ready; });
		}
		other.join();
		service.reset();
		pthread_rwlock_rdlock(&table);
		pthread_rwlock_unlock(&table);
		pthread_rwlock_destroy(&table);
		table = PTHREAD_RWLOCK_INITIALIZER;
	}
	return 0;
}
