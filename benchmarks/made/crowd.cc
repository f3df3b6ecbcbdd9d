// SPDX-License-Identifier: MIT
// crowd.cc - threads that wait for one another's locks in calls of any depth: recursion, functors, handlers of
// exceptions and of signals on a stack of their own, large frames, and frames that no table describes.
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex locks[3];

[[gnu::noinline]] static void work(int which)
{
	std::lock_guard<std::mutex> guard(locks[which % 3]);
	usleep(300);
}

[[gnu::noinline]] static int deep(int left, int which)
{
	volatile char room[48] = {1};
	if (!left) {
		work(which);
		return room[0];
	}
	return deep(left - 1, which) + room[left % 48];
}

[[gnu::noinline]] static void large(int left, int which)
{
	char *room = static_cast<char *>(alloca(64 + which % 7 * 128));
	room[0] = 1;
	deep(left, which + room[0]);
	asm volatile("" ::"r"(room) : "memory");
}

[[gnu::noinline]] static int thrown(int which)
{
	try {
		throw std::runtime_error("expected");
	} catch (const std::exception &) {
		deep(which % 9, which);
	}
	return which;
}

static void in_signal(int)
{
	deep(4, getpid());
}

// A frame that saves its registers in ways that compilers do not use.
extern "C" void through(void (*next)(int), int which);
asm(R"(
	.text
	.globl through
	.type through, @function
through:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movq %rsp, %rbx
	.cfi_def_cfa_register %rbx
	subq $512, %rsp
	andq $-64, %rsp
	movq %rdi, %rax
	movl %esi, %edi
	call *%rax
	movq %rbx, %rsp
	.cfi_def_cfa_register %rsp
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size through, .-through
)");

static void by_assembly(int which)
{
	deep(which % 5, which);
}

static void run(int thread)
{
	std::vector<char> room(1 << 16);
	stack_t own = {};
	own.ss_sp = room.data();
	own.ss_size = room.size();
	sigaltstack(&own, nullptr);
	for (unsigned i = thread;; i++) {
		std::function<void()> call;
		switch (i % 5) {
		case 0: call = [i] { deep(i % 23, i); }; break;
		case 1: call = [i] { large(i % 11, i); }; break;
		case 2: call = [i] { thrown(i); }; break;
		case 3: call = [] { raise(SIGUSR1); }; break;
		default: call = [i] { through(by_assembly, i); };
		}
		call();
	}
}

int main()
{
	struct sigaction action = {};
	action.sa_handler = in_signal;
	action.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGUSR1, &action, nullptr);
	std::vector<std::thread> threads;
	for (int i = 0; i < 6; i++)
		threads.emplace_back(run, i);
	for (auto &thread : threads)
		thread.join();
}
