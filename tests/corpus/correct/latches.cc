/* SPDX-License-Identifier: MIT */
/* latches.cc - latch, barrier, semaphore and atomic wait of C++20, which have no owners. */
#include "corpus.h"
#include <atomic>
#include <barrier>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

static std::latch started(4);
static std::barrier<> round_end(4);
static std::counting_semaphore<2> slots(2);
static std::atomic<int> turn{0};
static std::mutex lock;

static void run(int me)
{
	started.arrive_and_wait();
	for (int i = 0; i < 10; i++) {
		slots.acquire();
		{
			std::lock_guard<std::mutex> guard(lock);
		}
		slots.release();
		round_end.arrive_and_wait();
	}
	for (int now = turn; now != me; now = turn)
		turn.wait(now);
	turn = me + 1;
	turn.notify_all();
}

int main()
{
	std::vector<std::jthread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(run, i);
	std::jthread stopped([](std::stop_token stop) {
		while (!stop.stop_requested())
			nap_ms(1);
	});
}
