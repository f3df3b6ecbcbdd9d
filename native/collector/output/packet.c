/* SPDX-License-Identifier: MIT */
/* packet.c - puts runs of slots together to CTF packets without a copy, and frees the chunks once they are on disk. */
#include "../collector.h"

#include <string.h>

#include "layout/crc32c.h"

void packet_begin(struct ptt_collector *c, uint32_t thread)
{
	struct packet *p = c->packet;

	memset(&p->head, 0, sizeof(p->head));
	p->head.magic = PTT_CTF_MAGIC;
	memcpy(p->head.uuid, c->head.uuid, sizeof(p->head.uuid));
	p->head.stream_id = PTT_STREAM_SLOTS;
	p->head.stream_instance_id = thread;
	p->piece[0] = (struct iovec){&p->head, sizeof(p->head)};
	p->pieces = 1;
	p->size = sizeof(p->head);
	p->crc = 0;
	p->done_count = 0;
	p->marks = 0;
}

/* Does a run of @chunk fit into the current packet? @last: time of its last event */
static bool fits(const struct ptt_collector *c, const struct ptt_chunk *chunk, const struct run *run, uint64_t last)
{
	const struct packet *p = c->packet;
	const struct ptt_packet *head = &p->head;

	return p->size + (run->end - run->begin) <= c->packet_max && p->pieces < PACKET_PIECES_MAX &&
	       p->marks < PACKET_PIECES_MAX && head->pid == chunk->pid && head->tid == chunk->tid &&
	       head->process == chunk->process && (last - head->timestamp_begin) >> PTT_TIME_BITS == 0;
}

void packet_add(struct ptt_collector *c, uint32_t thread, uint32_t index, const struct run *run)
{
	const struct ptt_chunk *chunk = chunk_at(c, index);
	struct packet *p = c->packet;
	struct ptt_packet *head = &p->head;
	const char *data = (const char *)chunk + run->begin;
	uint32_t size = run->end - run->begin;
	uint64_t first, last;

	run_times(chunk, run, &first, &last);
	if (p->pieces > 1 && !fits(c, chunk, run, last)) {
		packet_write(c, thread);
		packet_begin(c, thread);
	}
	if (p->pieces == 1) {
		head->timestamp_begin = first;
		head->pid = chunk->pid;
		head->tid = chunk->tid;
		head->process = chunk->process;
	}
	/* run_scan() has just read the slots: they are in the cache. */
	p->crc = ptt_crc32c(p->crc, data, size);
	p->piece[p->pieces++] = (struct iovec){(void *)data, size};
	p->size += size;
	head->event_count += run->events;
	head->timestamp_end = last;
	head->chunk_serial = chunk->serial;
	head->chunk_end = run->end;
	p->mark[p->marks].chunk = index;
	p->mark[p->marks++].drained = run->end;
}

void packet_chunk_done(struct ptt_collector *c, uint32_t thread, uint32_t index, uint32_t dirty_end)
{
	struct packet *p = c->packet;

	if (p->done_count == PACKET_PIECES_MAX) {
		packet_write(c, thread);
		packet_begin(c, thread);
	}
	p->done[p->done_count].chunk = index;
	p->done[p->done_count++].dirty_end = dirty_end;
	if (p->head.event_count && p->head.chunk_serial == chunk_at(c, index)->serial)
		p->head.chunk_end = c->head.chunk_size;
}

/* The serial of the packet's thread among the threads of this stream. */
static uint64_t thread_serial(struct ptt_collector *c, uint32_t thread)
{
	const struct ptt_packet *head = &c->packet->head;
	const struct stream *s = &c->stream[thread];

	if (c->head.policy == PTT_POLICY_FLUSH)
		return c->thread[thread].serial;
	/* In the other policies, other threads got the entries long before the chunks were read. */
	if (!s->tid || (head->pid == s->pid && head->tid == s->tid && head->process == s->process))
		return s->thread_serial;
	return s->thread_serial + 1;
}

/* The number of lost events of a stream. */
static uint64_t lost_so_far(const struct ptt_collector *c, uint32_t thread)
{
	const struct ptt_thread *t = &c->thread[thread];

	/* relaxed: counts, which order nothing; the next packet reports later losses */
	return c->stream[thread].discarded_base + __atomic_load_n(&t->lost_full, __ATOMIC_RELAXED) +
	       __atomic_load_n(&t->lost_closed, __ATOMIC_RELAXED);
}

/* Write a sealed packet, in the coding of the stream files, and count its bytes. Return: 0 or -errno. */
static int write_packet(struct ptt_collector *c, uint32_t index, struct iovec *pieces, uint32_t count, uint32_t size, uint32_t events)
{
	int err;

	if (c->coding)
		size = code_packet(c, &pieces, &count, size);
	err = stream_write(c, index, pieces, count, size, events);
	if (!err)
		c->stats.bytes += size;
	return err;
}

/*
 * packet_open_stream - begin a stream with an empty packet, if its first packet, c->packet, reports lost events
 *
 * A reader computes losses from the difference to the previous packet. So an empty packet without a loss comes first.
 * Return: 0 or -errno.
 */
int packet_open_stream(struct ptt_collector *c, uint32_t index)
{
	struct ptt_packet head = c->packet->head;
	struct iovec piece = {&head, sizeof(head)};
	int err;

	head.content_size = head.packet_size = sizeof(head) * 8;
	head.timestamp_end = head.timestamp_begin;
	head.events_discarded = head.discarded_before = 0;
	head.packet_seq_num = 0;
	head.event_count = head.chunk_end = 0;
	head.chunk_serial = 0;
	head.crc = 0;
	head.crc = ptt_crc32c(0, &head, sizeof(head));
	err = write_packet(c, index, &piece, 1, sizeof(head), 0);
	if (err)
		return err;
	c->stats.packets++;
	c->stream[index].sequence = 1;
	/* if the disk is full, a later packet with the count of lost events follows this packet */
	c->stream[index].time_end = head.timestamp_end;
	return 0;
}

static void seal(struct ptt_collector *c, uint32_t thread)
{
	struct packet *p = c->packet;
	struct ptt_packet *head = &p->head;
	const struct stream *s = &c->stream[thread];

	head->content_size = head->packet_size = (uint64_t)p->size * 8;
	head->events_discarded = lost_so_far(c, thread);
	head->discarded_before = s->discarded_base;
	head->packet_seq_num = s->sequence;
	head->thread_serial = thread_serial(c, thread);
	head->crc = 0;
	head->crc = ptt_crc32c_join(ptt_crc32c(0, head, sizeof(*head)), p->crc, p->size - sizeof(*head));
}

/* The packet is on disk or lost: mark its slots as drained, and free its chunks. */
static void settle(struct ptt_collector *c, uint32_t thread)
{
	const struct packet *p = c->packet;
	uint32_t i;

	for (i = 0; i < p->marks; i++) {
		struct chunk_note *note = &c->note[p->mark[i].chunk];

		note->serial = chunk_at(c, p->mark[i].chunk)->serial;
		note->drained = p->mark[i].drained;
	}
	for (i = 0; i < p->done_count; i++)
		chunk_free(c, p->done[i].chunk, p->done[i].dirty_end);
	if (p->head.event_count) {
		c->stream[thread].chunk_serial = p->head.chunk_serial;
		c->stream[thread].chunk_end = p->head.chunk_end;
	}
}

static void count(struct ptt_collector *c, uint32_t thread)
{
	const struct ptt_packet *head = &c->packet->head;
	struct stream *s = &c->stream[thread];

	if (head->event_count && (!s->tid || s->thread_serial != head->thread_serial))
		c->stats.threads++;
	c->stats.events += head->event_count;
	c->stats.packets++;
	s->sequence++;
	s->discarded = head->events_discarded;
	s->time_end = head->timestamp_end;
	if (head->event_count) {
		s->thread_serial = head->thread_serial;
		s->pid = head->pid;
		s->tid = head->tid;
		s->process = head->process;
	}
}

void packet_store(struct ptt_collector *c, uint32_t thread, int err)
{
	struct packet *p = c->packet;

	if (!err)
		err = write_packet(c, thread, p->piece, p->pieces, p->size, p->head.event_count);
	if (err) {
		/* The program goes on. These events are lost, and the next packet on disk reports their number. */
		c->stats.write_error = -err;
		c->stats.lost_write += p->head.event_count;
		c->stream[thread].discarded_base += p->head.event_count;
	} else {
		count(c, thread);
	}
}

static void put_on_disk(struct ptt_collector *c, uint32_t thread)
{
	int err = 0;

	hold_beat(c);
	if (!c->stream[thread].sequence && lost_so_far(c, thread)) {
		c->packet->head.thread_serial = thread_serial(c, thread);
		err = packet_open_stream(c, thread);
	}
	seal(c, thread);
	packet_store(c, thread, err);
}

void packet_write(struct ptt_collector *c, uint32_t thread)
{
	if (c->packet->pieces > 1)
		put_on_disk(c, thread);
	settle(c, thread);
}

void packet_write_losses(struct ptt_collector *c, uint32_t thread)
{
	const struct stream *s = &c->stream[thread];
	const struct ptt_thread *t = &c->thread[thread];
	struct ptt_packet *head = &c->packet->head;

	if (lost_so_far(c, thread) == s->discarded)
		return;
	packet_begin(c, thread);
	head->pid = t->pid;
	head->tid = t->tid;
	head->process = t->process;
	head->timestamp_begin = head->timestamp_end = s->sequence ? s->time_end : c->head.start_clock;
	head->chunk_serial = s->chunk_serial;
	head->chunk_end = s->chunk_end;
	put_on_disk(c, thread);
}
