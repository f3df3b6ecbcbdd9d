/* SPDX-License-Identifier: MIT */
/* signals.c - signal handlers that trace while their thread traces: signals profile|stack|jump */
#include "work.h"

#include <setjmp.h>
#include <sys/time.h>
#include <time.h>

static sem_t posted;
static long handled;
static volatile long jumps;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;

static void on_profile(int number)
{
	int before = errno;

	(void)number;
	sem_post(&posted);
	/* two threads may be inside at the same time */
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	errno = before;
}

static void on_jump(int number)
{
	on_profile(number);
	if (may_jump)
		siglongjmp(back, 1);
}

static void ticks(int us)
{
	struct itimerval t = {.it_interval.tv_usec = us, .it_value.tv_usec = us};

	setitimer(ITIMER_PROF, &t, NULL);
}

/* Semaphores only: a jump out of a mutex operation would corrupt the mutex itself. */
static void jump_often(long wanted)
{
	static sem_t mine;
	volatile long i = 0;

	sem_init(&mine, 0, 1);
	while (jumps < wanted) {
		if (sigsetjmp(back, 1)) {
			jumps++;
			continue;
		}
		may_jump = 1;
		for (;;) {
			sem_post(&mine);
			i++;
			if (i % 1000000 == 0)
				sem_init(&mine, 0, 1);
		}
	}
	may_jump = 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "profile";
	int jump = strcmp(how, "jump") == 0, value;
	struct sigaction action = {.sa_handler = jump ? on_jump : on_profile, .sa_flags = SA_RESTART};
	static char stack[65536];
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct timespec end, now;

	if (strcmp(how, "stack") == 0) {
		sigaltstack(&alternative, NULL);
		action.sa_flags |= SA_ONSTACK;
	}
	sem_init(&posted, 0, 0);
	sigaction(SIGPROF, &action, NULL);
	ticks(100); /* the kernel may send fewer ticks */
	if (jump) {
		jump_often(argc > 2 ? atol(argv[2]) : 300);
	} else {
		clock_gettime(CLOCK_MONOTONIC, &now);
		end = now;
		end.tv_sec++;
		while (now.tv_sec < end.tv_sec || __atomic_load_n(&handled, __ATOMIC_RELAXED) < 20) {
			if (work_together(2, 5000) != 10000)
				puts("lost");
			clock_gettime(CLOCK_MONOTONIC, &now);
		}
	}
	ticks(0);
	sem_getvalue(&posted, &value);
	printf("%s: %s\n", how, value == handled ? "all posted" : "posts lost");
	printf("%ld\n", work_together(3, 1000));
	return 0;
}
