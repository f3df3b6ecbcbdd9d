/* SPDX-License-Identifier: MIT */
/* order_cycles.c - facts about cycles of lock orders that can deadlock, and about cycles that something prevents. */
#include "../facts.h"

/*
 * Whether the first thread of a process has kept its stack frames since the first of these orders began: it has only created and
 * joined threads since then.
 */
static bool stack_stood_still(const struct ptt_check *c, const struct tk_cycle *cycle, uint32_t process)
{
	uint32_t first = CK_PROCESS(c, process)->first_thread;

	for (uint32_t i = 0; i < cycle->length; i++) {
		const struct tk_order *order = TK_ORDER(&c->orders, cycle->order[i]);

		if (order->thread == first || order->held_since <= CK_THREAD(c, first)->busy_ts)
			return false;
	}
	return first != 0;
}

/* Whether a lock is certainly the same lock in all orders, and not a new lock at its address. */
static bool is_same_lock(const struct ptt_check *c, const struct tk_cycle *cycle, const struct ck_object *o)
{
	const struct ck_process *p = CK_PROCESS(c, o->process);

	return o->flags & PTT_OBJECT_MADE || ck_lasting(c, o) ||
	       (p->stack && o->address >= p->stack && stack_stood_still(c, cycle, o->process));
}

static const struct tk_edge *edge_of(const struct ptt_check *c, const struct tk_cycle *cycle, uint32_t at)
{
	return TK_EDGE(&c->orders, TK_ORDER(&c->orders, cycle->order[at])->edge);
}

/* A number that is equal for cycles of the same locks. @flags: flags of the fact, to add to */
static uint64_t sum_of(const struct ptt_check *c, const struct tk_cycle *cycle, uint32_t *flags)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cycle->length; i++) {
		uint32_t from = edge_of(c, cycle, i)->from;

		sum += rd_hash(from, 1);
		if (!is_same_lock(c, cycle, CK_OBJECT(c, from)))
			*flags |= PTT_FLAG_SUSPECT;
	}
	return sum;
}

static void add_steps(struct ptt_check *c, const struct tk_cycle *cycle)
{
	for (uint32_t i = 0; i < cycle->length; i++) {
		const struct tk_order *o = TK_ORDER(&c->orders, cycle->order[i]);
		const struct tk_edge *edge = edge_of(c, cycle, i);

		ck_step(c, PTT_STEP_TOOK, o->thread, o->held_since, o->held_site, edge->from)->value = edge->from_mode;
		ck_step(c, PTT_STEP_ASKED, o->thread, o->ts, o->site, edge->to)->value = edge->to_mode;
	}
}

void ck_order_closed(struct tracker *t, const struct tk_event *e, const struct tk_cycle *cycle)
{
	struct ptt_check *c = (struct ptt_check *)(void *)t;
	uint32_t flags = PTT_FLAG_WHOLE;
	uint64_t sum = sum_of(c, cycle, &flags);

	if (!ck_fact_add(c, PTT_FACT_ORDER_CYCLE, e, sum, cycle->length, flags))
		return;
	CK_FACT(c, c->current)->value = cycle->needs_writers;
	add_steps(c, cycle);
}

/* The last request of a cycle, as the event that showed it. */
static struct tk_event last_of(const struct ptt_check *c, const struct tk_cycle *cycle)
{
	struct tk_event e = { .ts = INT64_MIN };

	for (uint32_t i = 0; i < cycle->length; i++) {
		const struct tk_order *o = TK_ORDER(&c->orders, cycle->order[i]);

		if (o->ts <= e.ts)
			continue;
		e.ts = o->ts;
		e.site = o->site;
		e.thread = o->thread;
		e.process = CK_THREAD(c, o->thread)->process;
	}
	return e;
}

static void prevented(struct tracker *t, const struct tk_cycle *cycle)
{
	struct ptt_check *c = (struct ptt_check *)(void *)t;
	struct tk_event e = last_of(c, cycle);
	uint32_t flags = 0, number;
	uint64_t sum = sum_of(c, cycle, &flags);

	if (ck_fact_known(c, PTT_FACT_ORDER_CYCLE, sum, cycle->length, 0) ||
	    ck_fact_known(c, PTT_FACT_ORDER_CYCLE, sum, cycle->length, PTT_FLAG_SUSPECT))
		return;
	/* When the last order came, a semaphore seemed to prevent the cycle, or no writer had come yet. */
	if (!cycle->prevented && (cycle->needs_writers || tk_cycle_handed(&c->orders, cycle))) {
		ck_order_closed(t, &e, cycle);
		return;
	}
	number = ck_fact_add(c, PTT_FACT_ORDER_CYCLE_PREVENTED, &e, sum, cycle->length, flags);
	if (!number)
		return;
	CK_FACT(c, number)->value = cycle->prevented;
	add_steps(c, cycle);
}

void ck_prevented_cycles(struct ptt_check *c)
{
	tk_cycles_prevented(&c->orders, prevented);
}
