/* SPDX-License-Identifier: MIT */
/* order.c - which locks are asked for while others are held, and whether that can close a cycle one day. */
/*
 * An edge leads from a lock that is held to one that is asked for. An order is an edge as one thread went along it, with
 * all the other locks it held then. A cycle of orders is a deadlock that has not happened yet if the threads differ, no two
 * held a lock in common, at each lock one of the two wants it alone, and no two were kept apart in time by a creation, a
 * join or a barrier.
 */
#include "facts.h"

/* Orders are kept of who holds no more locks than this at once: a lock that gates them may be any of those. */
#define HELD_MAX 64u
#define ORDERS_MAX 32u /* of an edge */
#define LONGEST 16u    /* cycle */
/* What all orders are searched for, with those that gates keep apart, must not take longer than the events themselves. */
#define STEPS_MAX 4000u
#define WALK_MAX UINT64_C(30000000)

struct ck_edge {
	uint32_t from;
	uint32_t to;
	uint32_t out_next;
	uint32_t in_next;
	uint32_t orders; /* list */
	uint16_t order_count;
	uint8_t most_held; /* of its orders, when they are as many as there may be */
	uint8_t from_mode;
	uint8_t to_mode;
	bool cyclic; /* there is a way back */
};

struct ck_order {
	uint64_t held_sum; /* stands for the locks held */
	int64_t held_since;
	int64_t ts;
	uint64_t held_site;
	uint64_t site;
	uint32_t edge;
	uint32_t next;
	uint32_t thread;
	uint32_t node;
	uint32_t locks; /* in `held`: the locks held, times two, plus one for a shared one; sorted */
	uint8_t held; /* how many */
};

#define CK_EDGE(c, i) (&((struct ck_edge *)(void *)(c)->edges.items)[i])
#define CK_LOCKS(c, i) (&((uint32_t *)(void *)(c)->held.items)[i])
#define CK_ORDER(c, i) (&((struct ck_order *)(void *)(c)->orders.items)[i])

int ck_order_open(struct ptt_check *c)
{
	int err = rd_pool_open(&c->edges, sizeof(struct ck_edge));

	err = err ? err : rd_pool_open(&c->orders, sizeof(struct ck_order));
	return err ? err : rd_pool_open(&c->held, sizeof(uint32_t));
}

/* ---- cycles ---- */

static bool both_shared(uint8_t a, uint8_t b)
{
	return a == PTT_MODE_SHARED && b == PTT_MODE_SHARED;
}

/* Whether one of the locks that they hold lets only one of them come so far. */
static bool gated(const struct ptt_check *c, const struct ck_order *a, const struct ck_order *b)
{
	const uint32_t *x = CK_LOCKS(c, a->locks), *y = CK_LOCKS(c, b->locks);
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

struct search {
	uint32_t path[LONGEST]; /* orders */
	uint32_t depth;
	uint32_t steps;
};

static bool fits(struct ptt_check *c, const struct search *s, uint32_t order)
{
	const struct ck_order *o = CK_ORDER(c, order);

	for (uint32_t i = 0; i < s->depth; i++) {
		const struct ck_order *other = CK_ORDER(c, s->path[i]);

		if (other->thread == o->thread || gated(c, other, o))
			return false;
	}
	for (uint32_t i = 0; i < s->depth; i++)
		if (ck_apart_in_time(c, CK_ORDER(c, s->path[i])->node, o->node))
			return false;
	return true;
}

static bool search_from(struct ptt_check *c, struct search *s);

/* Goes on along edges that close the cycle, or along the others. */
static bool search_along(struct ptt_check *c, struct search *s, bool close)
{
	const struct ck_edge *last = CK_EDGE(c, CK_ORDER(c, s->path[s->depth - 1])->edge);
	const struct ck_edge *first = CK_EDGE(c, CK_ORDER(c, s->path[0])->edge);

	for (uint32_t edge = CK_OBJECT(c, last->to)->edges_out; edge; edge = CK_EDGE(c, edge)->out_next) {
		const struct ck_edge *next = CK_EDGE(c, edge);
		bool closes = next->to == first->from;

		if (closes != close || !next->cyclic || both_shared(last->to_mode, next->from_mode))
			continue;
		if (closes && both_shared(next->to_mode, first->from_mode))
			continue;
		for (uint32_t order = next->orders; order; order = CK_ORDER(c, order)->next) {
			if (++s->steps > STEPS_MAX)
				return false;
			if (s->depth == LONGEST || !fits(c, s, order))
				continue;
			s->path[s->depth++] = order;
			if (closes || search_from(c, s))
				return true;
			s->depth--;
		}
	}
	return false;
}

/* Short cycles are easier to understand. */
static bool search_from(struct ptt_check *c, struct search *s)
{
	return search_along(c, s, true) || search_along(c, s, false);
}

/*
 * Whether the frames of a process's first thread are what they were when the first of these orders began: it has created
 * and joined threads since, and done nothing else.
 */
static bool stack_stood_still(const struct ptt_check *c, const struct search *s, uint32_t process)
{
	uint32_t first = CK_PROCESS(c, process)->first_thread;

	for (uint32_t i = 0; i < s->depth; i++) {
		const struct ck_order *o = CK_ORDER(c, s->path[i]);

		if (o->thread == first || o->held_since <= CK_THREAD(c, first)->busy_ts)
			return false;
	}
	return first != 0;
}

/* Whether a lock is the same one in all orders, and not another that came to lie at its address. */
static bool is_one(const struct ptt_check *c, const struct search *s, const struct ck_object *o)
{
	const struct ck_process *p = CK_PROCESS(c, o->process);

	return o->flags & PTT_OBJECT_MADE || ck_lasting(c, o) ||
	       (p->stack && o->address >= p->stack && stack_stood_still(c, s, o->process));
}

static void tell(struct ptt_check *c, const struct tk_event *e, const struct search *s)
{
	uint32_t flags = PTT_FLAG_WHOLE;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->depth; i++) {
		uint32_t from = CK_EDGE(c, CK_ORDER(c, s->path[i])->edge)->from;

		sum += rd_hash(from, 1);
		if (!is_one(c, s, CK_OBJECT(c, from)))
			flags |= PTT_FLAG_SUSPECT;
	}
	if (!ck_found(c, PTT_FACT_ORDER_CYCLE, e, sum, s->depth, flags))
		return;
	for (uint32_t i = 0; i < s->depth; i++) {
		const struct ck_order *o = CK_ORDER(c, s->path[i]);
		const struct ck_edge *edge = CK_EDGE(c, o->edge);

		ck_step(c, PTT_STEP_TOOK, o->thread, o->held_since, o->held_site, edge->from)->value = edge->from_mode;
		ck_step(c, PTT_STEP_ASKED, o->thread, o->ts, o->site, edge->to)->value = edge->to_mode;
	}
}

static void search(struct ptt_check *c, const struct tk_event *e, uint32_t order)
{
	struct search s = { .path = { order }, .depth = 1 };

	if (c->walked > WALK_MAX)
		return;
	if (search_from(c, &s))
		tell(c, e, &s);
	c->walked += s.steps;
}

/* ---- edges ---- */

/* Marks what can be reached from a lock. */
static uint32_t mark_ahead(struct ptt_check *c, uint32_t from)
{
	uint32_t depth = 0, mark = ++c->mark;

	CK_OBJECT(c, from)->mark = mark;
	ck_stack_push(c, &depth, from);
	while (depth && !c->t.error && c->walked < WALK_MAX)
		for (uint32_t edge = CK_OBJECT(c, c->stack[--depth])->edges_out; edge; edge = CK_EDGE(c, edge)->out_next) {
			uint32_t to = CK_EDGE(c, edge)->to;

			c->walked++;
			if (CK_OBJECT(c, to)->mark == mark)
				continue;
			CK_OBJECT(c, to)->mark = mark;
			ck_stack_push(c, &depth, to);
		}
	return mark;
}

/* A new edge may close cycles: all edges on them are told so. */
static void find_ways_back(struct ptt_check *c, uint32_t number)
{
	uint32_t from = CK_EDGE(c, number)->from, ahead = mark_ahead(c, CK_EDGE(c, number)->to), depth = 0;
	uint32_t back = ++c->mark;

	if (CK_OBJECT(c, from)->mark != ahead)
		return;
	CK_OBJECT(c, from)->mark = back;
	ck_stack_push(c, &depth, from);
	while (depth && !c->t.error)
		for (uint32_t edge = CK_OBJECT(c, c->stack[--depth])->edges_in; edge; edge = CK_EDGE(c, edge)->in_next) {
			struct ck_edge *in = CK_EDGE(c, edge);
			uint32_t mark = CK_OBJECT(c, in->from)->mark;

			c->walked++;
			if (mark != ahead && mark != back)
				continue;
			in->cyclic = true;
			if (mark == back)
				continue;
			CK_OBJECT(c, in->from)->mark = back;
			ck_stack_push(c, &depth, in->from);
		}
}

static uint32_t edge_of(struct ptt_check *c, const struct tk_hold *h, uint32_t object, uint8_t mode)
{
	struct rd_entry *entry = rd_map_put(&c->edge_of, (uint64_t)h->object << 32 | object,
					    (uint64_t)h->mode << 1 | mode);
	struct ck_edge *edge;

	if (!entry) {
		c->t.error = -ENOMEM;
		return 0;
	}
	if (entry->value)
		return (uint32_t)entry->value;
	entry->value = ck_new(c, &c->edges);
	edge = CK_EDGE(c, entry->value);
	*edge = (struct ck_edge){
		.from = h->object, .to = object, .from_mode = h->mode, .to_mode = mode,
		.out_next = CK_OBJECT(c, h->object)->edges_out, .in_next = CK_OBJECT(c, object)->edges_in,
	};
	CK_OBJECT(c, h->object)->edges_out = CK_OBJECT(c, object)->edges_in = (uint32_t)entry->value;
	find_ways_back(c, (uint32_t)entry->value);
	return (uint32_t)entry->value;
}

/* ---- orders ---- */

static void insert_sorted(uint32_t *locks, uint32_t count, uint32_t lock)
{
	for (; count && locks[count - 1] > lock; count--)
		locks[count] = locks[count - 1];
	locks[count] = lock;
}

/* The locks that a thread holds, in `held`; threads that hold the same ones have one set of them. */
static uint32_t set_of(struct ptt_check *c, const struct ck_thread *t)
{
	struct rd_entry *e = rd_map_put(&c->set_of, t->held_sum, t->locks);
	uint32_t locks[HELD_MAX], count = 0;

	if (!e) {
		c->t.error = -ENOMEM;
		return 0;
	}
	if (e->value)
		return (uint32_t)e->value;
	for (uint32_t hold = t->holds; hold; hold = CK_HOLD(c, hold)->thread_next)
		if (CK_HOLD(c, hold)->kind != NPTL_DOMAIN_ONCE)
			insert_sorted(locks, count++, CK_HOLD(c, hold)->object * 2 | CK_HOLD(c, hold)->mode);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = ck_new(c, &c->held);

		if (!number)
			return 0;
		if (!i)
			e->value = number;
		*CK_LOCKS(c, number) = locks[i];
	}
	return (uint32_t)e->value;
}

/* The first order of a thread along an edge with the same locks in its hand, and the last. */
struct places {
	uint32_t first;
	uint32_t last;
};

static bool is_at(const struct ptt_check *c, uint32_t order, const struct ck_order *new)
{
	const struct ck_order *o = CK_ORDER(c, order);

	return order && o->edge == new->edge && o->thread == new->thread && o->held_sum == new->held_sum;
}

static struct places places_of(const struct ptt_check *c, const struct ck_order *new)
{
	const struct rd_entry *e = rd_map_find(&c->order_of, (uint64_t)new->edge << 32 | new->thread, new->held_sum);
	struct places p = { 0, 0 };

	/* One of a thread that held too much may have been given up. */
	if (e && is_at(c, (uint32_t)e->value, new))
		p.first = (uint32_t)e->value;
	if (p.first && is_at(c, (uint32_t)(e->value >> 32), new))
		p.last = (uint32_t)(e->value >> 32);
	return p;
}

/* An edge has all the orders that it may have: gives up the one with the most locks, which proves least. */
static uint32_t give_up(struct ptt_check *c, struct ck_edge *edge, uint32_t held)
{
	uint32_t worst = 0, most = 0;

	if (edge->most_held && held >= edge->most_held)
		return 0;
	for (uint32_t i = edge->orders; i; i = CK_ORDER(c, i)->next) {
		if (CK_ORDER(c, i)->held < most || (CK_ORDER(c, i)->held == most && worst))
			continue;
		worst = i;
		most = CK_ORDER(c, i)->held;
	}
	edge->most_held = (uint8_t)most;
	return held < most ? worst : 0;
}

/* Where to keep an order that is new; 0: it is none, or there is no room for it. */
static uint32_t place_for(struct ptt_check *c, const struct ck_order *new)
{
	struct places p = places_of(c, new);
	struct ck_edge *edge = CK_EDGE(c, new->edge);
	struct rd_entry *e;
	uint32_t number;

	if (p.first && (CK_ORDER(c, p.first)->node == new->node || CK_ORDER(c, p.last)->node == new->node))
		return 0;
	if (p.last)
		return p.last;
	if (edge->order_count == ORDERS_MAX) {
		number = give_up(c, edge, new->held);
	} else {
		number = ck_new(c, &c->orders);
		CK_ORDER(c, number)->next = edge->orders;
		edge->orders = number;
		edge->order_count++;
	}
	e = number ? rd_map_put(&c->order_of, (uint64_t)new->edge << 32 | new->thread, new->held_sum) : NULL;
	if (e)
		e->value = p.first ? (uint64_t)number << 32 | p.first : number;
	return number;
}

static void ask_from(struct ptt_check *c, const struct tk_event *e, const struct tk_hold *h, uint32_t object,
		     uint8_t mode)
{
	const struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_order new = {
		.held_sum = t->held_sum, .held_since = h->since, .ts = e->ts, .held_site = h->site, .site = e->site,
		.edge = edge_of(c, h, object, mode), .thread = e->thread, .node = ck_own_node(c, e->thread),
		.locks = set_of(c, t), .held = (uint8_t)t->locks,
	};
	uint32_t order = new.edge ? place_for(c, &new) : 0;

	if (!order)
		return;
	new.next = CK_ORDER(c, order)->next;
	*CK_ORDER(c, order) = new;
	if (CK_EDGE(c, new.edge)->cyclic)
		search(c, e, order);
}

void ck_ask(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t what = object * 2 | mode, node = ck_own_node(c, e->thread);
	struct ck_asked *asked = &((struct ck_cache *)(void *)c->t.caches.items)[e->thread].asked[rd_hash(t->held_sum, what) % TK_CACHE];

	if (likely(asked->held == t->held_sum && asked->object == what && asked->node == node))
		return;
	*asked = (struct ck_asked){ .held = t->held_sum, .object = what, .node = node };
	if (t->locks > HELD_MAX) {
		c->crowded++;
		return;
	}
	for (uint32_t hold = t->holds; hold; hold = CK_HOLD(c, hold)->thread_next)
		if (CK_HOLD(c, hold)->kind != NPTL_DOMAIN_ONCE)
			ask_from(c, e, CK_HOLD(c, hold), object, mode);
}
