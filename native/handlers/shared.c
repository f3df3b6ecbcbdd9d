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
 * The reading process Pr (native/collector/shared/drain_shared.c) waits until `reserved` reaches the middle, sets PAUSE, waits
 * until written == reserved, notes end_read = written, clears PAUSE, copies what lies from beg_read to end_read to disk,
 * and sets beg_read = end_read.
 *
 * Two questions that the mechanism's description leaves open, and our answers:
 *
 *   Data at the end and at the beginning of the array. reserved, written and beg_read never wrap: they count words since
 *   the beginning, in 64 bits, and a word lies in the array at the count modulo its size. Both sides map the array twice,
 *   end to end, so a record that begins in the last words goes on in the second mapping, which is the beginning. Nobody
 *   ever sees it in two pieces.
 *
 *   64-bit data. They take two words, low one first, as does the time. Nothing depends on these being written in one
 *   step: the reader looks at a record only when it is whole.
 *
 * Order of time. XADD cannot keep the stamps in order: between it and the reading of the clock another thread may do
 * both. So the reservation is a compare and swap, with the clock read between the load and the swap; the swap succeeds
 * only if nobody reserved meanwhile. Hence position order is time order, and the buffer is a valid CTF stream as it lies.
 *
 * PAUSE is not needed for correctness. The reader loads written and then reserved: as written <= reserved and neither
 * goes back, equal values mean that at the first load all reservations were written. PAUSE makes it come about. So a
 * writer that saw PAUSE clear and reserves just after it was set does no harm.
 *
 * Signal handlers. A handler that interrupts a writer between reserving and having written, and traces itself, must not
 * wait for the reader, which waits for the interrupted writer. The thread-local `writing` shows it: such a nested writer
 * ignores PAUSE, and where room is short it takes the headroom that others leave. If even that is used up, the event is
 * dropped and counted. A handler that never returns (siglongjmp) leaves a record unfinished: see below; the thread then
 * finds that its record was given up and is no nested writer any more.
 *
 * A writer that dies, or is stopped, between reserving and having written would hold up everybody. The record says from
 * the first moment how long it is and that it is unfinished; process[].writing says whose threads are in there. The reader
 * decides: when all writers that could still finish are dead, or all sleep after two seconds, it raises `given_up` and makes written equal
 * to reserved itself. A writer adds to `written` by compare and swap, and only if its record is not given up, so the sum
 * stays right if it comes back after all. If it then still writes over what is others' by now, their checksum shows it.
 *
 * The kernel marks a word of the segment when the reader dies; a thread that waits looks at it every 50 ms. From then on events are
 * dropped and counted, as they are while a reader stands still for longer than threads wait for it.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include "shared.h"

#include <string.h>

#include "writer/session.h"
#include "writer/bell.h"
#include "platform/confined.h"
#include "origin/call_site.h"
#include "origin/image_files.h"
#include "joining.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "record/record.h"
#include "writer/writer.h"

#define EXPORT __attribute__((visibility("default")))
#define ID(domain, number) ((uint32_t)(domain) << 6 | (uint32_t)(number))

/* This handler calls nothing that is traced. */
EXPORT extern const int nptl_trace_handler_reentrant;
EXPORT const int nptl_trace_handler_reentrant = 1;

/* What the calling thread is in the middle of writing; signal handlers look at it. */
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
	/* in the child of a fork: whatever this thread was writing is its parent's */
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

/* Does this writer interrupt another one of its thread that the reader still waits for? */
static bool is_nested(const struct ptt_shared *shared)
{
	/* acquire: pairs with the reader's release of given_up */
	return writing && writing_at >= __atomic_load_n(&shared->given_up, __ATOMIC_ACQUIRE);
}

/* The record is written: say so, unless the reader has given it up. */
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

/* One attempt to reserve. Return: false if another thread was faster. */
static bool reserve(const struct shared_buffer *b, uint64_t reserved, uint32_t words, uint64_t *time)
{
	*time = ptt_clock_fenced(b->clock);
#if defined(__x86_64__)
	__builtin_ia32_lfence(); /* the clock has been read before the swap is tried */
#endif
	return __atomic_compare_exchange_n(&b->shared->reserved, &reserved, reserved + words, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static void write_record(const struct shared_buffer *b, uint64_t at, const uint32_t *record, uint32_t words)
{
	uint32_t *to = b->array + (at & b->mask);

	/* this process, and the size that follows, in case that it gets no further */
	__atomic_store_n(&to[3], record[3], __ATOMIC_RELAXED);
	__atomic_store_n(&to[0], ptt_record_word0(PTT_RECORD_UNFINISHED, words), __ATOMIC_RELEASE);
	memcpy(to + 1, record + 1, (words - 1) * sizeof(*to));
	/* release: the reader's acquire load of word 0 sees the whole record, should it have to look for one */
	__atomic_store_n(&to[0], record[0], __ATOMIC_RELEASE);
}

static bool reached_the_middle(const struct ptt_shared *shared, uint64_t reserved, uint32_t words)
{
	/* relaxed: only a hint of when to ring */
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

	/* first the mark and then the count: a handler between them must not wait for a reader that waits for our count */
	if (!nested)
		writing_at = __atomic_load_n(&shared->reserved, __ATOMIC_ACQUIRE);
	writing = true;
	/* seq_cst: a reader that sees our reservation sees this too, and does not take our record for a dead writer's */
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
	/* here it is first the count, for the same reason */
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

	/* relaxed: it hands nothing over; pairs with shared_close() */
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

/* The handler's own event: how long the thread waited for room. */
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
