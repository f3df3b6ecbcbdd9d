/* SPDX-License-Identifier: MIT */
/* once_again.cc - a call_once that throws is called again, and a cancelled pthread_once too. */
#include "corpus.h"
#include <mutex>
#include <stdexcept>
#include <thread>

static std::once_flag flag;
static int tries;

int main()
{
	for (int i = 0; i < 3; i++)
		std::thread([] {
			try {
				std::call_once(flag, [] {
					if (++tries < 3)
						throw std::runtime_error("not yet");
				});
			} catch (const std::exception &) {
			}
		}).join();
	return tries != 3;
}
