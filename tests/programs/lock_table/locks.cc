// SPDX-License-Identifier: MIT
// locks.cc - two locks of C++ (std::mutex, -DSEMAPHORE, -DBOOST, -DABSL, -DTBB), used as the argument says.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#if defined(BOOST)
#include <boost/thread/condition_variable.hpp>
#include <boost/thread/mutex.hpp>
#include <boost/thread/thread.hpp>
using lock_type = boost::mutex;
using condition = boost::condition_variable;
using thread = boost::thread;
using scope = boost::unique_lock<boost::mutex>;
#else
#include <condition_variable>
#include <mutex>
#include <thread>
using condition = std::condition_variable;
using thread = std::thread;
using scope = std::unique_lock<std::mutex>;
#if defined(SEMAPHORE)
#include <semaphore>
struct lock_type {
	std::binary_semaphore free{1};

	void lock() { free.acquire(); }
	void unlock() { free.release(); }
};
#elif defined(ABSL)
#include <absl/synchronization/mutex.h>
struct lock_type : absl::Mutex {
	void lock() { Lock(); }
	void unlock() { Unlock(); }
};
/* Abseil would find the deadlock itself, and abort. */
static const auto ignored = (absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore), 0);
#elif defined(TBB)
#include <oneapi/tbb/mutex.h>
using lock_type = tbb::mutex;
#else
using lock_type = std::mutex;
#endif
#endif

static lock_type first, second;
static std::atomic<bool> taken[2];

static void await(const std::atomic<bool> &flag)
{
	while (!flag)
		usleep(100);
}

/* Whether the first thread sleeps, from /proc. On a busy machine a lock may spin for long before. */
static bool first_is_asleep()
{
	std::ifstream file("/proc/self/stat");
	std::string line;

	std::getline(file, line);
	return line.substr(line.rfind(')'), 3) == ") S";
}

/* The time since which the other thread has seen the first thread sleep. */
static std::chrono::steady_clock::time_point asleep_since;

static void hold()
{
	first.lock();
	taken[0] = true;
	await(taken[1]);
	for (int seen = 0; seen < 3; usleep(1000)) {
		seen = first_is_asleep() ? seen + 1 : 0;
		if (seen <= 1)
			asleep_since = std::chrono::steady_clock::now();
	}
	usleep(200000);
	first.unlock();
}

static void contend()
{
	thread other(hold);

	await(taken[0]);
	taken[1] = true;
	first.lock();
	auto ended = std::chrono::steady_clock::now();
	first.unlock();
	other.join();
	std::printf("%lld\n", (long long)std::chrono::nanoseconds(ended - asleep_since).count());
}

static void cross(int own)
{
	(own ? second : first).lock();
	taken[own] = true;
	await(taken[!own]);
	(own ? first : second).lock();
}

static void deadlock()
{
	thread one(cross, 0), other(cross, 1);

	await(taken[0]);
	await(taken[1]);
	ualarm(300000, 0);
	one.join();
	other.join();
}

static void nest(lock_type &outer, lock_type &inner)
{
	outer.lock();
	inner.lock();
	usleep(1000);
	inner.unlock();
	outer.unlock();
}

static void orders()
{
	thread one([] { nest(first, second); taken[0] = true; });
	thread other([] { await(taken[0]); nest(second, first); });

	one.join();
	other.join();
}

static void correct()
{
	thread one([] { nest(first, second); }), other([] { nest(first, second); });

	one.join();
	other.join();
}

#if defined(ABSL)
static absl::Mutex guard;
static absl::CondVar work;
static bool jobs;

static void serve()
{
	absl::MutexLock held(&guard);

	while (!jobs)
		work.Wait(&guard);
}

static void pool()
{
	thread one(serve), other(serve);

	usleep(200000);
	{
		absl::MutexLock held(&guard);
		jobs = true;
		work.SignalAll();
	}
	one.join();
	other.join();
}
#elif !defined(SEMAPHORE)
#if defined(TBB)
static std::mutex guard;
#else
static lock_type guard;
#endif
static condition work;
static bool jobs;

static void serve()
{
	scope held(guard);

	while (!jobs)
		work.wait(held);
}

static void pool()
{
	thread one(serve), other(serve);

	usleep(200000);
	{
		scope held(guard);
		jobs = true;
		work.notify_all();
	}
	one.join();
	other.join();
}
#else
static std::counting_semaphore<> jobs{0};

static void pool()
{
	thread one([] { jobs.acquire(); }), other([] { jobs.acquire(); });

	usleep(200000);
	jobs.release(2);
	one.join();
	other.join();
}
#endif

int main(int count, char **what)
{
	static const struct {
		const char *name;
		void (*run)();
	} all[] = {{"contend", contend}, {"deadlock", deadlock}, {"orders", orders}, {"pool", pool}, {"correct", correct}};

	for (const auto &one : all)
		if (count > 1 && std::strcmp(what[1], one.name) == 0)
			return one.run(), 0;
	return 2;
}
