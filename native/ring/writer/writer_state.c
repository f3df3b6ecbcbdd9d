/* SPDX-License-Identifier: MIT */
/* writer_state.c - the state of a writer outside the segment: its session, its thread's entry, the table of sites. */
#include "writer.h"
#include "session.h"

struct ptt_session ptt_session;

/* A head of 0 lies on a chunk boundary, so a thread that has this entry takes the slow path at once. */
static struct ptt_thread nowhere;
struct ptt_site_table ptt_site_table;

__thread struct ptt_thread *ptt_ring_self __attribute__((tls_model("initial-exec"))) = &nowhere;
static __thread uint32_t no_cpu __attribute__((tls_model("initial-exec"))) = UINT32_MAX;

static __thread uint64_t no_section __attribute__((tls_model("initial-exec")));

struct ptt_ring ptt_ring = {.sites = ptt_site_table.entry, .chunk_mask = PTT_CHUNK_SIZE - 1};
#ifdef __SANITIZE_THREAD__
uint64_t ptt_handover_point[PTT_HANDOVER_POINTS];
#endif

/* For readers of this process's memory, which find it by its name. */
extern struct ptt_black_box __nptl_trace_black_box __attribute__((visibility("default")));
struct ptt_black_box __nptl_trace_black_box = {
	.abi = {.magic = PTT_BLACK_BOX_MAGIC, .major = PTT_ABI_MAJOR, .minor = PTT_ABI_MINOR, .struct_size = sizeof(struct ptt_black_box)},
	.site_count = PTT_SITE_COUNT,
	.stack_count = PTT_STACK_COUNT,
};

void ptt_ring_box_is_at(const struct ptt_segment *segment)
{
	struct ptt_black_box *box = &__nptl_trace_black_box;

	box->sites = (uint64_t)(uintptr_t)ptt_site_table.entry;
	box->stacks = (uint64_t)(uintptr_t)ptt_site_table.stack;
	/* release: pairs with a reader of this memory, which reads this word first */
	__atomic_store_n(&box->segment, segment && segment->box ? (uint64_t)(uintptr_t)segment : 0, __ATOMIC_RELEASE);
}

bool ptt_ring_take_entry(struct ptt_thread *self)
{
	struct ptt_thread *expected = &nowhere;

	/* relaxed: against signal handlers of this thread only */
	return __atomic_compare_exchange_n(&ptt_ring_self, &expected, self, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void ptt_ring_leave_session(void)
{
	ptt_ring_forget_thread();
	ptt_session.segment = NULL;
	ptt_ring_box_is_at(NULL);
}

void ptt_ring_forget_thread(void)
{
	ptt_ring_self = &nowhere;
}

bool ptt_ring_is_nowhere(const struct ptt_thread *self)
{
	return self == &nowhere;
}

ptrdiff_t ptt_ring_no_cpu_offset(void)
{
	return (char *)&no_cpu - (char *)ptt_thread_pointer();
}

ptrdiff_t ptt_ring_no_section_offset(void)
{
	return (char *)&no_section - (char *)ptt_thread_pointer();
}
