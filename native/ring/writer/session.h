/* SPDX-License-Identifier: MIT */
/* session.h - what the parts of the ring writer share: the mapped session and the thread's entry. */
#ifndef PTT_SESSION_H
#define PTT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../layout/ptt_abi.h"
#include "../platform/page.h"
#include "../mapping/segment_map.h"
#include "../layout/remembered_stack.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

/* The session as this process has it mapped; segment is NULL while it is not attached. */
struct ptt_session {
	struct ptt_segment *segment;
	struct ptt_process *process;
	uint32_t process_index; /* of its entry */
	uint32_t image;
	uint32_t pid;
	char directory[256];
};

static inline struct ptt_thread *ptt_threads(struct ptt_segment *segment)
{
	return (struct ptt_thread *)((char *)segment + segment->thread_offset);
}

static inline uint32_t *ptt_thread_owners(struct ptt_segment *segment)
{
	return (uint32_t *)((char *)segment + segment->thread_owner_offset);
}

static inline uint32_t *ptt_chunk_states(struct ptt_segment *segment)
{
	return (uint32_t *)((char *)segment + segment->chunk_state_offset);
}

/* ptt_raise_high - let the collector look at entries up to @wanted. */
static inline void ptt_raise_high(uint32_t *high, uint32_t wanted)
{
	/* release: pairs with the acquire of the collector's look at it */
	uint32_t seen = __atomic_load_n(high, __ATOMIC_RELAXED);

	while (seen < wanted &&
	       !__atomic_compare_exchange_n(high, &seen, wanted, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* In the first entry of the site table, which holds no site: the table belongs to this process. */
#define PTT_SITE_MARK UINT64_C(1)

/* On pages of its own: the kernel clears them in every child, see ptt_ring_site_slow(). */
struct ptt_site_table {
	uint64_t entry[PTT_SITE_COUNT];
	uint64_t stack[PTT_STACK_COUNT]; /* stack of the caller:17 return address:47; 0 = not in use */
	uint64_t python[PTT_PYTHON_CODES]; /* identity of a code object; 0 = not in use */
	uint16_t list[PTT_SITE_COUNT]; /* entries in use */
	uint32_t listed;
	struct ptt_remembered_stack remembered[PTT_REMEMBERED_STACKS];
} __attribute__((aligned(PTT_PAGE_MAX)));

extern struct ptt_site_table ptt_site_table __attribute__((visibility("hidden")));
extern struct ptt_session ptt_session __attribute__((visibility("hidden")));

/*
 * A thread looks for a free chunk from its home on, always: what the collector has just given back is then used again
 * while it is still in the caches and mapped. Homes lie apart, so that threads do not look at the same chunks.
 */
#define PTT_HOME_STRIDE 61u

/* ptt_ring_enter_thread - the calling thread's entry, claimed if need be; NULL if there is none. Safe in signal handlers. */
struct ptt_thread *ptt_ring_enter_thread(void);

/* ptt_ring_take_entry - make @self the calling thread's entry, unless it has one. Return: whether it did. */
bool ptt_ring_take_entry(struct ptt_thread *self);

void ptt_ring_forget_thread(void);

/* ptt_ring_leave_session - record no more; what was recorded stays with the collector. */
void ptt_ring_leave_session(void);
bool ptt_ring_is_nowhere(const struct ptt_thread *self);

/* ptt_ring_no_cpu_offset - where the thread pointer finds "no cpu number", for kernels that do not say. */
ptrdiff_t ptt_ring_no_cpu_offset(void);
/* ptt_ring_no_section_offset - where it finds a word that stays 0. */
ptrdiff_t ptt_ring_no_section_offset(void);

/* ------------------------------------------------------------ chunk.c: how the slow paths of a writer come by room. Safe in signal handlers, keeps errno. */

static inline uint32_t ptt_thread_index(const struct ptt_thread *self)
{
	return (uint32_t)(self - ptt_threads(ptt_segment_of(self)));
}

/* ptt_chunk_index - the chunk that an offset, or a head, lies in. */
static inline uint32_t ptt_chunk_index(const struct ptt_segment *segment, uint64_t head)
{
	return (uint32_t)(((head & PTT_HEAD_OFFSET_MASK) - segment->chunk_offset) / segment->chunk_size);
}

/* How an attempt to get room ended: here, in a signal handler that came between, or not at all. */
enum ptt_refill { PTT_REFILL_DONE, PTT_REFILL_BY_SIGNAL_HANDLER, PTT_REFILL_LOST };

/*
 * ptt_chunk_refill - give @self, whose head is @head, a chunk with room; a lost event is counted
 * @waited_ns: the time that it had to wait is added
 * May sleep, as the segment's policy says.
 */
enum ptt_refill ptt_chunk_refill(struct ptt_thread *self, uint64_t head, uint64_t *waited_ns);

/* ptt_chunk_close - the head has moved on from the chunk that it was in at @head. */
void ptt_chunk_close(struct ptt_thread *self, uint64_t head);

/* ------------------------------------------------------------ schedstat.c: what the kernel says of the calling thread's time without a processor. Safe in signal handlers, keeps errno. */

struct ptt_run_times {
	uint64_t ran; /* ns */
	uint64_t ready; /* ns, without a processor */
	uint64_t slices;
};

/* ptt_schedstat_read - fill in all but @ran. May open the file. Return: false if the file cannot be had. */
bool ptt_schedstat_read(struct ptt_run_times *times) __attribute__((visibility("hidden")));

/* ptt_schedstat_is_refused - the file cannot be had as long as the thread lives. */
bool ptt_schedstat_is_refused(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_note_loss - the thread has lost its processor in a wait, or with a lock held. */
void ptt_schedstat_note_loss(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_begin_thread, _end_thread - the calling thread has got an entry; it gives its entry back. */
void ptt_schedstat_begin_thread(void) __attribute__((visibility("hidden")));
void ptt_schedstat_end_thread(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_forget_parent - in the child of a fork: close what the threads of the parent had open. */
void ptt_schedstat_forget_parent(void) __attribute__((visibility("hidden")));

/* ------------------------------------------------------------ retired.c: memory of sessions that the process has left, given back once no thread can come back to it. */

/*
 * A thread keeps the entry of its last session until its next event sends it to another session. So a segment stays mapped after its
 * session was left, as long as a thread lives that had an entry there and has no entry of a later session. A signal handler may have
 * interrupted a thread that was just writing, and sent it on. So a segment is unmapped only if it was found unused at the beginning of
 * two sessions.
 */


/* ptt_retired_note - the session is being left: remember which threads have entries, before the collector clears them. */
void ptt_retired_note(struct ptt_segment *segment) __attribute__((visibility("hidden")));

/*
 * ptt_retired_add - another session is about to be joined: private memory takes the place of the old segment. By one thread at a time.
 * Makes system calls. Return: false if there is no memory for that; then nothing has changed.
 */
bool ptt_retired_add(struct ptt_segment *segment) __attribute__((visibility("hidden")));

/* ------------------------------------------------------------ what ThreadSanitizer cannot see: chunks and entries pass from thread to thread by way of the recorder */

/*
 * A thread that ends leaves its chunk and its entry to the recorder, which is another process; the thread that gets them next finds
 * them cleared. Between the two threads nothing passes within their process, so the sanitizer takes it for a race. To
 * suppress the report is no cure: the suppressed report, too, is made with the sanitizer's locks held, by functions that
 * are cancellation points. Nothing of this exists in other builds.
 *
 * A forked child has a point of its own: another thread may have been inside the sanitizer with the parent's just then, and
 * its lock on it is held in the child for good.
 */
#ifdef __SANITIZE_THREAD__
#define PTT_HANDOVER_POINTS 64u

extern uint64_t ptt_handover_point[PTT_HANDOVER_POINTS] __attribute__((visibility("hidden")));

/*
 * ptt_leave_to_others - this thread writes no more to its chunk and entry; ptt_take_from_others - this thread may write to what another
 * thread left.
 */
static inline void ptt_leave_to_others(void)
{
	__tsan_release(&ptt_handover_point[ptt_session.pid % PTT_HANDOVER_POINTS]);
}

static inline void ptt_take_from_others(void)
{
	__tsan_acquire(&ptt_handover_point[ptt_session.pid % PTT_HANDOVER_POINTS]);
}
#else
static inline void ptt_leave_to_others(void)
{
}

static inline void ptt_take_from_others(void)
{
}
#endif

#endif
