/* SPDX-License-Identifier: MIT */
/* orders.c - requests for locks by threads that hold locks: the edges between the locks, and the orders of each edge. */
#include "hot.h"
#include "orders.h"

/* A thread with more locks than this adds no orders: an order keeps all locks of its thread, since any of them may be a gate. */
#define HELD_MAX 64u
#define ORDERS_MAX 32u /* of an edge */
#define WRITERS_MAX 8u /* of a read-write lock */

int tk_orders_open(struct tk_orders *o, struct tracker *t)
{
	int err = rd_pool_open(&o->nodes, sizeof(struct tk_node));

	o->t = t;
	err |= rd_pool_open(&o->edges, sizeof(struct tk_edge));
	err |= rd_pool_open(&o->orders, sizeof(struct tk_order));
	err |= rd_pool_open(&o->held, sizeof(uint32_t));
	return err ? -ENOMEM : 0;
}

void tk_orders_close(struct tk_orders *o)
{
	struct rd_pool *pools[] = { &o->nodes, &o->edges, &o->orders, &o->held };
	struct rd_map *maps[] = { &o->edge_of, &o->order_of, &o->set_of };

	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		rd_pool_close(pools[i]);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		rd_map_free(maps[i]);
	free(o->stack);
}

/* ---- edges ---- */

/* Marks all locks that edges reach from a lock. Return: the mark. */
static uint32_t mark_ahead(struct tk_orders *o, uint32_t from)
{
	uint32_t depth = 0, mark = ++o->mark;

	TK_ORDER_OBJECT(o, from)->mark = mark;
	tk_stack_push(o, &depth, from);
	while (depth && !o->t->error && o->walked < TK_WALK_MAX)
		for (uint32_t edge = TK_ORDER_OBJECT(o, o->stack[--depth])->edges_out; edge; edge = TK_EDGE(o, edge)->out_next) {
			uint32_t to = TK_EDGE(o, edge)->to;

			o->walked++;
			if (TK_ORDER_OBJECT(o, to)->mark == mark)
				continue;
			TK_ORDER_OBJECT(o, to)->mark = mark;
			tk_stack_push(o, &depth, to);
		}
	return mark;
}

/* A new edge may close cycles: marks all edges of these cycles. */
static void find_ways_back(struct tk_orders *o, uint32_t number)
{
	uint32_t from = TK_EDGE(o, number)->from, ahead = mark_ahead(o, TK_EDGE(o, number)->to), depth = 0;
	uint32_t back = ++o->mark;

	if (TK_ORDER_OBJECT(o, from)->mark != ahead)
		return;
	TK_ORDER_OBJECT(o, from)->mark = back;
	tk_stack_push(o, &depth, from);
	while (depth && !o->t->error)
		for (uint32_t edge = TK_ORDER_OBJECT(o, o->stack[--depth])->edges_in; edge; edge = TK_EDGE(o, edge)->in_next) {
			struct tk_edge *in = TK_EDGE(o, edge);
			uint32_t mark = TK_ORDER_OBJECT(o, in->from)->mark;

			o->walked++;
			if (mark != ahead && mark != back)
				continue;
			in->cyclic = true;
			if (mark == back)
				continue;
			TK_ORDER_OBJECT(o, in->from)->mark = back;
			tk_stack_push(o, &depth, in->from);
		}
}

static uint32_t edge_of(struct tk_orders *o, const struct tk_hold *h, uint32_t object, uint8_t mode, bool tried)
{
	struct rd_entry *entry = rd_map_put(&o->edge_of, (uint64_t)h->object << 32 | object,
					    (uint64_t)tried << 2 | (uint64_t)h->mode << 1 | mode);
	struct tk_edge *edge;

	if (!entry) {
		o->t->error = -ENOMEM;
		return 0;
	}
	if (entry->value)
		return (uint32_t)entry->value;
	entry->value = rd_pool_new(&o->edges, &o->t->error);
	edge = TK_EDGE(o, entry->value);
	*edge = (struct tk_edge){
		.from = h->object, .to = object, .from_mode = h->mode, .to_mode = mode, .tried = tried,
		.out_next = TK_ORDER_OBJECT(o, h->object)->edges_out, .in_next = TK_ORDER_OBJECT(o, object)->edges_in,
	};
	TK_ORDER_OBJECT(o, h->object)->edges_out = TK_ORDER_OBJECT(o, object)->edges_in = (uint32_t)entry->value;
	find_ways_back(o, (uint32_t)entry->value);
	return (uint32_t)entry->value;
}

/* ---- orders ---- */

static void insert_sorted(uint32_t *locks, uint32_t count, uint32_t lock)
{
	for (; count && locks[count - 1] > lock; count--)
		locks[count] = locks[count - 1];
	locks[count] = lock;
}

/* The set of a thread's locks and semaphores, as the number of its first element in `held`. Equal sets are stored once. */
static uint32_t set_of(struct tk_orders *o, const struct tk_order_thread *t, uint32_t hold)
{
	struct rd_entry *e = rd_map_put(&o->set_of, t->held_sum, t->locks + t->units);
	uint32_t locks[HELD_MAX + TK_UNITS_MAX], count = 0;

	if (!e) {
		o->t->error = -ENOMEM;
		return 0;
	}
	if (e->value)
		return (uint32_t)e->value;
	for (; hold; hold = TK_HOLD(o->t, hold)->thread_next)
		if (TK_HOLD(o->t, hold)->kind != PTT_KIND_ONCE)
			insert_sorted(locks, count++, TK_HOLD(o->t, hold)->object * 2 | TK_HOLD(o->t, hold)->mode);
	for (uint32_t i = 0; i < t->units; i++)
		insert_sorted(locks, count++, t->unit[i] * 2 | PTT_MODE_SHARED);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = rd_pool_new(&o->held, &o->t->error);

		if (!number)
			return 0;
		if (!i)
			e->value = number;
		*TK_LOCKS(o, number) = locks[i];
	}
	return (uint32_t)e->value;
}

/* The first and the last order of a thread along an edge with the same set of locks. */
struct places {
	uint32_t first;
	uint32_t last;
};

static bool is_at(const struct tk_orders *o, uint32_t order, const struct tk_order *new)
{
	const struct tk_order *old = TK_ORDER(o, order);

	return order && old->edge == new->edge && old->thread == new->thread && old->held_sum == new->held_sum;
}

static struct places places_of(const struct tk_orders *o, const struct tk_order *new)
{
	const struct rd_entry *e = rd_map_find(&o->order_of, (uint64_t)new->edge << 32 | new->thread, new->held_sum);
	struct places p = { 0, 0 };

	/* give_up() may have given its place to another order. */
	if (e && is_at(o, (uint32_t)e->value, new))
		p.first = (uint32_t)e->value;
	if (p.first && is_at(o, (uint32_t)(e->value >> 32), new))
		p.last = (uint32_t)(e->value >> 32);
	return p;
}

/* An edge is full: finds its order with the most locks, which proves least. 0: a new order with @held locks proves no more. */
static uint32_t give_up(struct tk_orders *o, struct tk_edge *edge, uint32_t held)
{
	uint32_t worst = 0, most = 0;

	if (edge->most_held && held >= edge->most_held)
		return 0;
	for (uint32_t i = edge->orders; i; i = TK_ORDER(o, i)->next) {
		if (TK_ORDER(o, i)->held < most || (TK_ORDER(o, i)->held == most && worst))
			continue;
		worst = i;
		most = TK_ORDER(o, i)->held;
	}
	edge->most_held = (uint8_t)most;
	return held < most ? worst : 0;
}

/* The place for an order; 0: the order is known, or there is no room for it. */
static uint32_t place_for(struct tk_orders *o, const struct tk_order *new)
{
	struct places p = places_of(o, new);
	struct tk_edge *edge = TK_EDGE(o, new->edge);
	struct rd_entry *e;
	uint32_t number;

	if (p.first && (TK_ORDER(o, p.first)->node == new->node || TK_ORDER(o, p.last)->node == new->node))
		return 0;
	if (p.last)
		return p.last;
	if (edge->order_count == ORDERS_MAX) {
		number = give_up(o, edge, new->held);
	} else {
		number = rd_pool_new(&o->orders, &o->t->error);
		TK_ORDER(o, number)->next = edge->orders;
		edge->orders = number;
		edge->order_count++;
	}
	e = number ? rd_map_put(&o->order_of, (uint64_t)new->edge << 32 | new->thread, new->held_sum) : NULL;
	if (e)
		e->value = p.first ? (uint64_t)number << 32 | p.first : number;
	return number;
}

/* Keeps the order from one hold of a thread to the lock that the thread asks for. */
static void keep_from(struct tk_orders *o, const struct tk_event *e, const struct tk_hold *h, uint32_t object, uint8_t mode,
		      bool tried)
{
	const struct tk_order_thread *t = TK_ORDER_THREAD(o, e->thread);
	struct tk_order new = {
		.held_sum = t->held_sum, .held_since = h->since, .ts = e->ts, .held_site = h->site, .site = e->site,
		.edge = edge_of(o, h, object, mode, tried), .thread = e->thread, .node = tk_own_node(o, e->thread),
		.locks = set_of(o, t, TK_THREAD(o->t, e->thread)->holds), .held = (uint8_t)(t->locks + t->units),
	};
	uint32_t order = new.edge ? place_for(o, &new) : 0;

	if (!order)
		return;
	new.next = TK_ORDER(o, order)->next;
	*TK_ORDER(o, order) = new;
	if (TK_EDGE(o, new.edge)->cyclic && !tried)
		tk_cycle_search(o, e, order);
}

void tk_order_keep(struct tk_orders *o, const struct tk_event *e, uint32_t object, uint8_t mode, bool tried)
{
	if (TK_ORDER_THREAD(o, e->thread)->locks > HELD_MAX) {
		o->crowded += !tried;
		return;
	}
	for (uint32_t hold = TK_THREAD(o->t, e->thread)->holds; hold; hold = TK_HOLD(o->t, hold)->thread_next)
		if (TK_HOLD(o->t, hold)->kind != PTT_KIND_ONCE)
			keep_from(o, e, TK_HOLD(o->t, hold), object, mode, tried);
}

/* ---- writers ---- */

void tk_order_write(struct tk_orders *o, const struct tk_event *e, uint32_t object)
{
	const struct tk_order_thread *t = TK_ORDER_THREAD(o, e->thread);
	struct tk_order_object *lock = TK_ORDER_OBJECT(o, object);
	uint32_t node, number;

	if (likely(!lock->prefers_writers) || lock->writer_count == WRITERS_MAX || t->locks > HELD_MAX)
		return;
	node = tk_own_node(o, e->thread);
	for (uint32_t i = lock->writers; i; i = TK_ORDER(o, i)->next)
		if (TK_ORDER(o, i)->thread == e->thread && TK_ORDER(o, i)->node == node && TK_ORDER(o, i)->held_sum == t->held_sum)
			return;
	number = rd_pool_new(&o->orders, &o->t->error);
	if (!number)
		return;
	*TK_ORDER(o, number) = (struct tk_order){
		.held_sum = t->held_sum, .ts = e->ts, .site = e->site, .next = lock->writers, .thread = e->thread, .node = node,
		.locks = set_of(o, t, TK_THREAD(o->t, e->thread)->holds), .held = (uint8_t)(t->locks + t->units),
	};
	lock->writers = number;
	lock->writer_count++;
}

/* ---- units of semaphores ---- */

void tk_order_unit(struct tk_orders *o, uint32_t thread, uint32_t object)
{
	struct tk_order_thread *t = TK_ORDER_THREAD(o, thread);

	if (!TK_ORDER_OBJECT(o, object)->units || t->units == TK_UNITS_MAX)
		return;
	t->unit[t->units++] = object;
	t->held_sum += tk_order_share(object, PTT_MODE_SHARED);
}

void tk_order_unit_back(struct tk_orders *o, uint32_t thread, uint32_t object)
{
	struct tk_order_thread *t = TK_ORDER_THREAD(o, thread);

	for (uint32_t i = t->units; i--;)
		if (t->unit[i] == object) {
			t->unit[i] = t->unit[--t->units];
			t->held_sum -= tk_order_share(object, PTT_MODE_SHARED);
			return;
		}
	if (TK_ORDER_OBJECT(o, object)->units)
		TK_ORDER_OBJECT(o, object)->handed = true;
	TK_ORDER_OBJECT(o, object)->units = 0;
}
