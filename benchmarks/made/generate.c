/* SPDX-License-Identifier: MIT */
/* generate.c - writes the streams of a made-up program: threads that take, wait for and release locks. */
/*
 * generate DIR UUID EVENTS THREADS LOCKS: each thread takes a lock, holds it, releases it, again and again. In one of
 * eight choices, the lock is one of four hot locks. The events are consistent: a lock has one owner, and waits end with
 * a release.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../native/ring/layout/crc32c.h"
#include "../../native/ring/layout/ptt_abi.h"

#define PACKET (64u * 1024)
#define T0 UINT64_C(1000000000000)
#define SITES 64u

enum { WAIT = 2 << 6 | 2, TAKEN = 2 << 6 | 3, TAKEN_WAITED = 2 << 6 | 4, FREE = 2 << 6 | 5 };
enum state { IDLE, WANTS, WAITS, HOLDS };

struct thread {
	FILE *file;
	uint8_t packet[PACKET];
	uint32_t used, events, number;
	uint64_t begin, end, time, since, sequence, random;
	uint32_t lock, next; /* next in the lock's queue */
	enum state state;
};

struct lock {
	uint32_t owner, first, last; /* thread numbers + 1 */
};

static uint8_t uuid[16];
static uint64_t written;

static void flush(struct thread *t)
{
	struct ptt_packet head = { .magic = 0xC1FC1FC1 };

	if (!t->events)
		return;
	memcpy(head.uuid, uuid, sizeof(uuid));
	head.stream_instance_id = t->number;
	head.timestamp_begin = t->begin;
	head.timestamp_end = t->end;
	head.content_size = head.packet_size = t->used * UINT64_C(8);
	head.packet_seq_num = t->sequence++;
	head.pid = 100;
	head.tid = 101 + t->number;
	head.event_count = t->events;
	memcpy(t->packet, &head, sizeof(head));
	head.crc = ptt_crc32c(0, t->packet, t->used);
	memcpy(t->packet, &head, sizeof(head));
	if (fwrite(t->packet, 1, t->used, t->file) != t->used)
		exit(1);
	t->used = sizeof(head);
	t->events = 0;
}

static void emit(struct thread *t, uint32_t id, const void *fields)
{
	uint64_t slot[4] = { id | (t->time & PTT_TIME_MASK) << PTT_TIME_SHIFT |
				     (uint64_t)(t->number % 2) << PTT_CPU_SHIFT,
			     (0x404000 + t->lock * UINT64_C(64)) |
				     (uint64_t)(1 + (t->lock + t->number) % SITES) << PTT_SITE_SHIFT };

	if (t->used + sizeof(slot) > PACKET)
		flush(t);
	if (!t->events++)
		t->begin = t->time;
	if (fields) {
		memcpy(&slot[2], fields, 16);
		slot[2] = (slot[2] & ~UINT64_C(0xffff)) | 1023;
	}
	memcpy(t->packet + t->used, slot, fields ? 32 : 16);
	t->used += fields ? 32 : 16;
	t->end = t->time;
	written++;
}

/* Nanoseconds of the clock that made.py writes into the metadata: 2.7 GHz. */
static uint64_t ns_of(uint64_t ticks)
{
	return ticks * 10 / 27;
}

static uint32_t random_of(struct thread *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (uint32_t)(t->random >> 16);
}

int main(int argc, char **argv)
{
	uint64_t events = strtoull(argc > 3 ? argv[3] : "0", NULL, 0);
	uint32_t count = argc > 4 ? (uint32_t)atoi(argv[4]) : 1, locks = argc > 5 ? (uint32_t)atoi(argv[5]) : 1;
	struct thread *threads = calloc(count, sizeof(*threads));
	struct lock *lock = calloc(locks, sizeof(*lock));

	if (argc != 6 || !threads || !lock)
		return 2;
	for (int i = 0; i < 16; i++)
		sscanf(argv[2] + 2 * i, "%2hhx", &uuid[i]);
	for (uint32_t i = 0; i < count; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/stream-%05u", argv[1], i);
		threads[i] = (struct thread){ .used = sizeof(struct ptt_packet), .number = i, .time = T0 + i,
					      .random = 88172645463325252u + i * 7919u };
		threads[i].file = fopen(path, "wb");
		if (!threads[i].file)
			return 1;
	}
	while (written < events) {
		struct thread *t = NULL;
		struct lock *l;

		for (uint32_t i = 0; i < count; i++)
			if (threads[i].state != WAITS && (!t || threads[i].time < t->time))
				t = &threads[i];
		if (t->state == IDLE) {
			uint32_t r = random_of(t);

			t->lock = r % 8 ? r / 8 % locks : r / 8 % 4 % locks;
			t->state = WANTS;
			t->time += 20 + r % 64;
			continue;
		}
		l = &lock[t->lock];
		if (t->state == WANTS && l->owner) {
			uint32_t fields[4] = { 0, 100 + l->owner, 0, 0 };

			emit(t, WAIT, fields);
			t->since = t->time;
			t->state = WAITS;
			t->next = 0;
			*(l->first ? &threads[l->last - 1].next : &l->first) = t->number + 1;
			l->last = t->number + 1;
		} else if (t->state == WANTS) {
			emit(t, TAKEN, NULL);
			l->owner = t->number + 1;
			t->state = HOLDS;
			t->time += 30 + random_of(t) % 128;
		} else {
			uint64_t now = t->time;

			emit(t, FREE, NULL);
			t->state = IDLE;
			l->owner = l->first;
			if (l->first) {
				struct thread *w = &threads[l->first - 1];
				uint32_t fields[4] = { 0, 0, 0, 0 };

				l->first = w->next;
				w->time = now + 40;
				fields[2] = (uint32_t)ns_of(w->time - w->since);
				emit(w, TAKEN_WAITED, fields);
				w->state = HOLDS;
				w->time += 30 + random_of(w) % 128;
			}
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		flush(&threads[i]);
		fclose(threads[i].file);
	}
	return 0;
}
