/* SPDX-License-Identifier: MIT */
/* cycles.c - cycles of lock orders that can deadlock, and the reasons why other cycles cannot. */
#include "orders.h"

/* Limit of one search. Searches must not take longer than the other work for the events. */
#define STEPS_MAX 4000u
/* Limits of the search through all edges at the end. */
#define EDGES_MAX 100000u   /* edges followed */
#define PAIRS_MAX 100000u   /* pairs of orders compared */
#define NODES_MAX 10000000u /* nodes passed to compare orders in time */
#define PREVENTED_LONGEST 8u
#define BY(why) (1u << PTT_PREVENTED_##why)

static bool both_shared(uint8_t a, uint8_t b)
{
	return a == PTT_MODE_SHARED && b == PTT_MODE_SHARED;
}

/* Whether a lock that both orders hold admits only one of the two threads at a time. */
static bool gated(const struct tk_orders *o, const struct tk_order *a, const struct tk_order *b)
{
	const uint32_t *x = TK_LOCKS(o, a->locks), *y = TK_LOCKS(o, b->locks);
	uint32_t i = 0, k = 0;

	while (i < a->held && k < b->held) {
		if (x[i] / 2 == y[k] / 2 && !(x[i] & y[k] & 1))
			return true;
		if (x[i] < y[k])
			i++;
		else
			k++;
	}
	return false;
}

static bool holds(const struct tk_orders *o, const struct tk_order *order, uint32_t lock)
{
	for (uint32_t i = 0; i < order->held; i++)
		if (TK_LOCKS(o, order->locks)[i] == lock)
			return true;
	return false;
}

/* Whether @new holds a unit of a semaphore that has too few units for @new and the orders of the cycle together. */
static bool out_of_units(const struct tk_orders *o, const struct tk_cycle *s, const struct tk_order *new)
{
	for (uint32_t i = 0; i < new->held; i++) {
		uint32_t lock = TK_LOCKS(o, new->locks)[i], units = TK_ORDER_OBJECT(o, lock / 2)->units, have = 1;

		for (uint32_t k = 0; units && k < s->length; k++)
			have += holds(o, TK_ORDER(o, s->order[k]), lock);
		if (units && have > units)
			return true;
	}
	return false;
}

bool tk_cycle_handed(const struct tk_orders *o, const struct tk_cycle *cycle)
{
	for (uint32_t i = 0; i < cycle->length; i++) {
		const struct tk_order *order = TK_ORDER(o, cycle->order[i]);

		for (uint32_t k = 0; k < order->held; k++)
			if (TK_ORDER_OBJECT(o, TK_LOCKS(o, order->locks)[k] / 2)->handed)
				return true;
	}
	return false;
}

static bool fits(struct tk_orders *o, const struct tk_cycle *s, uint32_t order)
{
	const struct tk_order *new = TK_ORDER(o, order);

	for (uint32_t i = 0; i < s->length; i++) {
		const struct tk_order *other = TK_ORDER(o, s->order[i]);

		if (other->thread == new->thread || gated(o, other, new))
			return false;
	}
	if (out_of_units(o, s, new))
		return false;
	for (uint32_t i = 0; i < s->length; i++)
		if (tk_apart_in_time(o, TK_ORDER(o, s->order[i])->node, new->node))
			return false;
	return true;
}

static bool search_from(struct tk_orders *o, struct tk_cycle *s);

/* Continues along the edges that close the cycle, or along the other edges. */
static bool search_along(struct tk_orders *o, struct tk_cycle *s, bool close)
{
	const struct tk_edge *last = TK_EDGE(o, TK_ORDER(o, s->order[s->length - 1])->edge);
	const struct tk_edge *first = TK_EDGE(o, TK_ORDER(o, s->order[0])->edge);

	for (uint32_t edge = TK_ORDER_OBJECT(o, last->to)->edges_out; edge; edge = TK_EDGE(o, edge)->out_next) {
		const struct tk_edge *next = TK_EDGE(o, edge);
		bool closes = next->to == first->from;

		if (closes != close || !next->cyclic || next->tried || both_shared(last->to_mode, next->from_mode))
			continue;
		if (closes && both_shared(next->to_mode, first->from_mode))
			continue;
		for (uint32_t order = next->orders; order; order = TK_ORDER(o, order)->next) {
			if (++s->steps > STEPS_MAX)
				return false;
			if (s->length == TK_CYCLE_MAX || !fits(o, s, order))
				continue;
			s->order[s->length++] = order;
			if (closes || search_from(o, s))
				return true;
			s->length--;
		}
	}
	return false;
}

/* Short cycles are easier to understand. */
static bool search_from(struct tk_orders *o, struct tk_cycle *s)
{
	return search_along(o, s, true) || search_along(o, s, false);
}

void tk_cycle_search(struct tk_orders *o, const struct tk_event *e, uint32_t order)
{
	struct tk_cycle s = { .order = { order }, .length = 1 };

	if (o->walked > TK_WALK_MAX)
		return;
	if (search_from(o, &s))
		o->closed(o->t, e, &s);
	o->walked += s.steps;
}

/* ---- cycles that cannot close ---- */

struct round {
	uint32_t edge[PREVENTED_LONGEST];
	uint32_t length;
	uint32_t followed;
	uint32_t compared;
	uint64_t looked_back; /* limit of `looked_back` of struct tk_orders */
	bool tries; /* follow also the edges of requests that do not wait for ever */
	void (*report)(struct tracker *t, const struct tk_cycle *cycle);
};

static uint32_t prevented_by(struct tk_orders *o, const struct tk_order *a, const struct tk_order *b)
{
	uint32_t why = gated(o, a, b) ? BY(GATE) : 0;

	if (a->thread == b->thread)
		return why | BY(ONE_THREAD);
	return why || !tk_apart_in_time(o, a->node, b->node) ? why : BY(APART);
}

/* Whether the search has reached one of its limits. */
static bool is_over(const struct tk_orders *o, const struct round *r)
{
	return r->followed > EDGES_MAX || r->compared >= PAIRS_MAX || o->looked_back > r->looked_back;
}

/* The order of an edge that the chosen orders prevent for the fewest reasons. @why: these reasons. */
static uint32_t least_prevented(struct tk_orders *o, struct round *r, const struct tk_cycle *chosen, uint32_t edge, uint32_t *why)
{
	uint32_t best = 0;

	for (uint32_t order = TK_EDGE(o, edge)->orders; order && (!best || *why); order = TK_ORDER(o, order)->next) {
		uint32_t all = 0;

		for (uint32_t i = 0; i < chosen->length && !is_over(o, r); i++, r->compared++)
			all |= prevented_by(o, TK_ORDER(o, chosen->order[i]), TK_ORDER(o, order));
		if (best && __builtin_popcount(all) >= __builtin_popcount(*why))
			continue;
		best = order;
		*why = all;
	}
	return best;
}

/* Whether a thread can be at its order while all threads of a cycle are at their orders. */
static bool can_join(struct tk_orders *o, const struct tk_cycle *cycle, const struct tk_order *order)
{
	for (uint32_t i = 0; i < cycle->length; i++)
		if (prevented_by(o, TK_ORDER(o, cycle->order[i]), order))
			return false;
	return true;
}

/* Whether a writer may wait in front of a reader that asks for a lock which another reader of the cycle has. */
static bool finds_writer(struct tk_orders *o, struct round *r, const struct tk_cycle *cycle, uint32_t lock)
{
	for (uint32_t i = TK_ORDER_OBJECT(o, lock)->writers; i && !is_over(o, r); i = TK_ORDER(o, i)->next) {
		r->compared += cycle->length;
		if (can_join(o, cycle, TK_ORDER(o, i)))
			return true;
	}
	return false;
}

static void let_readers_in(struct tk_orders *o, struct round *r, struct tk_cycle *cycle)
{
	for (uint32_t i = 0; i < r->length; i++) {
		const struct tk_edge *edge = TK_EDGE(o, r->edge[i]), *next = TK_EDGE(o, r->edge[(i + 1) % r->length]);

		if (!both_shared(edge->to_mode, next->from_mode))
			continue;
		if (finds_writer(o, r, cycle, edge->to))
			cycle->needs_writers = true;
		else
			cycle->prevented |= BY(SHARED);
	}
}

static void close_round(struct tk_orders *o, struct round *r)
{
	struct tk_cycle cycle = { .steps = 0 };

	for (uint32_t i = 0; i < r->length; i++) {
		uint32_t why = 0, order = least_prevented(o, r, &cycle, r->edge[i], &why);

		if (!order)
			return;
		if (out_of_units(o, &cycle, TK_ORDER(o, order)))
			why |= BY(GATE);
		cycle.order[cycle.length++] = order;
		cycle.prevented |= why | (TK_EDGE(o, r->edge[i])->tried ? BY(TRY) : 0);
	}
	let_readers_in(o, r, &cycle);
	/* Without all comparisons the reasons are unknown. */
	if (!is_over(o, r))
		r->report(o->t, &cycle);
}

static bool is_on(const struct tk_orders *o, const struct round *r, uint32_t object)
{
	for (uint32_t i = 0; i < r->length; i++)
		if (TK_EDGE(o, r->edge[i])->from == object)
			return true;
	return false;
}

/* Follows cycles from their first lock: the lock that the trace shows first. */
static void follow(struct tk_orders *o, struct round *r, uint32_t first, uint32_t object)
{
	for (uint32_t edge = TK_ORDER_OBJECT(o, object)->edges_out; edge; edge = TK_EDGE(o, edge)->out_next) {
		const struct tk_edge *e = TK_EDGE(o, edge);

		r->followed++;
		if (is_over(o, r))
			return;
		if (!e->cyclic || (e->tried && !r->tries) || e->to < first || (e->to != first && is_on(o, r, e->to)))
			continue;
		r->edge[r->length++] = edge;
		if (e->to == first)
			close_round(o, r);
		else if (r->length < PREVENTED_LONGEST)
			follow(o, r, first, e->to);
		r->length--;
	}
}

void tk_cycles_prevented(struct tk_orders *o, void (*report)(struct tracker *t, const struct tk_cycle *cycle))
{
	for (int tries = 0; tries <= 1; tries++) {
		struct round r = { .looked_back = o->looked_back + NODES_MAX, .tries = tries, .report = report };

		for (uint32_t i = 1; i < o->t->objects.count && o->edges.count > 1; i++)
			follow(o, &r, i, i);
	}
}
