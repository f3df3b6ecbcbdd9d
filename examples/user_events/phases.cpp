/* SPDX-License-Identifier: MIT */
/*
 * phases.cpp - a C++ program that marks the phases of its work in the trace.
 *
 *     c++ -pthread -o phases phases.cpp
 *     ptt record -o run.ptt -- ./phases && ptt view run.ptt
 *
 * It links to nothing of the tracer. Run without one, the calls do nothing.
 */
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <nptl_trace.h>

namespace {

/* Marks the begin and the end of a phase, also if an exception ends the phase. */
class Phase {
public:
	explicit Phase(std::string name) : name_(std::move(name))
	{
		nptl_trace_say(("begin " + name_).c_str());
	}
	~Phase()
	{
		nptl_trace_say(("end " + name_).c_str());
	}
	Phase(const Phase &) = delete;
	Phase &operator=(const Phase &) = delete;

private:
	std::string name_;
};

} // namespace

int main()
{
	std::vector<long> sums(4);
	{
		Phase phase("sums");
		std::vector<std::thread> threads;
		for (std::size_t i = 0; i < sums.size(); i++)
			threads.emplace_back([&sums, i] {
				Phase part("part " + std::to_string(i));
				for (long n = 0; n < 1000; n++)
					sums[i] += n;
			});
		for (auto &thread : threads)
			thread.join();
	}
	Phase phase("total");
	std::cout << std::accumulate(sums.begin(), sums.end(), 0L) << "\n";
}
