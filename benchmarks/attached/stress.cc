// SPDX-License-Identifier: MIT
// stress.cc - makes work that is hard on an attaching tracer: libraries, children, exceptions, jumps, cancellation, signals.
// Each kind of work has a counter. If a counter stops, or a result is wrong, the program ends.
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

enum { LOADS, FORKS, THROWS, JUMPS, CANCELS, SIGNALS, LEAVES, WAITS, KINDS };
const char *const names[KINDS] = {"loads", "forks", "throws", "jumps", "cancels", "signals", "leaves", "waits"};
std::atomic<long> counts[KINDS];
std::mutex mutex;
std::condition_variable never;
pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
pthread_t leaver;
sigjmp_buf place;
volatile sig_atomic_t asleep;

[[noreturn]] void wrong(const char *what)
{
	fprintf(stderr, "stress: %s (errno %d)\n", what, errno);
	abort();
}

void *loads(void *)
{
	for (;; counts[LOADS]++, usleep(500)) {
		void *library = dlopen("./plugin.so", RTLD_LAZY);
		auto function = library ? reinterpret_cast<int (*)()>(dlsym(library, "plugin")) : nullptr;

		if (!function || function() != 1)
			wrong("the library does not work");
		dlclose(library);
	}
}

void *forks(void *)
{
	for (;; counts[FORKS]++, usleep(3000)) {
		int status;
		pid_t child = fork();

		if (child < 0)
			wrong("fork");
		if (!child) {
			pthread_mutex_lock(&own);
			pthread_mutex_unlock(&own);
			free(malloc(1000));
			_exit(7);
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
			wrong("a child");
	}
}

void *throws(void *)
{
	for (;; usleep(300)) {
		try {
			std::lock_guard<std::mutex> guard(mutex);
			throw std::runtime_error("");
		} catch (const std::exception &) {
			counts[THROWS]++;
		}
	}
}

void *jumps(void *)
{
	for (;; counts[JUMPS]++, usleep(300)) {
		static jmp_buf here;

		if (!setjmp(here)) {
			pthread_mutex_lock(&shared);
			pthread_mutex_unlock(&shared);
			longjmp(here, 1);
		}
	}
}

void unlock(void *it)
{
	pthread_mutex_unlock(static_cast<pthread_mutex_t *>(it));
}

void *waits_for_ever(void *)
{
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&shared);
	pthread_cleanup_push(unlock, &shared);
	for (;;)
		pthread_cond_wait(&condition, &shared);
	pthread_cleanup_pop(1);
	return nullptr;
}

void *polls_for_ever(void *)
{
	for (;;)
		poll(nullptr, 0, -1);
}

void *cancels(void *)
{
	for (;; counts[CANCELS]++) {
		pthread_t threads[2];

		pthread_create(&threads[0], nullptr, waits_for_ever, nullptr);
		pthread_create(&threads[1], nullptr, polls_for_ever, nullptr);
		usleep(2000);
		for (pthread_t thread : threads) {
			void *result;

			pthread_cancel(thread);
			if (pthread_join(thread, &result) || result != PTHREAD_CANCELED)
				wrong("a thread that is cancelled");
		}
	}
}

void take(int)
{
	counts[SIGNALS]++;
}

void leave(int)
{
	if (asleep) {
		asleep = 0;
		siglongjmp(place, 1);
	}
}

void *leaves(void *)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
	for (;; counts[LEAVES]++)
		if (!sigsetjmp(place, 1)) {
			asleep = 1;
			poll(nullptr, 0, -1);
		}
}

void *signals(void *)
{
	for (;; usleep(700)) {
		kill(getpid(), SIGUSR1);
		pthread_kill(leaver, SIGUSR2);
	}
}

void *waits(void *)
{
	struct epoll_event event;
	sigset_t all;
	int fd = epoll_create1(0);

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, nullptr);
	for (;; counts[WAITS]++)
		if (epoll_wait(fd, &event, 1, 50) != 0)
			wrong("epoll_wait was cut short");
}

void *waits_for_nobody(void *)
{
	std::unique_lock<std::mutex> lock(mutex);

	for (;;)
		never.wait(lock);
}

} // namespace

int main()
{
	void *(*const routines[])(void *) = {loads, forks, throws, jumps, cancels, waits, waits_for_nobody};
	long before[KINDS] = {};
	pthread_t thread;
	sigset_t set;

	signal(SIGUSR1, take);
	signal(SIGUSR2, leave);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	for (auto routine : routines)
		pthread_create(&thread, nullptr, routine, nullptr);
	pthread_create(&leaver, nullptr, leaves, nullptr);
	pthread_create(&thread, nullptr, signals, nullptr);
	puts("ready");
	fflush(stdout);
	for (;;) {
		timespec left = {30, 0};

		while (nanosleep(&left, &left) && errno == EINTR)
			;
		for (int i = 0; i < KINDS; i++) {
			if (counts[i] == before[i])
				wrong(names[i]);
			before[i] = counts[i];
		}
	}
}
