// Every thread routine of C++; the comment of a line names the expected events.
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::condition_variable condition;
static std::once_flag once;
static int waiting;
static bool ready;
static long count;

static void work(int step)
{
	for (int i = 0; i < 50; i++) {
		std::lock_guard<std::mutex> guard(mutex); // MUTEX_TAKEN
		count += step;
	} // MUTEX_FREE
	mutex.lock(); // MUTEX_TAKEN
	mutex.unlock(); // MUTEX_FREE
	{
		std::unique_lock<std::mutex> lock(mutex); // MUTEX_TAKEN
		for (waiting++; !ready;)
			condition.wait(lock); // COND_WAIT_IN
		condition.wait_for(lock, std::chrono::nanoseconds(1), [] { return false; }); // COND_CLOCKWAIT_IN
		lock.unlock(); // MUTEX_FREE
	}
	{
		std::shared_lock<std::shared_mutex> reader(shared); // RWLOCK_TAKEN_READ
		std::scoped_lock both(recursive, timed);	    // MUTEX_TAKEN
		count++;
	} // MUTEX_FREE RWLOCK_FREE
	{
		std::unique_lock<std::shared_mutex> writer(shared); // RWLOCK_TAKEN_WRITE
		count++;
	} // RWLOCK_FREE
	std::call_once(once, [] { count++; }); // ONCE_BEGIN
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back(work, i); // NEW_THREAD_CREATED
	while (!ready) {
		std::lock_guard<std::mutex> guard(mutex); // MUTEX_TAKEN
		ready = waiting == 3;
		if (ready)
			condition.notify_all(); // COND_BROADCAST
	} // MUTEX_FREE
	for (auto &thread : threads)
		thread.join(); // THREAD_JOIN_IN
	auto answer = std::async(std::launch::async, [] { return 42; }); // NEW_THREAD_CREATED
	return answer.get() - 42; // THREAD_JOIN_IN
}
