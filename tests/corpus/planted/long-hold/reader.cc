/* SPDX-License-Identifier: MIT */
/* reader.cc - a reader keeps a table while it writes its report, and a writer waits. */
/* expect: long-hold threads=reader objects=table */
/* options: --long-hold 150ms */
#include "corpus.h"
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex table;
static int held;

int main()
{
	OBJECT(table);
	std::thread reader([] {
		i_am("reader");
		std::shared_lock<std::shared_mutex> look(table);
		arrive(&held);
		nap_ms(300);
	});
	await(&held, 1);
	{
		std::unique_lock<std::shared_mutex> change(table);
	}
	reader.join();
}
