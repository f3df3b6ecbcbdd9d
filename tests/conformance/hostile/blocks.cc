// SPDX-License-Identifier: MIT
// blocks.cc - Threading Building Blocks: parallel loops, a pipeline of tasks, concurrent containers.
#include <tbb/concurrent_hash_map.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstdio>
#include <mutex>

int main()
{
	tbb::concurrent_hash_map<int, int> map;
	std::atomic<long> count{0};
	std::mutex mutex;
	long locked = 0;
	tbb::task_group group;

	tbb::parallel_for(0, 2000, [&](int i) {
		tbb::concurrent_hash_map<int, int>::accessor a;

		map.insert(a, i % 100);
		a->second++;
		count++;
	});
	for (int i = 0; i < 50; i++)
		group.run([&] {
			std::lock_guard<std::mutex> held(mutex);
			locked++;
		});
	group.wait();
	std::printf("%ld %zu %ld\n", count.load(), map.size(), locked);
	return 0;
}
