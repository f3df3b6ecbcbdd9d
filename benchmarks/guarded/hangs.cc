// SPDX-License-Identifier: MIT
/*
 * Programs that hang, one for each argument; the head of hangs.c explains the comments.
 *
 * case locks: deadlock
 * case self: self-deadlock
 * case notified: stuck
 * case promise: stuck
 * case upgrade: stuck|self-deadlock
 * case latch: stuck
 * case semaphore: stuck
 * case statics: deadlock
 * case joined: deadlock
 * case atomic: stuck
 * case flags: deadlock
 * case executor: stuck
 */
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::mutex accounts, journal;
std::shared_mutex catalogue;
std::condition_variable filled;
std::latch both(2), never(2);
std::counting_semaphore<8> slots(0);
std::atomic<int> state;
std::once_flag opened, closed;

void transfer()
{
	std::lock_guard first(accounts);
	both.arrive_and_wait();
	std::lock_guard second(journal); // hangs: locks journal
}

void audit()
{
	std::lock_guard first(journal);
	both.arrive_and_wait();
	std::lock_guard second(accounts); // hangs: locks accounts
}

void locks()
{
	std::jthread one(transfer), two(audit);
}

void report()
{
	std::lock_guard again(accounts); // hangs: self accounts
}

void self()
{
	std::lock_guard once(accounts);
	report();
}

/* The notification comes before the wait, and the waiting thread does not look at the flag. */
void notified()
{
	std::jthread([] { filled.notify_one(); }).join();
	std::unique_lock lock(journal);
	filled.wait(lock); // hangs: notified filled
}

void promise()
{
	std::promise<int> answer;
	auto question = answer.get_future();
	std::jthread asks([&] {
		question.get(); // hangs: promise
	});
}

void upgrade()
{
	std::shared_lock reads(catalogue);
	std::unique_lock writes(catalogue); // hangs: upgrade catalogue
}

void latch()
{
	std::jthread one([] {
		never.arrive_and_wait(); // hangs: latch never
	});
}

void semaphore()
{
	std::vector<std::jthread> takers;
	for (int n = 0; n < 3; n++)
		takers.emplace_back([] {
			slots.acquire(); // hangs: semaphore slots
		});
}

struct Fonts {
	Fonts();
};
struct Themes {
	Themes();
};

Fonts &fonts()
{
	static Fonts only; // hangs: statics
	return only;
}

Themes &themes()
{
	static Themes only; // hangs: statics
	return only;
}

Fonts::Fonts()
{
	both.arrive_and_wait();
	themes();
}

Themes::Themes()
{
	both.arrive_and_wait();
	fonts();
}

void statics()
{
	std::jthread one([] { fonts(); }), two([] { themes(); });
}

/* The thread joins a thread that needs the lock of the joining thread. */
void joined()
{
	std::unique_lock lock(accounts);
	std::thread other([] {
		std::lock_guard again(accounts); // hangs: joined accounts
	});
	other.join(); // hangs: joined
}

void atomic()
{
	std::jthread waits([] {
		state.wait(0); // hangs: atomic
	});
}

void flags()
{
	std::jthread one([] {
		std::call_once(opened, [] {
			both.arrive_and_wait();
			std::call_once(closed, [] {}); // hangs: flags closed
		});
	});
	std::jthread two([] {
		std::call_once(closed, [] {
			both.arrive_and_wait();
			std::call_once(opened, [] {}); // hangs: flags opened
		});
	});
}

class Executor {
public:
	explicit Executor(int count)
	{
		for (int n = 0; n < count; n++)
			workers_.emplace_back([this] { work(); });
	}

	std::future<int> submit(std::function<int()> job)
	{
		std::packaged_task<int()> task(std::move(job));
		auto result = task.get_future();
		std::lock_guard lock(lock_);
		queue_.push_back(std::move(task));
		some_.notify_one();
		return result;
	}

private:
	void work()
	{
		for (;;) {
			std::unique_lock lock(lock_);
			some_.wait(lock, [this] { return !queue_.empty(); });
			auto task = std::move(queue_.front());
			queue_.pop_front();
			lock.unlock();
			task();
		}
	}

	std::mutex lock_;
	std::condition_variable some_;
	std::deque<std::packaged_task<int()>> queue_;
	std::vector<std::jthread> workers_;
};

/* Each job waits for a job behind it in the queue of the same executor. */
void executor()
{
	Executor pool(2);
	std::vector<std::future<int>> results;
	for (int n = 0; n < 2; n++)
		results.push_back(pool.submit([&pool] {
			both.arrive_and_wait();
			auto inner = pool.submit([] { return 1; });
			return inner.get(); // hangs: executor
		}));
	for (auto &result : results)
		result.get(); // hangs: executor
}

const std::map<std::string, void (*)()> CASES = {
	{"locks", locks},	  {"self", self},	{"notified", notified}, {"promise", promise},
	{"upgrade", upgrade},	  {"latch", latch},	{"semaphore", semaphore},
	{"statics", statics},	  {"joined", joined},	{"atomic", atomic},	{"flags", flags},
	{"executor", executor},
};

} // namespace

int main(int count, char **arguments)
{
	auto found = CASES.find(count > 1 ? arguments[1] : "");
	if (found == CASES.end())
		return 2;
	found->second();
	return 0;
}
