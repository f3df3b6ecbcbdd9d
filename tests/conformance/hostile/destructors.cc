// SPDX-License-Identifier: MIT
// destructors.cc - thread_local objects, keys and exceptions whose destructors use locks; C++20 waiting.
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <threads.h>
#include <vector>

static std::mutex mutex;
static std::shared_mutex shared;
static int ended, keys, unwound;
static pthread_key_t key;

struct at_end {
	~at_end()
	{
		std::lock_guard<std::mutex> held(mutex);
		ended++;
	}
	void touch() {}
};

static thread_local at_end local;

static void destroy_key(void *)
{
	std::lock_guard<std::mutex> held(mutex);
	std::unique_lock<std::shared_mutex> also(shared);
	keys++;
}

struct unwinder {
	~unwinder()
	{
		std::lock_guard<std::mutex> held(mutex);
		unwound++;
	}
};

static void run(int i)
{
	local.touch();
	pthread_setspecific(key, &key);
	try {
		unwinder u;

		if (i % 2)
			throw std::runtime_error("odd");
	} catch (const std::exception &) {
		std::lock_guard<std::mutex> held(mutex);
	}
	if (i % 4 == 0) {
		unwinder u;

		if (i % 8)
			thrd_exit(0);
		pthread_exit(nullptr);
	}
}

static void *cancelled(void *)
{
	unwinder u;
	std::unique_lock<std::mutex> held(mutex);
	std::condition_variable never;

	local.touch();
	pthread_cancel(pthread_self());
	never.wait(held);
	return nullptr;
}

static void *run_posix(void *i)
{
	run(static_cast<int>(reinterpret_cast<long>(i)));
	return nullptr;
}

static void cxx20()
{
	std::atomic<int> number{0};
	std::latch latch(3);
	std::barrier barrier(2);
	std::counting_semaphore<8> semaphore(0);
	std::jthread a([&] { number.wait(0); latch.count_down(); barrier.arrive_and_wait(); semaphore.release(); });
	std::jthread b([&] { number = 1; number.notify_all(); latch.count_down(); barrier.arrive_and_wait(); });

	latch.arrive_and_wait();
	semaphore.acquire();
	std::printf("%d\n", number.load());
}

int main()
{
	std::vector<pthread_t> threads(20);
	pthread_t thread;

	pthread_key_create(&key, destroy_key);
	for (long i = 0; i < 20; i++)
		pthread_create(&threads[i], nullptr, run_posix, reinterpret_cast<void *>(i));
	for (auto &t : threads)
		pthread_join(t, nullptr);
	for (int i = 0; i < 10; i++) {
		pthread_create(&thread, nullptr, cancelled, nullptr);
		pthread_join(thread, nullptr);
	}
	std::printf("%d %d %d\n", ended, keys, unwound);
	cxx20();
	return 0;
}
