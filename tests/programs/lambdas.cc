// SPDX-License-Identifier: MIT
// lambdas.cc - locks taken in lambdas, in a function object and in a template, each by a thread of its own.
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex mutex;

template <class T> struct Store {
	std::mutex lock;
	std::map<std::string, std::vector<T>> data;
	void put(const std::string &key, std::vector<T> values, const std::function<void(const std::string &)> &done)
	{
		lock.lock();
		data[key] = values;
		done(key);
		lock.unlock();
	}
};
struct Job { void operator()(int n) { mutex.lock(); count += n; mutex.unlock(); } int count = 0; };

int main()
{
	Store<std::string> store;

	std::thread([&] { store.put("key", {"a", "b"}, [](const std::string &) {}); }).join();
	std::thread([] { mutex.lock(); mutex.unlock(); }).join();
	std::async(std::launch::async, [] { mutex.lock(); mutex.unlock(); }).wait();
	std::thread(Job(), 1).join();
	return 0;
}
