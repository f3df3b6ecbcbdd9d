/* SPDX-License-Identifier: MIT */
/* shared.c - one buffer for all threads and processes: the write-and-read mechanism, the writing process Pw. */
/*
 * The mechanism. One array in shared memory takes the records of all threads of all traced processes, in one order. A
 * writer
 *
 *     waits until there is room between reserved and beg_read,
 *     waits while PAUSE,
 *     takes the time and moves `reserved` past its record, in one atomic step,
 *     writes its data there,
 *     and adds its size to `written`.
 *
 * The reading process Pr (native/collector/shared/drain_shared.c) waits until `reserved` reaches the middle. It sets PAUSE
 * and waits until written == reserved. It notes end_read = written, clears PAUSE, and copies the words from beg_read to
 * end_read to disk. Then it sets beg_read = end_read.
 *
 * The description of the mechanism leaves two questions open. Our answers:
 *
 * Data at the end and at the beginning of the array: reserved, written and beg_read never wrap. They count words since the
 * beginning, in 64 bits; the index of a word in the array is its count modulo the size. Both sides map the array twice, end
 * to end. A record that begins in the last words goes on in the second mapping, which is the beginning. So nobody ever sees
 * a record in two pieces.
 *
 * 64-bit data: they take two words, low word first, as does the time. They need not be written in one step, because the
 * reader looks only at complete records.
 *
 * Order of time. XADD cannot keep the stamps in order: between XADD and the reading of the clock, another thread may do
 * both. So the reservation is a compare and swap, and the clock is read between the load and the swap. The swap succeeds
 * only if nobody reserved meanwhile. Hence position order is time order, and the buffer is a valid CTF stream without
 * sorting.
 *
 * PAUSE is not needed for correctness. The reader loads written and then reserved. As written <= reserved and neither goes
 * back, equal values mean that all reservations were written at the first load. PAUSE only makes the two equal. So a writer
 * that saw PAUSE clear and reserves just after it was set does no harm.
 *
 * Signal handlers. A handler may interrupt a writer between reserving and having written, and send an event itself. It must
 * not wait for the reader, because the reader waits for the interrupted writer. The thread-local `writing` shows this
 * state: such a nested writer ignores PAUSE, and if room is short it takes the headroom that others leave. If even the
 * headroom is used up, the event is dropped and counted. A handler that never returns (siglongjmp) leaves a record
 * unfinished, see below. The thread then finds that its record was given up, and is no nested writer any more.
 *
 * A writer that dies, or is stopped, between reserving and having written would hold up everybody. From the first moment
 * the record has its length and is marked as unfinished; process[].writing tells which processes have threads in there. The
 * reader decides. When all writers that could still finish are dead, or all sleep after two seconds, it raises `given_up`
 * and makes written equal to reserved itself. A writer adds to `written` by compare and swap, and only if its record is not
 * given up, so the sum stays right if the writer comes back after all. If that writer then overwrites words that belong to
 * other records by now, their checksums show it.
 *
 * The kernel marks a word of the segment when the reader dies; a waiting thread checks the word every 50 ms. From then on
 * events are dropped and counted. The same happens while a reader stands still for longer than threads wait for it.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include "shared.h"

#include <string.h>

#include "writer/session.h"
#include "writer/bell.h"
#include "platform/confined.h"
#include "origin/call_site.h"
#include "origin/image_files.h"
#include "handler.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "record/record.h"
#include "writer/writer.h"

/* The unfinished record of the calling thread; signal handlers look at it. */
static __thread volatile bool writing INITIAL_EXEC;
static __thread volatile uint64_t writing_at INITIAL_EXEC;
static __thread uint32_t self_tid INITIAL_EXEC;

EXPORT void nptl_trace_init(char **args)
{
	int err;

	if (!shared_buffer && (!args[0] || !args[0][0])) {
		ptt_refuse("shared", args, "no session directory given (start the program with ptt record)", 0);
		return;
	}
	err = shared_attach(shared_buffer ? NULL : args[0]);
	/* in the child of a fork: the unfinished record of this thread belongs to its parent */
	writing = false;
	self_tid = 0;
	ptt_joined("shared", args, err);
}

EXPORT void nptl_trace_handler_module(const struct nptl_trace_module *module)
{
	if (module)
		ptt_ring_note_module(module);
}

EXPORT void nptl_trace_fini(void)
{
	ptt_ring_detach();
}

/* ------------------------------------------------------------ writing */

/* Does this writer interrupt another writer of its thread that the reader still waits for? */
static bool is_nested(const struct ptt_shared *shared)
{
	/* acquire: pairs with the reader's release of given_up */
	return writing && writing_at >= __atomic_load_n(&shared->given_up, __ATOMIC_ACQUIRE);
}

/* Count the complete record as written, unless the reader has given it up. */
static void commit(struct ptt_shared *shared, uint64_t at, uint32_t words)
{
	uint64_t written = __atomic_load_n(&shared->written, __ATOMIC_ACQUIRE);

	do {
		/* after the load of written: if given_up rises now, the reader changes written too, and the swap fails */
		if (at < __atomic_load_n(&shared->given_up, __ATOMIC_ACQUIRE))
			return;
		/* release: the reader's acquire load of written sees the record; acquire: the reader's given_up, above */
	} while (!__atomic_compare_exchange_n(&shared->written, &written, written + words, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
}

/* Try once to reserve. Return: false if another thread was faster. */
static bool reserve(const struct shared_buffer *b, uint64_t reserved, uint32_t words, uint64_t *time)
{
	*time = ptt_clock_fenced(b->clock);
#if defined(__x86_64__)
	__builtin_ia32_lfence(); /* read the clock before the swap */
#endif
	return __atomic_compare_exchange_n(&b->shared->reserved, &reserved, reserved + words, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static void write_record(const struct shared_buffer *b, uint64_t at, const uint32_t *record, uint32_t words)
{
	uint32_t *to = b->array + (at & b->mask);

	/* the process and the size first, in case this thread gets no further */
	__atomic_store_n(&to[3], record[3], __ATOMIC_RELAXED);
	__atomic_store_n(&to[0], ptt_record_word0(PTT_RECORD_UNFINISHED, words), __ATOMIC_RELEASE);
	memcpy(to + 1, record + 1, (words - 1) * sizeof(*to));
	/* release: the reader's acquire load of word 0 sees the whole record, if the reader must look for a record */
	__atomic_store_n(&to[0], record[0], __ATOMIC_RELEASE);
}

static bool reached_the_middle(const struct ptt_shared *shared, uint64_t reserved, uint32_t words)
{
	/* relaxed: only a hint when to ring */
	uint64_t middle = __atomic_load_n(&shared->beg_read, __ATOMIC_RELAXED) + shared->size / 2;

	return reserved < middle && reserved + words >= middle;
}

enum outcome { WRITTEN, NO_ROOM, PAUSED };

static enum outcome try_put(const struct shared_buffer *b, uint32_t *record, uint32_t words)
{
	struct ptt_shared *shared = b->shared;
	uint64_t outer_at = writing_at, at, time = 0;
	bool outer = writing, nested = is_nested(shared);
	enum outcome outcome;

	/* first the mark, then the count: a handler between them must not wait for a reader that waits for our count */
	if (!nested)
		writing_at = __atomic_load_n(&shared->reserved, __ATOMIC_ACQUIRE);
	writing = true;
	/* seq_cst: a reader that sees our reservation sees this too, and does not think that a dead writer made our record */
	__atomic_fetch_add(&b->process->writing, 1, __ATOMIC_SEQ_CST);
	do {
		at = __atomic_load_n(&shared->reserved, __ATOMIC_ACQUIRE);
		if (!nested)
			writing_at = at;
		outcome = NO_ROOM;
		if (!shared_has_room(b, at, words, nested))
			break;
		outcome = PAUSED;
		/* acquire: pairs with the reader's release of the end of its pause */
		if (!nested && __atomic_load_n(&shared->pause, __ATOMIC_ACQUIRE))
			break;
		outcome = WRITTEN;
	} while (!reserve(b, at, words, &time));
	if (outcome == WRITTEN) {
		ptt_record_finish(record, words, time, b->pid, self_tid);
		write_record(b, at, record, words);
		commit(shared, at, words);
	}
	/* first the count here, for the same reason */
	__atomic_fetch_sub(&b->process->writing, 1, __ATOMIC_RELEASE);
	writing_at = outer_at;
	writing = outer;
	if (outcome == WRITTEN && reached_the_middle(shared, at, words))
		ptt_ring_the_bell(b->segment);
	return outcome;
}

static void count_lost(const struct shared_buffer *b)
{
	struct ptt_shared *shared = b->shared;
	bool closed = __atomic_load_n(&shared->fini, __ATOMIC_RELAXED) || !ptt_is_collected(b->segment);

	/* relaxed: a count */
	__atomic_fetch_add(closed ? &shared->lost_closed : &shared->lost_full, 1, __ATOMIC_RELAXED);
}

/* Return: false if the event is lost. */
static bool put(const struct shared_buffer *b, uint32_t *record, uint32_t words, uint64_t *waited_ns)
{
	struct ptt_shared *shared = b->shared;
	struct ptt_patience patience = {0};
	uint64_t began = 0;
	bool done = false;

	/* relaxed: the word hands nothing over; pairs with shared_close() */
	while (!__atomic_load_n(&shared->fini, __ATOMIC_RELAXED)) {
		enum outcome outcome = try_put(b, record, words);

		done = outcome == WRITTEN;
		if (done)
			break;
		if (outcome == PAUSED) {
			if (!shared_wait_for_pause(b))
				break;
			continue;
		}
		if (is_nested(shared))
			break;
		if (!began)
			began = ptt_clock_monotonic_ns();
		if (!shared_wait_for_room(b, words, &patience))
			break;
	}
	if (!done)
		count_lost(b);
	if (began) {
		*waited_ns = ptt_clock_monotonic_ns() - began;
		__atomic_fetch_add(&shared->wait_ns, *waited_ns, __ATOMIC_RELAXED);
	}
	return done;
}

/* Send the handler's own event: the time that the thread waited for room. */
static __attribute__((cold, noinline)) void note_wait(const struct shared_buffer *b, uint64_t waited_ns)
{
	struct nptl_trace_buffer_wait param = {.wait_ns = waited_ns};
	struct nptl_trace_event event = {
		.source = NPTL_TRACE_SOURCE_HANDLER,
		.domain = NPTL_DOMAIN_HANDLER,
		.event = NPTL_EV_BUFFER_WAIT,
		.param_size = sizeof(param),
		.param = &param,
	};
	uint32_t record[PTT_RECORD_SMALL], words = ptt_record_make(record, PTT_RECORD_SMALL, &event, NULL);

	put(b, record, words, &waited_ns);
}

static void put_event(const struct shared_buffer *b, uint32_t *record, uint32_t room, const struct nptl_trace_event *event,
		      const void *site)
{
	uint32_t words = ptt_record_make(record, room, event, site);
	uint64_t waited_ns = 0;

	if (words && put(b, record, words, &waited_ns) && waited_ns)
		note_wait(b, waited_ns);
}

static __attribute__((noinline)) void put_large(const struct shared_buffer *b, const struct nptl_trace_event *event,
						const void *site)
{
	uint32_t record[PTT_RECORD_WORDS_MAX];

	put_event(b, record, PTT_RECORD_WORDS_MAX, event, site);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	/* relaxed: the thread that forks changes it, in the child; loaded once, see shared.h */
	const struct shared_buffer *b = __atomic_load_n(&shared_buffer, __ATOMIC_RELAXED);
	uint32_t record[PTT_RECORD_SMALL];

	if (__builtin_expect(!b, 0))
		return;
	if (__builtin_expect(!self_tid, 0)) {
		self_tid = ptt_own_tid();
		ptt_upcalls.thread_enters();
	}
	if (__builtin_expect(ptt_record_is_small(&event), 1))
		put_event(b, record, PTT_RECORD_SMALL, &event, NULL);
	else
		put_large(b, &event, ptt_upcalls.user_site());
	if (event.source != NPTL_TRACE_SOURCE_NPTL)
		return;
	if (event.domain == NPTL_DOMAIN_HANDLER && event.event == NPTL_EV_EVENTS_LOST)
		ptt_ring_lost(((const struct nptl_trace_events_lost *)(const void *)event.param)->count);
	if (event.domain != NPTL_DOMAIN_PROCESS)
		return;
	if (event.event == NPTL_EV_PROCESS_EXEC)
		ptt_ring_exec(true);
	else if (event.event == NPTL_EV_PROCESS_EXEC_FAILED)
		ptt_ring_exec(false);
}
