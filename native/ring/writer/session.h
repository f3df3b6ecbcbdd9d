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

/* In the entry of the site table that is no site: this table is that of this process. */
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

#endif
