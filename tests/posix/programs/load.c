/* SPDX-License-Identifier: MIT */
/* load.c - the three roles under load, each a process: many writers, a controller with a log, and an analyzer of the log. */
/*
 *     load writers PROCESSES THREADS EVENTS   prints its process id; a line of input lets it begin; at the end prints
 *                                             how much was written; EVENTS = 0: another line lets it end
 *     load controller PID LOG                 prints "tracing"; the end of its input shuts down; prints the losses
 *     load analyzer LOG                       for each line of input, reads the log and prints its content
 *
 * Every event has its thread, its number, and bytes whose count and values follow from the number.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <trace.h>
#include <unistd.h>

#define THREADS_MAX 64
#define DATA_MAX 48

struct number {
	uint32_t thread;
	uint32_t length; /* of all of it */
	uint64_t n;
	unsigned char rest[DATA_MAX - 16];
};

static void must(const char *what, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", what, strerror(error));
		exit(EXIT_FAILURE);
	}
}

static void fill(struct number *number, uint32_t thread, uint64_t n)
{
	uint32_t i, rest = (uint32_t)(n % (sizeof(number->rest) + 1));

	*number = (struct number){.thread = thread, .length = 16 + rest, .n = n};
	for (i = 0; i < rest; i++)
		number->rest[i] = (unsigned char)(n * 31 + thread * 7 + i);
}

/* ------------------------------------------------------------ writers */

static trace_event_id_t type;
static uint64_t events;
static pthread_barrier_t together;

/* Shared by all processes. */
static struct {
	int enough;
	uint64_t written[THREADS_MAX];
} *shared;

static bool goes_on(uint64_t n)
{
	if (events)
		return n < events;
	if (n % 16 == 0) /* the test may take long, and the disk must hold the log */
		usleep(1000);
	return !__atomic_load_n(&shared->enough, __ATOMIC_RELAXED);
}

static void *write_numbers(void *index)
{
	uint32_t thread = (uint32_t)(uintptr_t)index;
	struct number number;
	uint64_t n;

	pthread_barrier_wait(&together);
	for (n = 0; goes_on(n); n++) {
		fill(&number, thread, n);
		posix_trace_event(type, &number, number.length);
		shared->written[thread] = n + 1;
	}
	return NULL;
}

static void *wait_for_enough(void *unused)
{
	getchar();
	__atomic_store_n(&shared->enough, 1, __ATOMIC_RELAXED);
	return unused;
}

static void write_in_threads(unsigned int first, unsigned int threads)
{
	pthread_t ids[THREADS_MAX];
	unsigned int i;

	pthread_barrier_init(&together, NULL, threads);
	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, write_numbers, (void *)(uintptr_t)(first + i)))
			abort();
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

/* The first process is traced, the others are its children. */
static int be_writers(char **args)
{
	unsigned int processes = (unsigned int)atoi(args[0]), threads = (unsigned int)atoi(args[1]), i;
	int status, failed = 0;
	pthread_t listener;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	events = strtoull(args[2], NULL, 10);
	must("open", posix_trace_eventid_open("number", &type));
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return EXIT_FAILURE;
	for (i = 1; i < processes; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			write_in_threads(i * threads, threads);
			_exit(0);
		}
		printf("%d ", (int)pid);
	}
	printf("begin\n");
	fflush(stdout);
	if (!events)
		pthread_create(&listener, NULL, wait_for_enough, NULL);
	write_in_threads(0, threads);
	while (wait(&status) > 0)
		failed += status != 0;
	printf("done, %d killed:", failed);
	for (i = 0; i < processes * threads; i++)
		printf(" %llu", (unsigned long long)shared->written[i]);
	puts("");
	return EXIT_SUCCESS;
}

/* ------------------------------------------------------------ controller */

static int be_controller(char **args)
{
	struct posix_trace_status_info status;
	trace_attr_t attributes;
	trace_id_t stream;
	size_t one;
	int log = open(args[1], O_WRONLY | O_CREAT, 0600);

	must("init", posix_trace_attr_init(&attributes));
	must("inherited", posix_trace_attr_setinherited(&attributes, POSIX_TRACE_INHERITED));
	must("data", posix_trace_attr_setmaxdatasize(&attributes, DATA_MAX));
	must("size", posix_trace_attr_getmaxusereventsize(&attributes, DATA_MAX, &one));
	must("stream", posix_trace_attr_setstreamsize(&attributes, 4000 * one));
	must("log", posix_trace_attr_setlogfullpolicy(&attributes, POSIX_TRACE_APPEND));
	must("create", posix_trace_create_withlog((pid_t)atoi(args[0]), &attributes, log, &stream));
	must("start", posix_trace_start(stream));
	puts("tracing");
	fflush(stdout);
	while (getchar() != EOF)
		;
	must("status", posix_trace_get_status(stream, &status));
	must("shutdown", posix_trace_shutdown(stream));
	printf("overrun %d, flush error %d\n", status.posix_stream_overrun_status == POSIX_TRACE_OVERRUN,
	       status.posix_stream_flush_error);
	return EXIT_SUCCESS;
}

/* ------------------------------------------------------------ analyzer */

struct seen {
	uint64_t count;
	pid_t pid;
	pthread_t thread;
};

static unsigned long check(struct seen *seen, const struct posix_trace_event_info *info, const struct number *number,
			   size_t length)
{
	struct seen *s;
	struct number expected;

	if (length < 16 || number->thread >= THREADS_MAX)
		return 1;
	s = &seen[number->thread];
	fill(&expected, number->thread, s->count);
	if (!s->count) {
		s->pid = info->posix_pid;
		s->thread = info->posix_thread_id;
	}
	s->count++;
	return length != expected.length || memcmp(number, &expected, length) || s->pid != info->posix_pid ||
	       !pthread_equal(s->thread, info->posix_thread_id);
}

/* Prints the number of events of each thread, and the number of events that are not the expected next event. */
static void analyze(const char *path)
{
	struct seen seen[THREADS_MAX] = {{0}};
	struct posix_trace_event_info info;
	unsigned long wrong = 0, overflows = 0;
	char name[TRACE_EVENT_NAME_MAX + 1];
	int file = open(path, O_RDONLY), at_end = 0, error, i;
	struct number number;
	size_t length;
	trace_id_t log;

	error = posix_trace_open(file, &log);
	if (error) {
		printf("%s\n", strerror(error));
		close(file);
		return;
	}
	for (;;) {
		must("read", posix_trace_getnext_event(log, &info, &number, sizeof(number), &length, &at_end));
		if (at_end)
			break;
		must("name", posix_trace_eventid_get_name(log, info.posix_event_id, name));
		if (strcmp(name, "number") == 0)
			wrong += check(seen, &info, &number, length);
		overflows += info.posix_event_id == POSIX_TRACE_OVERFLOW;
	}
	printf("wrong %lu, overflows %lu:", wrong, overflows);
	for (i = 0; i < THREADS_MAX; i++)
		if (seen[i].count)
			printf(" %d:%d=%llu", (int)seen[i].pid, i, (unsigned long long)seen[i].count);
	puts("");
	must("close", posix_trace_close(log));
	close(file);
}

static int be_analyzer(char **args)
{
	while (getchar() != EOF) {
		analyze(args[0]);
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "writers") == 0)
		return be_writers(argv + 2);
	if (argc == 4 && strcmp(argv[1], "controller") == 0)
		return be_controller(argv + 2);
	if (argc == 3 && strcmp(argv[1], "analyzer") == 0)
		return be_analyzer(argv + 2);
	return 2;
}
