/* SPDX-License-Identifier: MIT */
/* main.c - runs the cases of one routine, in every manner, and prints a line for each case. */
#include "case.h"
#include "world.h"

extern const struct test_case *const __start_cases[];
extern const struct test_case *const __stop_cases[];

#define KEPT 777 /* errno before each case; no function returns it */

static pthread_mutex_t *volatile watched;
static volatile int signals_seen;

pthread_mutex_t *watch(pthread_mutex_t *mutex)
{
	return watched = mutex;
}

static const char *name_of(int error)
{
	const char *name = error == KEPT ? "kept" : strerrorname_np(error);

	return name ? name : "?";
}

static void print_result(const struct test_case *c, long result, int error)
{
	printf("%s, %s: %ld", c->routine, c->text, result);
	if (result > 0 && result < 200 && strncmp(c->routine, "pthread_", 8) == 0)
		printf(" (%s)", name_of((int)result));
	printf(", errno %s\n", name_of(error));
}

/* ------------------------------------------------------------ threads that are cancelled or signalled */

struct run {
	const struct test_case *c;
	volatile bool began, ended;
	pid_t tid;
	long result;
	int error;
	int cleaned, was_held;
};

static void clean_up(void *arg)
{
	struct run *run = arg;

	run->cleaned = 1;
	if (watched && pthread_mutex_unlock(watched) == 0)
		run->was_held = 1;
}

static void *run_case(void *arg)
{
	struct run *run = arg;

	pthread_cleanup_push(clean_up, run);
	if (run->c->how == PENDING)
		pthread_cancel(pthread_self());
	run->tid = gettid();
	run->began = true;
	errno = KEPT;
	run->result = run->c->run();
	run->error = errno;
	pthread_cleanup_pop(0);
	run->ended = true;
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	signals_seen++;
}

static void disturb(const struct run *run, pthread_t thread)
{
	int i;

	while (!run->began)
		nap(1);
	while (!run->ended && !blocks(thread, run->tid))
		nap(1);
	if (run->c->how == CANCELLED)
		pthread_cancel(thread);
	/* one signal is enough for a routine that gives up */
	for (i = 0; run->c->how == SIGNALLED && i < 6 && !run->ended; i++) {
		pthread_kill(thread, SIGUSR1);
		nap(5);
	}
	nap(5);
	let_go();
}

static void run_in_thread(const struct test_case *c)
{
	struct run run = {.c = c};
	pthread_t thread;
	void *value;

	if (pthread_create(&thread, NULL, run_case, &run)) {
		puts("no thread");
		return;
	}
	if (c->how != PENDING)
		disturb(&run, thread);
	pthread_join(thread, &value);
	if (value != PTHREAD_CANCELED)
		print_result(c, run.result, run.error);
	else
		printf("%s, %s: cancelled, cleaned up %d, mutex held %d\n", c->routine, c->text, run.cleaned,
		       run.was_held);
}

static void run_one(const struct test_case *c)
{
	long result;

	watched = NULL;
	if (c->how == IN_MAIN) {
		errno = KEPT;
		result = c->run();
		print_result(c, result, errno);
	} else {
		run_in_thread(c);
	}
	let_go();
	forget();
}

/* ------------------------------------------------------------ the order of cases */

/* The routine's first case after a line; the compiler puts the cases into the section in any order. */
static const struct test_case *next_case(const char *routine, int line)
{
	const struct test_case *found = NULL;
	const struct test_case *const *c;

	for (c = __start_cases; c < __stop_cases; c++)
		if (strcmp((*c)->routine, routine) == 0 && (*c)->line > line && (!found || (*c)->line < found->line))
			found = *c;
	return found;
}

static void list(void)
{
	const struct test_case *const *c;

	for (c = __start_cases; c < __stop_cases; c++)
		if (*c == next_case((*c)->routine, 0))
			puts((*c)->routine);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
	const struct test_case *c;
	int found = 0;

	if (argc != 2) {
		list();
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &action, NULL);
	alarm(240);
	for (c = next_case(argv[1], 0); c; c = next_case(argv[1], c->line)) {
		run_one(c);
		found++;
	}
	return found ? 0 : 2;
}
