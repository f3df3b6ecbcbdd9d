/* SPDX-License-Identifier: MIT */
/* session.h - the state that the parts of the ring writer share: the mapped session and the thread's entry. */
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

/* The session, as mapped in this process; segment is NULL while the process is in no session. */
struct ptt_session {
	struct ptt_segment *segment;
	struct ptt_process *process;
	uint32_t process_index; /* of the process entry */
	uint32_t image;
	uint32_t pid;
	char directory[256];
	/* a black box; not read from the segment, because other programs may shorten a file that is mapped */
	bool is_box;
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

/* ptt_raise_high - let the collector look at entries below @wanted. */
static inline void ptt_raise_high(uint32_t *high, uint32_t wanted)
{
	/* release: pairs with the acquire when the collector looks at it */
	uint32_t seen = __atomic_load_n(high, __ATOMIC_RELAXED);

	while (seen < wanted &&
	       !__atomic_compare_exchange_n(high, &seen, wanted, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* Value of the first entry of the site table, which holds no site: the table belongs to this process. */
#define PTT_SITE_MARK UINT64_C(1)

/* On pages of its own: the kernel clears these pages in every child, see ptt_ring_site_slow(). */
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
 * A thread always looks for a free chunk from its home on. So it reuses a chunk that the collector has just freed, which is
 * still cached and mapped. Homes lie apart, so threads do not look at the same chunks.
 */
#define PTT_HOME_STRIDE 61u

/* ptt_ring_enter_thread - the calling thread's entry, claimed if necessary; NULL if no entry is free. Safe in signal handlers. */
struct ptt_thread *ptt_ring_enter_thread(void);

/* ptt_ring_take_entry - make @self the calling thread's entry, unless the thread has an entry. Return: true if it did. */
bool ptt_ring_take_entry(struct ptt_thread *self);

/* ptt_ring_forget_thread - the calling thread has no entry from now on. */
void ptt_ring_forget_thread(void);

/* ptt_ring_leave_session - record no more; the collector keeps all recorded events. */
void ptt_ring_leave_session(void);

/* ptt_ring_box_is_at - tell readers of this process's memory where its black box is. @segment: NULL or no box: nowhere */
void ptt_ring_box_is_at(const struct ptt_segment *segment);

/* ptt_ring_is_nowhere - is @self the entry of threads without an entry? */
bool ptt_ring_is_nowhere(const struct ptt_thread *self);

/* ptt_ring_no_cpu_offset - offset from the thread pointer to a "no cpu number", for kernels that give no number. */
ptrdiff_t ptt_ring_no_cpu_offset(void);
/* ptt_ring_no_section_offset - offset from the thread pointer to a word that stays 0. */
ptrdiff_t ptt_ring_no_section_offset(void);

/* ------------------------------------------------------------ chunk.c: room for the slow path of a writer; safe in signal handlers, keeps errno */

static inline uint32_t ptt_thread_index(const struct ptt_thread *self)
{
	return (uint32_t)(self - ptt_threads(ptt_segment_of(self)));
}

/* ptt_chunk_index - index of the chunk of an offset or head. */
static inline uint32_t ptt_chunk_index(const struct ptt_segment *segment, uint64_t head)
{
	return (uint32_t)(((head & PTT_HEAD_OFFSET_MASK) - segment->chunk_offset) / segment->chunk_size);
}

/* An attempt to get room ended here, in a signal handler that came between, or without room. */
enum ptt_refill { PTT_REFILL_DONE, PTT_REFILL_BY_SIGNAL_HANDLER, PTT_REFILL_LOST };

/*
 * ptt_chunk_refill - give @self, which has its head at @head, a chunk with room; count the event as lost if there is none
 * @waited_ns: the time that the thread waited is added
 * May sleep, as the segment's policy says.
 */
enum ptt_refill ptt_chunk_refill(struct ptt_thread *self, uint64_t head, uint64_t *waited_ns);

/* ptt_chunk_close - the head has moved on from its chunk at @head. */
void ptt_chunk_close(struct ptt_thread *self, uint64_t head);

/* ------------------------------------------------------------ schedstat.c: the calling thread's time without a processor; the same holds */

struct ptt_run_times {
	uint64_t ran; /* ns */
	uint64_t ready; /* ns, without a processor */
	uint64_t slices;
};

/* ptt_schedstat_read - fill in all fields but @ran. May open the file. Return: false if the file cannot be read. */
bool ptt_schedstat_read(struct ptt_run_times *times) __attribute__((visibility("hidden")));

/* ptt_schedstat_is_refused - can the file never be read in this thread? */
bool ptt_schedstat_is_refused(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_note_loss - the thread has lost its processor in a wait, or with a lock held. */
void ptt_schedstat_note_loss(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_begin_thread, _end_thread - the calling thread has got an entry; it gives its entry back. */
void ptt_schedstat_begin_thread(void) __attribute__((visibility("hidden")));
void ptt_schedstat_end_thread(void) __attribute__((visibility("hidden")));

/* ptt_schedstat_forget_parent - in the child of a fork: close the files of the parent's threads. */
void ptt_schedstat_forget_parent(void) __attribute__((visibility("hidden")));

/* ------------------------------------------------------------ retired.c: memory of former sessions */

/*
 * A thread keeps its entry in a former session until its next event, which gives it an entry in the new session. So the
 * former segment stays mapped as long as a living thread has an entry there and no entry in a later session. A signal
 * handler may interrupt a thread that is just writing, and give it a new entry. So a segment is unmapped only if it was
 * unused at the beginning of two sessions.
 */

/* ptt_retired_note - the process leaves the session: remember which threads have entries, before the collector clears them. */
void ptt_retired_note(struct ptt_segment *segment) __attribute__((visibility("hidden")));

/*
 * ptt_retired_add - the process is about to join another session: put private memory in place of the old segment
 * One thread at a time calls it. Makes system calls. Return: false if there is no memory; then nothing has changed.
 */
bool ptt_retired_add(struct ptt_segment *segment) __attribute__((visibility("hidden")));

/* ------------------------------------------------------------ for ThreadSanitizer */

/*
 * A thread that ends leaves its chunk and its entry to the recorder, which is another process. The next thread finds them
 * cleared. Within their process nothing passes between the two threads, so the sanitizer reports a race. To suppress the
 * report does not help: the sanitizer also makes suppressed reports with its locks held, by functions that are cancellation
 * points. Other builds contain nothing of this.
 *
 * A forked child has a synchronization point of its own. Another thread may have been inside the sanitizer with the
 * parent's point at the fork, and then the sanitizer's lock on that point is held in the child for ever.
 */
#ifdef __SANITIZE_THREAD__
#define PTT_HANDOVER_POINTS 64u

extern uint64_t ptt_handover_point[PTT_HANDOVER_POINTS] __attribute__((visibility("hidden")));

/*
 * ptt_leave_to_others - this thread no longer writes to its chunk and entry
 * ptt_take_from_others - this thread may write to the chunk or entry that another thread left
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
