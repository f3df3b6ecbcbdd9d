/* SPDX-License-Identifier: MIT */
/* writer.h - the writer's side of the shared segment: attach, record, thread end, fork. */
/*
 * Functions that may run at the same time:
 *
 *                     put (same thread,   put (other   collector   fork in
 *                     signal handler)     thread)      pass        another thread
 *   put               yes                 yes          yes         yes
 *   thread_end        yes                 yes          yes         yes
 *   attach, detach    no                  no           yes         no
 *   fork_child        only in the child, before all other code of the child
 *
 * put: async-signal-safe, allocates nothing, keeps errno, takes no lock, is no cancellation point. It makes a system call
 * only if no buffer is free. The slots of a thread are in the order of their times, whatever signal handlers do. put reads
 * the head, takes the time, then moves the head by compare and swap, which fails if a handler came between.
 */
#ifndef PTT_RING_H
#define PTT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../platform/clock.h"
#include "../platform/local.h"
#include "../platform/missing.h"
#include "../layout/ptt_abi.h"
#include "../mapping/private_segment.h"
#include "../mapping/segment_map.h"

struct ptt_ring {
	uint64_t *sites;
	uint64_t chunk_mask; /* chunk size - 1 */
	uint64_t fast_mask;  /* the same if the fast path can read the clock, else 0, which never has room */
	uint32_t clock;
	ptrdiff_t cpu_offset; /* offset of the kernel's cpu number from the thread pointer */
	ptrdiff_t section_offset; /* offset of the rseq_cs word (readings.h) from the thread pointer */
	uint64_t section; /* value of that word while the thread keeps the processor; 0 = readings are off */
};

extern struct ptt_ring ptt_ring __attribute__((visibility("hidden")));

/* The calling thread's entry, or the nowhere entry. The head of the nowhere entry sends every put to the slow path. */
extern __thread struct ptt_thread *ptt_ring_self
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/*
 * ptt_ring_attach - map a session's segment and claim a process entry
 * @directory: session directory
 * Return: 0 or -errno; -ESHUTDOWN if the recording is over, which is no error. Blocks and makes system calls.
 */
int ptt_ring_attach(const char *directory);

/* ptt_ring_attach_mapped - the same for a segment in this very process: sanitizers know memory by its address. */
int ptt_ring_attach_mapped(struct ptt_segment *segment, const char *directory);

/* ptt_ring_is_in - is this process in the session of a directory, or was its parent when it forked? */
bool ptt_ring_is_in(const char *directory);

/*
 * ptt_ring_rejoin - join another session, once no thread records into the session before
 * Return: 0 or -errno. Blocks and makes system calls.
 */
int ptt_ring_rejoin(const char *directory);

/*
 * ptt_ring_begin_box - make a black box, and record into it, once no thread records into a session before
 * @name: stands for the directory of a session
 * Return: 0 or -errno. Blocks and makes system calls.
 */
int ptt_ring_begin_box(const char *name, const struct ptt_box_size *size);

/* ptt_ring_detach - the process ends or leaves the session: write down the mapped modules, mark the process ended. */
void ptt_ring_detach(void);

/*
 * ptt_ring_fork_child - forget the parent's entry and attach as a process of its own
 * @move: map the segment elsewhere than the parent did, see segment_map.h
 * Return: 0 or -errno.
 */
int ptt_ring_fork_child(bool move);

/* ptt_ring_exec - this process is about to execute another program (begin = true), or has failed to (begin = false). */
void ptt_ring_exec(bool begin);

/* ptt_ring_lost - an event of the trace says that @count other events were lost. */
void ptt_ring_lost(uint64_t count);

/* ptt_ring_thread_end - the calling thread is over; its late events take a new entry. */
void ptt_ring_thread_end(void);

/*
 * ptt_ring_put_slow - record an event if the fast path could not
 * @rest: @count continuation slots with their marks, and the slot of the stack if there is one
 * May wait for room, as the segment's policy says.
 */
void ptt_ring_put_slow(uint64_t id, uint64_t w1, const struct ptt_slot *rest, uint32_t count, bool fence)
	__attribute__((cold, noinline));

/* ptt_ring_put_revoked - write into the slot reserved at @head, or elsewhere if the collector has taken the chunk. */
void ptt_ring_put_revoked(struct ptt_thread *self, uint64_t head, uint64_t w0, uint64_t w1, bool fence)
	__attribute__((cold, noinline));

/* ptt_ring_cpu - the number of the calling thread's processor, by one load; all bits are set if the kernel gives none. */
static inline uint32_t ptt_ring_cpu(void)
{
#if defined(__x86_64__)
	uint32_t cpu;

	/* the thread pointer is the base of a segment: adding it takes no instruction */
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(ptt_ring.cpu_offset));
	return cpu;
#else
	return *(volatile uint32_t *)((char *)ptt_thread_pointer() + ptt_ring.cpu_offset);
#endif
}

/* ptt_rseq_word - the rseq_cs word of the calling thread, see readings.h. */
static inline volatile uint64_t *ptt_rseq_word(void)
{
	/* relaxed: see ptt_processor_kept() */
	return (volatile uint64_t *)((char *)ptt_thread_pointer() + __atomic_load_n(&ptt_ring.section_offset, __ATOMIC_RELAXED));
}

#define PTT_RECENT_SHIFT 12

/*
 * ptt_ring_recent - the time of the calling thread's last event, roughly; cheaper than the clock
 * @recent: set to the lower bits of that time, in units of 2^PTT_RECENT_SHIFT ticks
 * Return: false if the time is not known.
 */
static inline bool ptt_ring_recent(uint32_t *recent)
{
	struct ptt_thread *self = ptt_ring_self;
	uint64_t head = ptt_local_load(&self->head), w0;

	if (!(head & ptt_ring.chunk_mask)) /* also true for the nowhere entry */
		return false;
	/* relaxed: this thread wrote it; another writer could only cause a wrong time */
	w0 = __atomic_load_n(&((const struct ptt_slot *)(ptt_segment_base(self) + PTT_HEAD_OFFSET(head)))[-1].w0, __ATOMIC_RELAXED);
	*recent = (uint32_t)((w0 >> PTT_TIME_SHIFT & PTT_TIME_MASK) >> PTT_RECENT_SHIFT);
	return (w0 & PTT_ID_MASK) != PTT_ID_MORE;
}

/*
 * ptt_ring_put1 - record an event of one slot
 * @w1: object and site
 * @fence: the time stamp must not run ahead of the instructions before
 * All rare cases are calls in tail position, and the slot's contents are computed last. So the common case needs only
 * registers that it need not save.
 */
static inline __attribute__((always_inline)) void ptt_ring_put1(struct ptt_thread *self, uint64_t id, uint64_t w1,
								 bool fence)
{
	uint64_t head, now, w0;
	struct ptt_slot *slot;
	uint32_t revoke;

	/* relaxed: only compared with the value below */
	revoke = __atomic_load_n(&self->revoke, __ATOMIC_RELAXED) & ~PTT_REVOKE_STATE_MASK;
	head = ptt_local_load(&self->head);
	now = fence ? ptt_clock_fenced(PTT_CLOCK_TSC) : ptt_clock(PTT_CLOCK_TSC);

	if (__builtin_expect(!ptt_local_has_any(&ptt_ring.fast_mask, head), 0) ||
	    __builtin_expect((now - self->t_base) >> PTT_TIME_BITS != 0, 0) ||
	    __builtin_expect(!ptt_local_cas(&self->head, head, head + PTT_SLOT_SIZE), 0))
		return ptt_ring_put_slow(id, w1, NULL, 0, fence);
	w0 = PTT_SLOT_W0(id, ptt_ring_cpu(), now);
	/* read after the reservation: pairs with the collector's ASKED, barrier, read of head */
	if (__builtin_expect(!ptt_local_is32(&self->revoke, revoke), 0))
		return ptt_ring_put_revoked(self, head, w0, w1, fence);
	slot = (struct ptt_slot *)(ptt_segment_base(self) + PTT_HEAD_OFFSET(head));
	slot->w1 = w1;
	/* release: the collector's acquire load of w0 sees w1 */
	__atomic_store_n(&slot->w0, w0, __ATOMIC_RELEASE);
}

#endif
