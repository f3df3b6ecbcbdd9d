/* SPDX-License-Identifier: MIT */
/* recover_stress.c - collectors are killed one after the other while threads write; at the end every event is accounted for. */
/*
 * recover_stress THREADS COLLECTORS MILLISECONDS
 *
 * One process writes, with threads that start and end. Each collector is a process that is killed after a random time, and
 * the next collector takes the segment over. Without a collector, events without room are dropped and counted. At the end
 * each event is on disk at most once, in order, and the number of missing events equals the streams' count of lost events.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect.h"
#include "dead_owners.h"
#include "session_directory.h"
#include "writer/writer.h"

#define SKIPPED 77 /* the value in CMakeLists.txt */
#define ID (2u << 6 | 3u)
#define ID_WAITED (13u << 6)
#define WRITERS_MAX 32768u

/* Shared with the writing process. */
struct report {
	uint32_t over; /* tells the writers to end */
	uint32_t writers;
	uint64_t written[WRITERS_MAX];
};

static struct report *report;
static char session[] = "/tmp/recover-stress-XXXXXX";
static char segment[sizeof(session) + 16], trace[sizeof(session) + 16];

static void die(const char *what)
{
	fprintf(stderr, "recover_stress: %s (errno %d)\n", what, errno);
	exit(1);
}

/* ------------------------------------------------------------ writers */

static void *writer(void *unused)
{
	uint32_t self = __atomic_fetch_add(&report->writers, 1, __ATOMIC_RELAXED);
	uint64_t i;

	if (self >= WRITERS_MAX)
		return unused;
	for (i = 0; i < 3000; i++) {
		ptt_ring_put1(ptt_ring_self, ID, (uint64_t)self << 32 | i, 0);
		if (i % 256 == 255)
			usleep(200);
	}
	report->written[self] = i;
	ptt_ring_thread_end();
	return NULL;
}

static void *dynasty(void *unused)
{
	pthread_t thread;

	while (!__atomic_load_n(&report->over, __ATOMIC_ACQUIRE)) {
		if (pthread_create(&thread, NULL, writer, NULL))
			die("pthread_create");
		pthread_join(thread, NULL);
	}
	return unused;
}

static void write_events(int threads)
{
	pthread_t line[64];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no writers stay behind if the test exceeds its time limit */
	if (ptt_ring_attach(session))
		die("attach");
	for (i = 0; i < threads; i++)
		pthread_create(&line[i], NULL, dynasty, NULL);
	for (i = 0; i < threads; i++)
		pthread_join(line[i], NULL);
	ptt_ring_detach();
	_exit(0);
}

/* ------------------------------------------------------------ collectors */

static struct ptt_collector *open_collector(bool fresh)
{
	struct ptt_collector_options options = {
		.segment = segment, .trace = trace, .chunk_size = 8192, .budget = 32 * 8192,
	};
	struct ptt_collector *collector;
	struct ptt_message message;
	int err = fresh ? ptt_collector_create(&options, &collector, &message) :
			  ptt_collector_attach(&options, &collector, &message);

	if (err) {
		fprintf(stderr, "%s\n", message.text);
		exit(1);
	}
	return collector;
}

static pid_t start_collector(bool fresh)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0)
		die("fork");
	if (!pid) {
		struct ptt_collector *collector = open_collector(fresh);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;) {
			ptt_collector_wait(collector, 2);
			ptt_collector_pass(collector, 0, NULL);
		}
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("a collector that does not begin");
	close(ready[0]);
	return pid;
}

/* ------------------------------------------------------------ reading back */

static uint64_t next[WRITERS_MAX], found, lost;

static void check_packet(const struct ptt_packet *packet)
{
	const struct ptt_slot *slot = (const struct ptt_slot *)(packet + 1);
	uint64_t i, count = (packet->content_size / 8 - sizeof(*packet)) / sizeof(*slot);

	for (i = 0; i < count; i++) {
		uint64_t object = slot[i].w1 & PTT_OBJECT_MASK;

		if ((slot[i].w0 & PTT_ID_MASK) != ID)
			continue;
		if (object >> 32 >= WRITERS_MAX || (object & UINT32_MAX) < next[object >> 32])
			die("an event that is there twice, or out of order");
		next[object >> 32] = (object & UINT32_MAX) + 1;
		found++;
	}
}

static void check_stream(const char *path)
{
	const struct ptt_packet *packet = NULL;
	uint64_t discarded = 0;
	struct stat st;
	char *data;
	off_t at;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	data = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	if (data == MAP_FAILED)
		die("mmap");
	for (at = 0; at < st.st_size; at += (off_t)(packet->packet_size / 8)) {
		packet = (const struct ptt_packet *)(data + at);
		if (packet->events_discarded < discarded)
			die("losses that become fewer");
		discarded = packet->events_discarded;
		check_packet(packet);
	}
	lost += discarded;
	if (data)
		munmap(data, (size_t)st.st_size);
	close(fd);
	unlink(path);
}

static void check_trace(void)
{
	uint64_t i, written = 0;
	char path[512];
	struct dirent *entry;
	DIR *dir = opendir(trace);

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "stream-", 7) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", trace, entry->d_name);
		check_stream(path);
	}
	if (dir)
		closedir(dir);
	for (i = 0; i < report->writers && i < WRITERS_MAX; i++)
		written += report->written[i];
	printf("%llu written, %llu on disk, %llu lost\n", (unsigned long long)written, (unsigned long long)found,
	       (unsigned long long)lost);
	if (found + lost != written)
		die("events that nobody has counted");
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4, collectors = argc > 2 ? atoi(argv[2]) : 10;
	unsigned int longest = argc > 3 ? (unsigned int)atoi(argv[3]) : 100, seed = 1;
	struct ptt_collector *collector;
	pid_t writers, pid;
	int i, status;

	if (!dead_owners_are_marked())
		return SKIPPED;
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED || threads > 64 || !mkdtemp(session))
		return 2;
	snprintf(trace, sizeof(trace), "%s/trace", session);
	snprintf(segment, sizeof(segment), "%s/segment", session);
	mkdir(trace, 0700);
	pid = start_collector(true);
	writers = fork();
	if (!writers)
		write_events(threads);
	for (i = 1; i < collectors; i++) {
		usleep(1000 * ((unsigned int)rand_r(&seed) % longest));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		usleep(1000 * ((unsigned int)rand_r(&seed) % 20));
		pid = start_collector(false);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	__atomic_store_n(&report->over, 1, __ATOMIC_RELEASE);
	collector = open_collector(false);
	while (waitpid(writers, &status, WNOHANG) == 0) {
		ptt_collector_wait(collector, 2);
		ptt_collector_pass(collector, 0, NULL);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die("the writers failed");
	ptt_collector_process_gone(collector, 0);
	ptt_collector_pass(collector, PTT_PASS_FLUSH, NULL);
	ptt_collector_close(collector);
	ptt_collector_finish(collector, NULL);
	ptt_collector_destroy(collector);
	check_trace();
	rmdir(trace);
	remove_session(session);
	return 0;
}
