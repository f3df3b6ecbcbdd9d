/* SPDX-License-Identifier: MIT */
/* trace_id.c - the table of streams and logs of this process. */
#include "controller.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TRACES 256u

static struct px_trace trace_table[TRACES];

struct px_trace *px_trace_use(trace_id_t id, unsigned int kinds)
{
	struct px_trace *t = &trace_table[id % TRACES];

	if (!id)
		return NULL;
	/* seq_cst: pairs with px_trace_retract() and px_trace_quiesce(), which take the id away and then look for users */
	__atomic_fetch_add(&t->users, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&t->id, __ATOMIC_SEQ_CST) == id && t->kind & kinds)
		return t;
	px_trace_done(t);
	return NULL;
}

void px_trace_done(struct px_trace *trace)
{
	/* release: pairs with px_trace_quiesce(), which sees all that the user did */
	__atomic_fetch_sub(&trace->users, 1, __ATOMIC_RELEASE);
}

/* In the child of a fork. The copies of the parent's memory stay mapped; its agents do not run here. */
static void forget_all(void)
{
	for (uint32_t i = 0; i < TRACES; i++) {
		struct px_trace *t = &trace_table[i];

		t->id = 0;
		t->users = 0;
		t->kind = PX_FREE;
	}
}

struct px_trace *px_trace_claim(void)
{
	px_own.forked = forget_all;
	for (uint32_t i = 0; i < TRACES; i++) {
		struct px_trace *t = &trace_table[i];
		uint32_t generation = t->generation;

		if (t->kind != PX_FREE)
			continue;
		/* keep id and users: calls with an old id may count themselves as users at any time */
		memset(&t->generation, 0, sizeof(*t) - offsetof(struct px_trace, generation));
		t->generation = generation + 1;
		t->kind = PX_STREAM;
		pthread_mutex_init(&t->lock, NULL);
		pthread_mutex_init(&t->log_lock, NULL);
		return t;
	}
	return NULL;
}

trace_id_t px_trace_publish(struct px_trace *trace)
{
	trace_id_t id = (trace->generation % 0xffffff + 1) * TRACES + (uint32_t)(trace - trace_table);

	/* seq_cst: pairs with px_trace_use(), which then sees the whole trace */
	__atomic_store_n(&trace->id, id, __ATOMIC_SEQ_CST);
	return id;
}

bool px_trace_retract(struct px_trace *trace, trace_id_t id)
{
	/* seq_cst, before px_trace_quiesce() looks for users: users count themselves before they load the id */
	return __atomic_compare_exchange_n(&trace->id, &id, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void px_trace_quiesce(struct px_trace *trace)
{
	while (__atomic_load_n(&trace->users, __ATOMIC_SEQ_CST)) {
		/* a thread that waits for an event loads the id when it wakes */
		if (trace->buffer.stream) {
			__atomic_fetch_or(&trace->buffer.stream->waits, PX_WAITS_READER, __ATOMIC_SEQ_CST);
			px_wake(trace->buffer.stream, PX_WAITS_READER);
		}
		sched_yield();
	}
}

void px_trace_release(struct px_trace *trace)
{
	/* only calls with an old id are left, and they read nothing but the id */
	px_buffer_unmap(&trace->buffer);
	if (trace->control)
		munmap(trace->control, PX_PAGE);
	px_names_close(trace->names);
	px_names_close(trace->names_before);
	if (trace->reading)
		munmap(trace->reading, px_reading_size(&trace->attr));
	if (trace->scratch)
		munmap(trace->scratch, px_record_room(&trace->attr));
	free(trace->kept);
	pthread_mutex_destroy(&trace->lock);
	pthread_mutex_destroy(&trace->log_lock);
	/* release: pairs with the guard of the thread that claims it next */
	__atomic_store_n(&trace->kind, PX_FREE, __ATOMIC_RELEASE);
}

trace_id_t px_trace_next(uint32_t *at, unsigned int kinds)
{
	while (*at < TRACES) {
		const struct px_trace *t = &trace_table[(*at)++];
		/* acquire: pairs with px_trace_publish(); px_trace_use() loads the id again */
		trace_id_t id = __atomic_load_n(&t->id, __ATOMIC_ACQUIRE);

		if (id && t->kind & kinds)
			return id;
	}
	return 0;
}
