/* SPDX-License-Identifier: MIT */
/* ring_stress.c - writers, their signal handlers, short-lived threads and a collector in one process; at the end every event is counted. */
/*
 * ring_stress THREADS GENERATIONS EVENTS CHUNKS
 *
 * Each of THREADS threads has GENERATIONS successors. Each writes EVENTS events of one or more slots, while signal handlers
 * write other events in between. With fewer chunks than threads, the collector has to take chunks back from threads
 * that sleep. At the end the test reads the stream files: every event is there once, in its thread's order, and times never
 * go back.
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
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "collector.h"
#include "session_directory.h"
#include "writer/session.h"
#include "writer/writer.h"

#define ID_ONE (2u << 6 | 3u)  /* any event of one slot */
#define ID_LONG (2u << 6 | 4u) /* any event with continuation slots */
#define ID_WAITED (13u << 6)	/* the ring's own: BUFFER_WAIT */
#define WRITERS_MAX 4096u

static unsigned int threads, generations, events, chunks;
static char session[] = "/tmp/ring-stress-XXXXXX";
static char trace[sizeof(session) + 8];

/* The events of each writer: its own, and the events of its signal handlers. */
static uint64_t written[2][WRITERS_MAX];
static __thread uint64_t self __attribute__((tls_model("initial-exec")));
static __thread uint64_t in_signal __attribute__((tls_model("initial-exec")));
static __thread volatile sig_atomic_t alive __attribute__((tls_model("initial-exec")));
static int writers_left;

static void die(const char *what)
{
	fprintf(stderr, "ring_stress: %s (errno %d)\n", what, errno);
	exit(1);
}

/* object: bit 47 = from a signal handler, bits 32-46 writer, bits 0-31 sequence number */
static uint64_t object_of(uint64_t writer, uint64_t sequence, bool from_signal)
{
	return (uint64_t)from_signal << 47 | writer << 32 | sequence;
}

static void put(uint64_t sequence, bool from_signal)
{
	uint64_t object = object_of(self, sequence, from_signal);
	struct ptt_slot rest[3];
	uint32_t i, more = sequence % 7 == 3 ? 1 + sequence % 3 : 0;

	if (!more) {
		ptt_ring_put1(ptt_ring_self, ID_ONE, object, sequence & 1);
		return;
	}
	for (i = 0; i < more; i++)
		rest[i] = (struct ptt_slot){.w0 = PTT_ID_MORE | (more - 1 - i) << PTT_ID_BITS | sequence << 16, .w1 = object};
	ptt_ring_put_slow(ID_LONG, object, rest, more, false);
}

static void on_signal(int number)
{
	uint64_t i;

	(void)number;
	if (!alive)
		return;
	for (i = 0; i < 3; i++)
		put(in_signal++, true);
}

static void *writer(void *number)
{
	uint64_t i;

	self = (uint64_t)(uintptr_t)number;
	alive = 1;
	for (i = 0; i < events; i++) {
		put(i, false);
		if (i % 512 == 511)
			usleep(100); /* an idle thread, from which a chunk can be taken */
	}
	alive = 0;
	written[0][self] = events;
	written[1][self] = in_signal;
	ptt_ring_thread_end();
	return NULL;
}

/* One line of successors; the running thread gets signals meanwhile. */
static void *dynasty(void *number)
{
	uint64_t generation, first = (uint64_t)(uintptr_t)number * generations;

	for (generation = 0; generation < generations; generation++) {
		pthread_t thread;
		unsigned int i;

		if (pthread_create(&thread, NULL, writer, (void *)(uintptr_t)(first + generation)))
			die("pthread_create");
		for (i = 0; i < 100; i++) {
			pthread_kill(thread, SIGUSR1);
			usleep(50);
		}
		pthread_join(thread, NULL);
	}
	__atomic_fetch_sub(&writers_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ------------------------------------------------------------ reading back */

static uint64_t seen[2][WRITERS_MAX];

static void check_packet(const struct ptt_packet *packet, uint64_t *last_time)
{
	const struct ptt_slot *slot = (const struct ptt_slot *)(packet + 1);
	uint32_t id = 0;
	uint64_t i, count = (packet->content_size / 8 - sizeof(*packet)) / sizeof(*slot);

	for (i = 0; i < count; i++) {
		uint64_t object = slot[i].w1 & PTT_OBJECT_MASK, writer_number = object >> 32 & 0x7fff, time;
		bool from_signal = object >> 47;

		if ((slot[i].w0 & PTT_ID_MASK) == PTT_ID_MORE) {
			if (id != ID_WAITED && (slot[i].w0 >> 16 & 0xffff) != (object & 0xffff))
				die("a torn event");
			continue;
		}
		id = slot[i].w0 & PTT_ID_MASK;
		time = packet->timestamp_begin +
		       (((slot[i].w0 >> PTT_TIME_SHIFT) - packet->timestamp_begin) & PTT_TIME_MASK);
		if (time < *last_time)
			die("a time that goes back");
		*last_time = time;
		if (id == ID_WAITED)
			continue;
		if ((object & 0xffffffff) != seen[from_signal][writer_number]) {
			fprintf(stderr, "writer %u%s: event %u where %llu is next, in packet %llu\n",
				(unsigned int)writer_number, from_signal ? " in a handler" : "",
				(unsigned int)(object & 0xffffffff),
				(unsigned long long)seen[from_signal][writer_number],
				(unsigned long long)packet->packet_seq_num);
			die("an event that is missing, or there twice");
		}
		seen[from_signal][writer_number]++;
	}
}

static void check_stream(const char *path)
{
	uint64_t last_time = 0;
	struct stat st;
	char *data;
	off_t at;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		die("mmap");
	for (at = 0; at < st.st_size; at += (off_t)(((const struct ptt_packet *)(data + at))->packet_size / 8))
		check_packet((const struct ptt_packet *)(data + at), &last_time);
	munmap(data, (size_t)st.st_size);
	close(fd);
	unlink(path);
}

static void check_trace(void)
{
	char path[512];
	struct dirent *entry;
	uint64_t i, total = 0;
	DIR *dir = opendir(trace);

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "stream-", 7) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", trace, entry->d_name);
		check_stream(path);
	}
	if (dir)
		closedir(dir);
	for (i = 0; i < (uint64_t)threads * generations; i++) {
		if (seen[0][i] != written[0][i] || seen[1][i] != written[1][i])
			die("events at the end are missing");
		total += seen[0][i] + seen[1][i];
	}
	printf("%llu events, each once and in order\n", (unsigned long long)total);
}

int main(int argc, char **argv)
{
	struct ptt_collector_options options = {0};
	struct ptt_collector_stats stats = {0};
	struct ptt_collector *collector;
	struct ptt_message message;
	char segment[sizeof(session) + 16];
	pthread_t line[64];
	unsigned int i;

	if (argc != 5)
		return 2;
	threads = (unsigned int)atoi(argv[1]);
	generations = (unsigned int)atoi(argv[2]);
	events = (unsigned int)atoi(argv[3]);
	chunks = (unsigned int)atoi(argv[4]);
	if (!threads || threads > 64 || threads * generations > WRITERS_MAX || !mkdtemp(session))
		return 2;
	snprintf(trace, sizeof(trace), "%s/trace", session);
	snprintf(segment, sizeof(segment), "%s/segment", session);
	mkdir(trace, 0700);
	options.segment = segment;
	options.trace = trace;
	options.chunk_size = 8192;
	options.budget = (uint64_t)chunks * 8192;
	if (ptt_collector_create(&options, &collector, &message)) {
		fprintf(stderr, "%s\n", message.text);
		return 1;
	}
	if (ptt_ring_attach_mapped(collector->segment, session))
		die("attach");
	/* as if a handler entered while its thread is about to */
	if (!ptt_ring_enter_thread() || ptt_ring_enter_thread() != ptt_ring_self)
		die("a thread with two entries");
	signal(SIGUSR1, on_signal);
	writers_left = (int)threads;
	for (i = 0; i < threads; i++)
		pthread_create(&line[i], NULL, dynasty, (void *)(uintptr_t)i);
	while (__atomic_load_n(&writers_left, __ATOMIC_ACQUIRE)) {
		ptt_collector_wait(collector, 2);
		ptt_collector_pass(collector, 0, &stats);
	}
	for (i = 0; i < threads; i++)
		pthread_join(line[i], NULL);
	ptt_ring_detach();
	ptt_collector_process_gone(collector, 0);
	ptt_collector_pass(collector, PTT_PASS_FLUSH, &stats);
	ptt_collector_close(collector);
	ptt_collector_finish(collector, &stats);
	ptt_collector_destroy(collector);
	if (stats.lost_full || stats.lost_closed || stats.lost_threads)
		die("events were lost");
	check_trace();
	rmdir(trace);
	remove_session(session);
	return 0;
}
