/* SPDX-License-Identifier: MIT */
/* hung.c - processes without a thread that continues, and groups of processes that nothing outside can make continue. */
#include <stdlib.h>

#include "../facts.h"

static void find_hung(struct ptt_check *c)
{
	for (uint32_t i = 0; i < c->t.process_count; i++)
		CK_PROCESS(c, i)->hung = !tk_process_left(&c->t, TK_PROCESS(&c->t, i));
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);

		/* A thread that is only known as an owner may belong to another process, or may have ended long ago. */
		if (t->first_ns == INT64_MAX && !t->created.thread)
			continue;
		if (!(t->flags & PTT_THREAD_ENDED) && !ck_blocked(c, i))
			CK_PROCESS(c, t->process)->hung = false;
	}
}

/* The representative of the processes that may share memory with a process (union-find with path halving). */
static uint32_t group_of(uint32_t *group, uint32_t process)
{
	while (group[process] != process)
		process = group[process] = group[group[process]];
	return process;
}

/* Groups the processes that may share memory: parents and forked children, and processes that map the same memory. */
static void group_processes(struct ptt_check *c, uint32_t *group)
{
	struct rd_map first = { 0 };

	for (uint32_t i = 0; i < c->t.process_count; i++)
		group[i] = i;
	for (uint32_t i = 0; i < c->t.process_count; i++)
		if (CK_PROCESS(c, i)->parent && CK_PROCESS(c, i)->parent <= c->t.process_count)
			group[group_of(group, i)] = group_of(group, CK_PROCESS(c, i)->parent - 1);
	for (uint32_t i = 1; i < c->t.shares.count; i++) {
		const struct tk_share *s = TK_SHARE(&c->t, i);
		struct rd_entry *e = rd_map_put(&first, s->memory, 0);

		if (!e) {
			c->t.error = -ENOMEM;
			break;
		}
		if (e->value)
			group[group_of(group, s->process)] = group_of(group, (uint32_t)e->value - 1);
		e->value = s->process + UINT64_C(1);
	}
	rd_map_free(&first);
}

/* The end of the last running process of each group; INT64_MAX: it goes on, as far as it is known; INT64_MIN: none runs. */
static void find_last_ends(const struct ptt_check *c, uint32_t *group, const int64_t *ends, uint32_t count, int64_t *last)
{
	for (uint32_t i = 0; i < c->t.process_count; i++)
		last[i] = INT64_MIN;
	for (uint32_t i = 0; i < c->t.process_count; i++) {
		const struct ck_process *p = CK_PROCESS(c, i);
		int64_t end = i < count && ends[i] != TK_NEVER ? ends[i] : INT64_MAX;
		int64_t *of_group = &last[group_of(group, i)];

		if (!p->hung && !tk_process_left(&c->t, TK_PROCESS(&c->t, i)) && end > *of_group)
			*of_group = end;
	}
}

static void find_alone(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	uint32_t *group = calloc(c->t.process_count + 1, sizeof(*group));
	int64_t *last = calloc(c->t.process_count + 1, sizeof(*last));

	if (group && last) {
		group_processes(c, group);
		find_last_ends(c, group, ends, count, last);
		for (uint32_t i = 0; i < c->t.process_count; i++)
			CK_PROCESS(c, i)->alone = CK_PROCESS(c, i)->hung && last[group_of(group, i)] < CK_PROCESS(c, i)->last;
	} else {
		c->t.error = -ENOMEM;
	}
	free(group);
	free(last);
}

/* Lists threads that wait for something other than a barrier or a thread: waiters at a barrier may wait for these threads. */
static void find_late(struct ptt_check *c)
{
	for (uint32_t i = c->t.threads.count; i-- > 1;) {
		struct ck_thread *t = CK_THREAD(c, i);
		uint8_t kind = CK_WAITING(c, t->waits)->kind;

		if (!t->waits || kind == NPTL_DOMAIN_BARRIER || kind == PTT_KIND_THREAD)
			continue;
		t->late_next = CK_PROCESS(c, t->process)->late;
		CK_PROCESS(c, t->process)->late = i;
	}
}

void ck_find_hung(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	find_late(c);
	find_hung(c);
	find_alone(c, ends, count);
}

bool ck_suppose_no_handlers(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	bool any = false;

	for (uint32_t i = 0; i < c->t.process_count; i++)
		if (CK_PROCESS(c, i)->handlers_may)
			any = CK_PROCESS(c, i)->no_handlers = true;
	if (any) {
		find_hung(c);
		find_alone(c, ends, count);
	}
	return any;
}
