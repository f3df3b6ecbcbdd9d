// SPDX-License-Identifier: MIT
// cxx.cc - C++20: exceptions through call_once, thread_local destructors that lock, atomic waits, semaphore, latch.
#include <atomic>
#include <cstdio>
#include <latch>
#include <mutex>
#include <pthread.h>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <chrono>

#include "show.h"

using namespace std::chrono_literals;

static std::mutex mutex;
static pthread_key_t key;
static pthread_once_t once_control = PTHREAD_ONCE_INIT;
static int tries;

struct Locker {
	int used = 0;
	~Locker()
	{
		std::lock_guard<std::mutex> guard(mutex);
		std::puts("thread_local destructor");
	}
};

static thread_local Locker locker;

static void key_destructor(void *)
{
	std::lock_guard<std::mutex> guard(mutex);
	std::puts("key destructor");
}

static void throws_first()
{
	if (tries++ == 0)
		throw std::runtime_error("first try");
}

int main()
{
	pthread_key_create(&key, key_destructor);
	for (int i = 0; i < 2; i++) {
		try {
			pthread_once(&once_control, throws_first);
			std::puts("once: done");
		} catch (const std::runtime_error &error) {
			std::printf("once: %s\n", error.what());
		}
	}

	static std::once_flag flag;
	std::call_once(flag, [] { std::puts("call_once"); });

	std::thread([] {
		locker.used = 1;
		pthread_setspecific(key, &locker);
	}).join();

	std::atomic<int> value{0};
	std::thread waiter([&] {
		arrive();
		value.wait(0);
		std::puts("atomic wait over");
	});
	let_block();
	value = 1;
	value.notify_all();
	waiter.join();

	std::counting_semaphore<4> semaphore{0};
	std::latch latch{2};
	std::thread taker([&] {
		arrive();
		semaphore.acquire();
		latch.arrive_and_wait();
	});
	let_block();
	semaphore.release();
	latch.arrive_and_wait();
	taker.join();

	std::timed_mutex timed;
	timed.lock();
	std::thread([&] { std::printf("try_lock_for: %d\n", timed.try_lock_for(10ms)); }).join();
	timed.unlock();
	std::shared_timed_mutex shared;
	shared.lock_shared();
	std::thread([&] { std::printf("shared try_lock_for: %d\n", shared.try_lock_for(10ms)); }).join();
	shared.unlock_shared();

	// an exception that crosses only the tracer's start routine of the thread is caught inside it
	std::thread([] {
		try {
			throw std::runtime_error("thread");
		} catch (const std::runtime_error &) {
			std::puts("caught");
		}
	}).join();
	return 0;
}
