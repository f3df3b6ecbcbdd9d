/* SPDX-License-Identifier: MIT */
/* black_box.c - a black box keeps the newest events of every thread without a gap, whatever handlers, ends and forks do. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "writer/session.h"
#include "writer/writer.h"

#define ID (2u << 6 | 3u) /* any event of one slot */
#define EVENTS 20000u
#define MEMORY (UINT64_C(1) << 20)
#define THREADS 6u
#define SHORT_LIVES 600u
#define TOO_MANY 80u

static atomic_uint forks, ready;
static atomic_bool go;
static _Thread_local unsigned int inside;

static void die(const char *what)
{
	fprintf(stderr, "black_box: %s (errno %d)\n", what, errno);
	exit(1);
}

static void put(uint64_t object)
{
	ptt_ring_put1(ptt_ring_self, ID, object, false);
}

/* A stack slot and a continuation slot follow. */
static void put_long(uint64_t object)
{
	const struct ptt_slot rest[2] = {{.w0 = PTT_ID_MORE, .w1 = 7}, {.w0 = PTT_ID_STACK, .w1 = 3}};

	ptt_ring_put_slow(ID, object, rest, 2, false);
}

static void on_alarm(int number)
{
	(void)number;
	for (int i = 0; i < 20; i++)
		put(1);
	/* a fork between any two instructions of a writer, which goes on in the child */
	if (!inside && atomic_fetch_add(&forks, 1) < 4) {
		pid_t child = fork();

		if (child == 0) {
			inside = 1;
			if (ptt_ring_fork_child(true))
				_exit(4);
			put(2);
			_exit(ptt_ring_self->tid != (uint32_t)getpid() || !ptt_session.segment->box);
		}
		if (child > 0) {
			int status;

			while (waitpid(child, &status, 0) < 0 && errno == EINTR)
				;
			if (status)
				_exit(5);
		}
	}
}

static void *write_much(void *unused)
{
	for (uint32_t i = 0; i < EVENTS; i++) {
		if (i % 7)
			put(i);
		else
			put_long(i);
	}
	ptt_ring_thread_end();
	return unused;
}

static void *write_little(void *unused)
{
	put(1);
	ptt_ring_thread_end();
	return unused;
}

static void *stay(void *unused)
{
	put(1);
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&go))
		usleep(1000);
	put(2);
	ptt_ring_thread_end();
	return unused;
}

static void run(void *(*begin)(void *), uint32_t count)
{
	pthread_t thread[TOO_MANY];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 262144);
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&thread[i], &attr, begin, NULL))
			die("pthread_create");
	if (begin == stay) {
		while (atomic_load(&ready) < count)
			usleep(1000);
		atomic_store(&go, true);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

static struct ptt_chunk *chunk_at(struct ptt_segment *seg, uint32_t index)
{
	return (struct ptt_chunk *)((char *)seg + seg->chunk_offset + (uint64_t)index * seg->chunk_size);
}

/* Every chunk in use has its events in order, without a hole, and is a chunk of an entry. Return: number of these chunks. */
static uint32_t check_chunks(struct ptt_segment *seg)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < seg->chunks_there; i++) {
		uint32_t state = ptt_chunk_states(seg)[i];
		const struct ptt_chunk *chunk = chunk_at(seg, i);
		const struct ptt_slot *slot = (const struct ptt_slot *)((const char *)chunk + PTT_CHUNK_HEAD);
		uint64_t last = 0;

		if (state == PTT_CHUNK_FREE)
			continue;
		used++;
		if (PTT_CHUNK_STATUS(state) < PTT_CHUNK_OWNED || PTT_CHUNK_THREAD(state) >= seg->thread_high)
			die("a chunk has no owner");
		for (uint32_t n = 0; n < (seg->chunk_size - PTT_CHUNK_HEAD) / PTT_SLOT_SIZE; n++) {
			uint64_t w0 = slot[n].w0, time = w0 >> PTT_TIME_SHIFT & PTT_TIME_MASK;

			if (!w0 && PTT_CHUNK_STATUS(state) == PTT_CHUNK_OWNED)
				break;
			if (!w0)
				die("a full chunk has a hole");
			if ((w0 & PTT_ID_MASK) == PTT_ID_END)
				break;
			if ((w0 & PTT_ID_MASK) == ID && time < last)
				die("events are not in order");
			if ((w0 & PTT_ID_MASK) == ID)
				last = time;
		}
	}
	return used;
}

/* The newest chunks of every entry follow one another. */
static void check_serials(struct ptt_segment *seg)
{
	for (uint32_t entry = 0; entry < seg->thread_high; entry++) {
		const struct ptt_thread *self = &ptt_threads(seg)[entry];
		uint64_t newest = 0, before = 0;

		for (uint32_t i = 0; i < seg->chunks_there; i++) {
			uint64_t serial = chunk_at(seg, i)->serial + 1;

			if (ptt_chunk_states(seg)[i] == PTT_CHUNK_FREE || PTT_CHUNK_THREAD(ptt_chunk_states(seg)[i]) != entry)
				continue;
			before = serial > newest ? newest : serial > before ? serial : before;
			newest = serial > newest ? serial : newest;
		}
		if (self->lost_full || self->lost_closed)
			die("events are lost");
		if (newest && newest != self->chunks)
			die("the newest chunk is gone");
		if (before && before + 1 != newest)
			die("there is a gap");
	}
}

int main(void)
{
	const struct ptt_box_size size = {.memory = MEMORY, .events = PTT_BOX_EVENTS};
	const struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
	struct ptt_segment *seg;

	if (ptt_ring_begin_box(PTT_BOX_NAME, &size))
		die("no black box");
	seg = ptt_session.segment;
	if (seg->chunk_count != MEMORY / PTT_CHUNK_SIZE_MIN || seg->thread_count != seg->chunk_count / 2)
		die("the box has another size");
	put(0);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	run(write_much, THREADS);
	setitimer(ITIMER_REAL, &never, NULL);
	/* a handler that took a chunk in between may have left another */
	if (check_chunks(seg) > 3 * (THREADS + 1))
		die("the threads took too many chunks");
	check_serials(seg);
	for (uint32_t i = 0; i < SHORT_LIVES; i += THREADS)
		run(write_little, THREADS);
	check_chunks(seg);
	check_serials(seg);
	if (seg->thread_high > seg->thread_count || ptt_session.process->lost_threads)
		die("threads that ended keep their entries");
	run(stay, TOO_MANY);
	if (!ptt_session.process->lost_threads)
		die("threads without an entry are not counted");
	check_chunks(seg);
	run(write_little, THREADS);
	return 0;
}
