/* SPDX-License-Identifier: MIT */
/* switches.c - context switches as events: finds the process image and thread of each record, and writes it to a stream. */
/*
 * Records of different processors come in any order, and threads move between processors. So the collector keeps a record until no
 * older record can come, and writes records in the order of time. A stream belongs to a thread until the kernel reports the end
 * of the thread, and then to the next thread that needs a stream.
 */
#include "sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "layout/crc32c.h"
#include "nptl_trace_events.h"

#define EVENT(number) ((uint32_t)NPTL_DOMAIN_HANDLER << 6 | (number))

/* A record is in its ring buffer at most so long after its time. */
#define SETTLES_NS UINT64_C(2000000)
#define STREAM_SLOTS 256u
#define TID_PAGES 4096u /* pages of TID_PAGE ids: the largest id of the kernel is 2^22 */
#define TID_PAGE 1024u
/* A rate over this time is exact to a nanosecond between two passes. */
#define RATE_NS UINT64_C(1000000000)

/* A number for each kernel thread id or process id; 0 = no number. */
struct numbers {
	uint32_t *page[TID_PAGES];
};

struct image {
	uint64_t start; /* ticks */
	uint32_t image;
	uint32_t before; /* 1 + index of the previous image with this pid; 0 = no previous image */
};

/* A stream of context switches of a thread. */
struct switches {
	uint32_t tid; /* 0 = the stream is free */
	uint32_t pid;
	uint32_t image;
	uint32_t count;
	uint64_t begin; /* ticks of the first and the last slot */
	uint64_t end;
	uint64_t sequence;
	uint64_t serial;
	uint64_t discarded;
	uint64_t file_size;
	uint32_t next_free; /* 1 + index */
	struct ptt_slot *slot;
};

struct sched {
	struct sched_rings rings;
	struct sched_records records;
	struct numbers thread_of; /* 1 + index of the stream, by tid */
	struct numbers image_of;  /* 1 + index of the last image, by pid */
	struct image *image;
	uint32_t image_count;
	size_t image_room;
	uint32_t *noted; /* 1 + image, by process entry */
	struct switches *stream;
	uint32_t stream_count;
	size_t stream_room;
	uint32_t free; /* 1 + index of the first free stream; 0 = no free stream */
	uint64_t lost; /* lost events that no packet reports yet */
	struct ptt_collector_time base, middle, now;
	double rate; /* ticks a nanosecond */
};

/* ------------------------------------------------------------------ numbers */

static uint32_t number_get(const struct numbers *n, uint32_t id)
{
	const uint32_t *page = id / TID_PAGE < TID_PAGES ? n->page[id / TID_PAGE] : NULL;

	return page ? page[id % TID_PAGE] : 0;
}

static bool number_set(struct numbers *n, uint32_t id, uint32_t number)
{
	uint32_t **page = id / TID_PAGE < TID_PAGES ? &n->page[id / TID_PAGE] : NULL;

	if (page && !*page)
		*page = calloc(TID_PAGE, sizeof(**page));
	if (!page || !*page)
		return false;
	(*page)[id % TID_PAGE] = number;
	return true;
}

static void numbers_free(struct numbers *n)
{
	for (uint32_t i = 0; i < TID_PAGES; i++)
		free(n->page[i]);
}

/* ------------------------------------------------------------------ images */

static bool note_image(struct sched *s, const struct ptt_process *p)
{
	struct image *image = with_room(s->image, s->image_count, &s->image_room, sizeof(*image));

	if (!image)
		return false;
	s->image = image;
	s->image[s->image_count] =
		(struct image){.start = p->start, .image = p->image, .before = number_get(&s->image_of, p->pid)};
	return number_set(&s->image_of, p->pid, ++s->image_count);
}

/* Skip processes in other PID namespaces: the kernel does not record the ids that they know. */
static void note_images(struct ptt_collector *c, struct sched *s)
{
	for (uint32_t i = 0; i < process_high(c); i++) {
		/* acquire: pairs with the release of LIVE after the entry was filled in */
		uint32_t state = __atomic_load_n(&c->process[i].state, __ATOMIC_ACQUIRE);
		const struct ptt_process *p = &c->process[i];

		if (state >= PTT_PROCESS_LIVE && s->noted[i] != p->image + 1 &&
		    (p->pid_namespace == c->pid_namespace || !p->pid_namespace) && note_image(s, p))
			s->noted[i] = p->image + 1;
	}
}

static uint32_t image_at(const struct sched *s, uint32_t pid, uint64_t time)
{
	uint32_t at = number_get(&s->image_of, pid);

	while (at && s->image[at - 1].start > time)
		at = s->image[at - 1].before;
	return at ? s->image[at - 1].image : PTT_NO_IMAGE;
}

/* ------------------------------------------------------------------ streams */

/* Append a packet to the file of stream @number. Return: 0 or -errno. */
static int append(struct ptt_collector *c, struct switches *t, uint32_t number, struct iovec *piece, int pieces, size_t size)
{
	char name[32];
	ssize_t n;
	int fd, err = 0;

	snprintf(name, sizeof(name), "stream-sched-%05u", number);
	fd = openat(c->trace_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0)
		return -errno;
	n = writev(fd, piece, pieces);
	if (n != (ssize_t)size) {
		err = n < 0 ? -errno : -ENOSPC;
		/* Leave no torn packet. If that fails too, readers drop the packet by its CRC. */
		if (ftruncate(fd, (off_t)t->file_size) < 0)
			err = -errno;
	} else {
		t->file_size += size;
	}
	close(fd);
	return err;
}

static void write_packet(struct ptt_collector *c, struct sched *s, struct switches *t)
{
	uint32_t number = (uint32_t)(t - s->stream), size = t->count * PTT_SLOT_SIZE;
	struct ptt_packet head = {
		.magic = PTT_CTF_MAGIC, .stream_id = PTT_STREAM_SLOTS,
		/* larger than all streams of threads */
		.stream_instance_id = (uint64_t)c->head.thread_count + number,
		.timestamp_begin = t->begin, .timestamp_end = t->end, .pid = t->pid, .tid = t->tid, .process = t->image,
		.packet_seq_num = t->sequence, .event_count = t->count, .thread_serial = t->serial,
		.discarded_before = t->discarded,
	};
	struct iovec piece[2] = {{&head, sizeof(head)}, {t->slot, size}};
	int err;

	head.events_discarded = t->discarded + s->lost;
	head.content_size = head.packet_size = (sizeof(head) + size) * 8;
	memcpy(head.uuid, c->head.uuid, sizeof(head.uuid));
	head.crc = ptt_crc32c(ptt_crc32c(0, &head, sizeof(head)), t->slot, size);
	err = append(c, t, number, piece, 2, sizeof(head) + size);
	if (err) {
		c->stats.write_error = -err;
		c->stats.lost_write += t->count;
		s->lost += t->count;
	} else {
		c->stats.events += t->count;
		c->stats.packets++;
		c->stats.bytes += sizeof(head) + size;
		t->sequence++;
		t->discarded += s->lost;
		s->lost = 0;
	}
	t->count = 0;
}

static void put(struct ptt_collector *c, struct sched *s, struct switches *t, uint64_t time, uint32_t id, uint32_t cpu)
{
	if (time < t->end)
		time = t->end;
	if (t->count && (t->count == STREAM_SLOTS || (time - t->begin) >> PTT_TIME_BITS))
		write_packet(c, s, t);
	if (!t->count)
		t->begin = time;
	t->end = time;
	t->slot[t->count++] = (struct ptt_slot){.w0 = PTT_SLOT_W0(id, cpu, time)};
}

static struct switches *new_stream(struct sched *s)
{
	struct switches *stream, *t;

	if (s->free) {
		t = &s->stream[s->free - 1];
		s->free = t->next_free;
		return t;
	}
	stream = with_room(s->stream, s->stream_count, &s->stream_room, sizeof(*stream));
	if (!stream)
		return NULL;
	s->stream = stream;
	t = &s->stream[s->stream_count];
	*t = (struct switches){.slot = malloc(STREAM_SLOTS * sizeof(*t->slot))};
	if (!t->slot)
		return NULL;
	s->stream_count++;
	return t;
}

static void free_stream(struct ptt_collector *c, struct sched *s, struct switches *t)
{
	if (t->count)
		write_packet(c, s, t);
	number_set(&s->thread_of, t->tid, 0);
	t->tid = 0;
	t->next_free = s->free;
	s->free = (uint32_t)(t - s->stream) + 1;
}

/* The stream of a thread. If its process has executed another program, the stream begins a new packet. NULL without memory. */
static struct switches *stream_of(struct ptt_collector *c, struct sched *s, const struct sched_record *r, uint32_t image)
{
	uint32_t at = number_get(&s->thread_of, r->tid);
	struct switches *t = at ? &s->stream[at - 1] : new_stream(s);

	if (!t || (t->tid && t->image == image))
		return t;
	if (!t->tid && !number_set(&s->thread_of, r->tid, (uint32_t)(t - s->stream) + 1))
		return NULL;
	if (t->count)
		write_packet(c, s, t);
	t->tid = r->tid;
	t->pid = r->pid;
	t->image = image;
	t->serial++;
	return t;
}

/* ------------------------------------------------------------------ records */

static void keep_time(struct ptt_collector *c, struct sched *s)
{
	ptt_collector_read_clock(c->head.clock, &s->now);
	if (s->now.monotonic_ns - s->middle.monotonic_ns >= RATE_NS) {
		s->base = s->middle;
		s->middle = s->now;
	}
	s->rate = (double)(s->now.clock - s->base.clock) / (double)(s->now.monotonic_ns - s->base.monotonic_ns);
}

static uint64_t ticks_of(const struct sched *s, uint64_t time)
{
	if (s->now.kind == PTT_CLOCK_MONOTONIC)
		return time;
	return s->now.clock + (uint64_t)(int64_t)((double)(int64_t)(time - s->now.monotonic_ns) * s->rate);
}

/* Records were lost: tell every stream, because any thread may have switched. */
static void take_loss(struct ptt_collector *c, struct sched *s, uint64_t time, uint64_t count)
{
	s->lost += count;
	c->stats.lost_full += count;
	for (uint32_t i = 0; i < s->stream_count; i++)
		if (s->stream[i].tid)
			put(c, s, &s->stream[i], time, EVENT(NPTL_EV_SCHED_LOST), PTT_CPU_NONE);
}

static void take(struct ptt_collector *c, struct sched *s, const struct sched_record *r)
{
	static const uint32_t ids[] = {
		[SCHED_IS_IN] = EVENT(NPTL_EV_SCHED_IN),
		[SCHED_IS_OUT] = EVENT(NPTL_EV_SCHED_OUT),
		[SCHED_IS_PREEMPTED] = EVENT(NPTL_EV_SCHED_PREEMPTED),
	};
	uint64_t time = ticks_of(s, r->time);
	struct switches *t;
	uint32_t image;

	if (r->kind == SCHED_IS_LOST) {
		take_loss(c, s, time, r->tid);
	} else if (r->kind == SCHED_IS_EXIT) {
		if (number_get(&s->thread_of, r->tid))
			free_stream(c, s, &s->stream[number_get(&s->thread_of, r->tid) - 1]);
	} else {
		image = image_at(s, r->pid, time);
		t = image == PTT_NO_IMAGE ? NULL : stream_of(c, s, r, image);
		if (t)
			put(c, s, t, time, ids[r->kind], r->cpu);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct sched_record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void sched_read(struct ptt_collector *c)
{
	struct sched *s = c->sched;
	uint64_t missed = rings_read(&s->rings, &s->records);

	if (missed)
		take_loss(c, s, ticks_of(s, ptt_clock_monotonic_ns()), missed);
}

void sched_pass(struct ptt_collector *c, bool everything)
{
	struct sched *s = c->sched;
	uint64_t until = c->final ? UINT64_MAX : ptt_clock_monotonic_ns() - SETTLES_NS;
	size_t n = 0;

	sched_read(c);
	note_images(c, s);
	keep_time(c, s);
	if (s->records.count)
		qsort(s->records.item, s->records.count, sizeof(*s->records.item), by_time);
	while (n < s->records.count && s->records.item[n].time <= until)
		take(c, s, &s->records.item[n++]);
	s->records.count -= n;
	if (n)
		memmove(s->records.item, s->records.item + n, s->records.count * sizeof(*s->records.item));
	for (uint32_t i = 0; everything && i < s->stream_count; i++)
		if (s->stream[i].count)
			write_packet(c, s, &s->stream[i]);
}

/* ------------------------------------------------------------------ life */

int ptt_collector_sched(struct ptt_collector *c, uint32_t pid, struct ptt_message *message)
{
	struct sched *s;
	int err;

	if (c->shared || c->sched)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return fail(message, -ENOMEM, "cannot record context switches");
	s->noted = calloc(c->head.process_count, sizeof(*s->noted));
	err = s->noted ? rings_open(&s->rings, (pid_t)pid) : -ENOMEM;
	if (err) {
		free(s->noted);
		free(s);
		return fail(message, err, "cannot record context switches");
	}
	ptt_collector_read_clock(c->head.clock, &s->base);
	s->middle = s->base;
	c->sched = s;
	return 0;
}

void sched_end(struct ptt_collector *c)
{
	struct sched *s = c->sched;

	if (!s)
		return;
	rings_close(&s->rings);
	for (uint32_t i = 0; i < s->stream_count; i++)
		free(s->stream[i].slot);
	numbers_free(&s->thread_of);
	numbers_free(&s->image_of);
	free(s->records.item);
	free(s->stream);
	free(s->image);
	free(s->noted);
	free(s);
	c->sched = NULL;
}
