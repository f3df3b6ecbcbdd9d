/* SPDX-License-Identifier: MIT */
/* drain_shared.c - one buffer for all threads: the write-and-read mechanism, the reading process Pr. */
/*
 * native/handlers/shared.c explains the writers' side, and why the mechanism is correct. A pass here is one round of Pr:
 *
 *     if `reserved` has reached the middle (or a writer waits for room, or the caller wants everything)
 *         PAUSE = 1
 *         wait until written == reserved
 *         end_read = written
 *         PAUSE = 0
 *         write the words between beg_read and end_read to disk, and zero them
 *         beg_read = end_read
 *
 * The last two steps run packet by packet, so room comes back early. A word is zero until a writer stores it: if a writer died,
 * the zeros show where it stopped.
 *
 * chunk_serial of a packet is the place behind its last word in the buffer. A recorder that takes over continues there.
 */
#include "drain_shared.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layout/crc32c.h"
#include "nptl_trace_events.h"
#include "record/record.h"

/* A writer takes much less than a microsecond. A writer that is so late has lost its processor, or is dead. */
#define LOOK_NS UINT64_C(2000000)
/*
 * A writer may hold up all other writers at most for this time, or for AT_LAST_NS if it only waits for a processor.
 */
#define GIVE_UP_NS UINT64_C(2000000000)
#define AT_LAST_NS UINT64_C(30000000000)
#define SPIN_NS UINT64_C(20000)

static uint32_t *word_at(const struct shared_drain *d, uint64_t at)
{
	return d->array + (at & (d->head.size - 1));
}

/* ------------------------------------------------------------ waiting for writers */

static void be_patient(uint64_t waited_ns)
{
	static const struct timespec nap = {.tv_nsec = 50000}, rest = {.tv_nsec = 20000000};

	if (waited_ns < SPIN_NS)
		sched_yield();
	else
		nanosleep(waited_ns < GIVE_UP_NS ? &nap : &rest, NULL);
}

static bool is_too_late(struct ptt_collector *c, uint64_t waited_ns)
{
	if (waited_ns <= LOOK_NS)
		return false;
	if (!shared_any_writer_lives(c) || waited_ns > AT_LAST_NS)
		return true;
	return waited_ns > GIVE_UP_NS && !shared_any_writer_runs(c);
}

/* Make written equal to reserved, because the missing writers are dead. Return: false if a writer came after all. */
static bool give_up(struct ptt_collector *c, uint64_t written, uint64_t reserved)
{
	struct ptt_shared *shared = c->shared->shared;

	/* release, and before the swap: a writer that sees our change of written sees given_up */
	__atomic_store_n(&shared->given_up, reserved, __ATOMIC_RELEASE);
	if (!__atomic_compare_exchange_n(&shared->written, &written, reserved, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	c->shared->given_up_words += reserved - written;
	return true;
}

/* PAUSE = 1, wait until written == reserved, PAUSE = 0. Return: end_read. */
static uint64_t pause_and_wait(struct ptt_collector *c)
{
	struct ptt_shared *shared = c->shared->shared;
	uint64_t began = ptt_clock_monotonic_ns(), waited = 0, written, reserved;

	__atomic_store_n(&shared->pause, 1, __ATOMIC_SEQ_CST);
	for (;; waited = ptt_clock_monotonic_ns() - began) {
		/* in this order: see the head of native/handlers/shared.c */
		written = __atomic_load_n(&shared->written, __ATOMIC_SEQ_CST);
		reserved = __atomic_load_n(&shared->reserved, __ATOMIC_SEQ_CST);
		if (written == reserved)
			break;
		if (is_too_late(c, waited)) {
			uint64_t before = reserved;

			/* no writer has reserved since the look at the writers: all missing writers are dead */
			written = __atomic_load_n(&shared->written, __ATOMIC_SEQ_CST);
			reserved = __atomic_load_n(&shared->reserved, __ATOMIC_SEQ_CST);
			if (written == reserved || (reserved == before && give_up(c, written, reserved)))
				break;
		}
		hold_beat(c);
		be_patient(waited);
	}
	/* release: pairs with the writers' acquire load of pause */
	__atomic_store_n(&shared->pause, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shared->pause, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return reserved;
}

/* ------------------------------------------------------------ packets */

static void begin(struct ptt_collector *c)
{
	packet_begin(c, 0);
	c->packet->head.stream_id = PTT_STREAM_RECORDS;
	c->packet->head.process = UINT32_MAX;
}

static void add(struct ptt_collector *c, const uint32_t *record, uint32_t words)
{
	struct packet *p = c->packet;
	struct iovec *last = &p->piece[p->pieces - 1];
	uint64_t time = ptt_record_get64(record + 1);

	if (p->pieces == 1)
		p->head.timestamp_begin = time;
	p->head.timestamp_end = time;
	p->head.event_count++;
	p->size += words * 4;
	if (p->pieces > 1 && (char *)last->iov_base + last->iov_len == (const char *)record)
		last->iov_len += words * 4;
	else
		p->piece[p->pieces++] = (struct iovec){(void *)record, words * 4};
	shared_note_thread(c, record[3], record[4]);
}

/* The number of lost events since the beginning of the recording. */
static uint64_t discarded(const struct ptt_collector *c)
{
	const struct ptt_shared *shared = c->shared->shared;

	return c->stream[0].discarded_base + __atomic_load_n(&shared->lost_full, __ATOMIC_RELAXED) +
	       __atomic_load_n(&shared->lost_closed, __ATOMIC_RELAXED);
}

static void seal(struct ptt_collector *c, uint64_t end)
{
	static const uint8_t padding[PTT_SLOT_SIZE];
	struct packet *p = c->packet;
	struct ptt_packet *head = &p->head;
	struct stream *s = &c->stream[0];
	uint32_t more = -p->size % PTT_SLOT_SIZE;

	head->content_size = (uint64_t)p->size * 8;
	if (more)
		p->piece[p->pieces++] = (struct iovec){(void *)padding, more};
	p->size += more;
	head->packet_size = (uint64_t)p->size * 8;
	head->events_discarded = discarded(c);
	head->discarded_before = s->discarded_base;
	head->packet_seq_num = s->sequence;
	head->chunk_serial = end;
	for (uint32_t i = 1; i < p->pieces; i++)
		p->crc = ptt_crc32c(p->crc, p->piece[i].iov_base, p->piece[i].iov_len);
	head->crc = ptt_crc32c_join(ptt_crc32c(0, head, sizeof(*head)), p->crc, p->size - sizeof(*head));
}

static void put_on_disk(struct ptt_collector *c, uint64_t end)
{
	struct packet *p = c->packet;
	struct stream *s = &c->stream[0];
	int err = 0;

	hold_beat(c);
	if (!p->head.event_count)
		p->head.timestamp_begin = p->head.timestamp_end =
			s->sequence ? s->time_end : c->head.start_clock;
	if (!s->sequence && discarded(c))
		err = packet_open_stream(c, 0);
	seal(c, end);
	packet_store(c, 0, err);
}

/* ------------------------------------------------------------ reading */

/* Note that there is no valid record at @at. Return: words to skip. */
static uint64_t skip(struct ptt_collector *c, uint64_t at, uint64_t end, enum ptt_record_state state, uint32_t length)
{
	const uint32_t *word = word_at(c->shared, at);
	struct ptt_collector_fault fault = {.word = at, .words = length, .kind = PTT_FAULT_UNFINISHED, .pid = word[3]};

	if (state != PTT_RECORD_HOLE)
		fault.words = ptt_record_resync(word, end - at, c->stream[0].time_end);
	if (state == PTT_RECORD_DAMAGED || state == PTT_RECORD_NONSENSE || state == PTT_RECORD_GOOD)
		fault.kind = PTT_FAULT_DAMAGED;
	if (state == PTT_RECORD_EMPTY)
		fault.pid = 0;
	c->stream[0].discarded_base++;
	shared_note_fault(c, &fault);
	return fault.words;
}

/* Put records from @at on into a packet until it is large enough. Return: the place behind them. */
static uint64_t gather(struct ptt_collector *c, uint64_t at, uint64_t end)
{
	struct packet *p = c->packet;
	uint64_t last = c->stream[0].time_end;

	begin(c);
	while (at < end && p->size < PACKET_SIZE_MAX - PTT_RECORD_WORDS_MAX * 4 - PTT_SLOT_SIZE &&
	       p->pieces < PACKET_PIECES_MAX - 1) {
		const uint32_t *record = word_at(c->shared, at);
		enum ptt_record_state state;
		uint32_t length = 0;

		state = ptt_record_look(record, end - at, &length);
		/* a valid record that is older than the previous record has overwritten another record */
		if (state != PTT_RECORD_GOOD || ptt_record_get64(record + 1) < last) {
			at += skip(c, at, end, state, length);
			continue;
		}
		add(c, record, length);
		last = p->head.timestamp_end;
		at += length;
	}
	return at;
}

/* The words are on disk or lost: zero them, give them back, and wake the threads that wait for room. */
static void give_back(struct ptt_collector *c, uint64_t from, uint64_t to)
{
	struct ptt_shared *shared = c->shared->shared;

	memset(word_at(c->shared, from), 0, (size_t)(to - from) * 4);
	/* release: a writer's acquire load of beg_read sees the words zeroed */
	__atomic_store_n(&shared->beg_read, to, __ATOMIC_RELEASE);
	wake_writers(c, UINT32_MAX);
}

static bool worth_it(const struct ptt_collector *c, uint64_t used, uint32_t flags)
{
	if (!used)
		return false;
	/* relaxed: only a hint; a thread that begins to wait now rings the bell */
	return used >= c->shared->head.size / 2 || flags & PTT_PASS_FLUSH || c->final ||
	       __atomic_load_n(&c->segment->waiters, __ATOMIC_RELAXED);
}

static void sum_up(struct ptt_collector *c)
{
	const struct ptt_shared *shared = c->shared->shared;

	/* relaxed: counts, which order nothing */
	c->stats.lost_full = __atomic_load_n(&shared->lost_full, __ATOMIC_RELAXED);
	c->stats.lost_closed = __atomic_load_n(&shared->lost_closed, __ATOMIC_RELAXED);
	c->stats.lost_stalled = __atomic_load_n(&shared->lost_stalled, __ATOMIC_RELAXED);
	c->stats.wait_ns = __atomic_load_n(&shared->wait_ns, __ATOMIC_RELAXED);
	c->stats.threads = c->shared->thread_count;
}

void shared_pass(struct ptt_collector *c, uint32_t flags)
{
	struct ptt_shared *shared = c->shared->shared;
	uint64_t beg_read = shared->beg_read;
	/* relaxed: only decides whether to read; pause_and_wait() finds the whole records */
	uint64_t used = __atomic_load_n(&shared->reserved, __ATOMIC_RELAXED) - beg_read;

	if (worth_it(c, used, flags)) {
		uint64_t end_read = pause_and_wait(c), size = c->shared->head.size;

		/* at most the size of the array: a wild store may have changed the counts in shared memory */
		if (end_read - beg_read > size)
			end_read = beg_read + size;
		while (beg_read < end_read) {
			uint64_t to = gather(c, beg_read, end_read);

			if (c->packet->head.event_count)
				put_on_disk(c, to);
			give_back(c, beg_read, to);
			beg_read = to;
		}
	}
	sum_up(c);
}

void shared_finish(struct ptt_collector *c)
{
	/* losses that no packet reports yet */
	if (discarded(c) != c->stream[0].discarded) {
		begin(c);
		put_on_disk(c, c->shared->shared->beg_read);
	}
	sum_up(c);
}
