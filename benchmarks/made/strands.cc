// SPDX-License-Identifier: MIT
// strands.cc - a pool of Boost.Asio whose handlers want one lock, for ever.
#include <boost/asio.hpp>
#include <boost/thread/mutex.hpp>

static boost::mutex account_lock;
static volatile long account;

__attribute__((noinline)) static void deposit(long amount)
{
	boost::mutex::scoped_lock guard(account_lock);

	for (long i = 0; i < amount; i++)
		account = account + i;
}

static void again(boost::asio::thread_pool &pool)
{
	deposit(2000);
	boost::asio::post(pool, [&pool] { again(pool); });
}

int main()
{
	boost::asio::thread_pool pool(6);

	for (int i = 0; i < 12; i++)
		boost::asio::post(pool, [&pool] { again(pool); });
	pool.join();
}
