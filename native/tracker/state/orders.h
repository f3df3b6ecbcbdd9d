/* SPDX-License-Identifier: MIT */
/* orders.h - which locks threads ask for while they hold others, and which cycles of these orders can deadlock. */
/*
 * An edge leads from a lock that a thread holds to a lock that it asks for. An order is an edge of one thread, with all the
 * other locks that the thread held then. A cycle of orders is a deadlock that has not happened yet if all of this holds: the
 * threads differ; no two threads held a lock in common; no semaphore has too few units for the threads that had one; at each
 * lock, one of its two threads wants the lock alone; no creation, join or barrier kept two of the orders apart in time; and
 * no request was a try. A cycle that cannot close comes with the reasons.
 *
 * A consumer of the tracker has a struct tk_orders beside its struct tracker, and the structs below in its elements.
 */
#ifndef PTT_TRACKER_ORDERS_H
#define PTT_TRACKER_ORDERS_H

#include "state.h"

#define TK_UNITS_MAX 4u

/* In the element of a thread. */
struct tk_order_thread {
	uint64_t held_sum; /* sum of tk_order_share() of its holds and units: the same in any order */
	uint32_t locks;	   /* number of its holds, without once routines */
	uint32_t units;	   /* number of semaphore units that it has */
	uint32_t unit[TK_UNITS_MAX]; /* their semaphores */
	uint32_t base;	   /* node of everything before its current actions */
	uint32_t own;	   /* node of its current actions, or 0 */
};

/* In the element of an object. */
struct tk_order_object {
	uint32_t edges_out; /* lists */
	uint32_t edges_in;
	uint32_t mark;
	uint32_t units; /* of a semaphore: number of units, while each thread gives back its own unit; else 0 */
	bool handed;	/* of a semaphore: a thread gave back a unit of another thread */
	bool prefers_writers; /* of a read-write lock: a waiting writer keeps readers out */
	uint32_t writers; /* list of requests by writers, as orders without an edge */
	uint32_t writer_count;
};

/* An earlier request of a thread with the same holds. */
struct tk_asked {
	uint64_t held;
	uint32_t what;
	uint32_t node;
};

struct tk_edge {
	uint32_t from;
	uint32_t to;
	uint32_t out_next;
	uint32_t in_next;
	uint32_t orders; /* list */
	uint16_t order_count;
	uint8_t most_held; /* maximum of `held` of its orders, when the edge is full */
	uint8_t from_mode;
	uint8_t to_mode;
	bool cyclic; /* it is part of a cycle of edges */
	bool tried; /* its requests do not wait for ever */
};

struct tk_order {
	uint64_t held_sum; /* as in struct tk_order_thread */
	int64_t held_since;
	int64_t ts;
	uint64_t held_site;
	uint64_t site;
	uint32_t edge;
	uint32_t next;
	uint32_t thread;
	uint32_t node;
	uint32_t locks; /* first element in `held` of struct tk_orders: object * 2 + (1 if shared or a semaphore), sorted */
	uint8_t held; /* number of these elements */
};

/* All actions of a thread between two points where threads meet. */
struct tk_node {
	uint32_t before[2];
	uint32_t mark;
};

#define TK_CYCLE_MAX 16u /* orders */
#define TK_WALK_MAX UINT64_C(30000000) /* steps of all searches; they must not take longer than the other work for the events */

/* Orders that close a cycle: each order begins at the lock that the order before it asks for. */
struct tk_cycle {
	uint32_t order[TK_CYCLE_MAX];
	uint32_t length;
	uint32_t steps; /* of the search for the cycle */
	uint32_t prevented; /* why the cycle cannot close: a bit (1 << PTT_PREVENTED_…) each */
	bool needs_writers; /* readers meet in the cycle: they keep each other out only while a writer waits */
};

struct tk_orders {
	struct tracker *t;
	size_t in_thread, in_object; /* offsets of the structs above in the elements of the consumer */
	struct rd_pool nodes, edges, orders, held;
	struct rd_map edge_of, order_of, set_of;
	uint32_t mark; /* of the last walk */
	uint64_t crowded; /* requests by threads that held too many locks to keep their orders */
	uint64_t walked; /* steps of all searches so far */
	uint64_t looked_back; /* nodes passed to compare orders in time */
	uint32_t *stack;
	uint32_t stack_room;
	/* A new order closes a cycle that can deadlock. */
	void (*closed)(struct tracker *t, const struct tk_event *e, const struct tk_cycle *cycle);
};

#define TK_NODE(o, i) (&((struct tk_node *)(void *)(o)->nodes.items)[i])
#define TK_EDGE(o, i) (&((struct tk_edge *)(void *)(o)->edges.items)[i])
#define TK_ORDER(o, i) (&((struct tk_order *)(void *)(o)->orders.items)[i])
#define TK_LOCKS(o, i) (&((uint32_t *)(void *)(o)->held.items)[i])
#define TK_ORDER_THREAD(o, i) ((struct tk_order_thread *)(void *)((o)->t->threads.items + (o)->t->threads.size * (i) + (o)->in_thread))
#define TK_ORDER_OBJECT(o, i) ((struct tk_order_object *)(void *)((o)->t->objects.items + (o)->t->objects.size * (i) + (o)->in_object))

/* tk_order_share - the number of a hold in `held_sum` of its thread. */
static inline uint64_t tk_order_share(uint32_t object, uint8_t mode)
{
	return rd_hash(object, (uint64_t)mode + 1);
}

static inline void tk_order_hold(struct tk_order_thread *t, uint32_t kind, uint32_t object, uint8_t mode)
{
	t->locks += kind != PTT_KIND_ONCE;
	t->held_sum += tk_order_share(object, mode);
}

static inline void tk_order_release(struct tk_order_thread *t, const struct tk_hold *h)
{
	t->locks -= h->kind != PTT_KIND_ONCE;
	t->held_sum -= tk_order_share(h->object, h->mode);
}

/* The rest of this file is in order: each file calls only files above it. Without memory, functions set the error of the tracker. */

/* ---- meetings.c ---- */

/* tk_stack_push - pushes a number for a walk along nodes or edges; one walk at a time. False: there is no memory. */
bool tk_stack_push(struct tk_orders *o, uint32_t *depth, uint32_t value);
/* tk_publish - the node of all actions of a thread so far. Its next actions belong to a new node. */
uint32_t tk_publish(struct tk_orders *o, uint32_t thread);
/* tk_joined_node - a node after nodes @a and @b; 0 is no node. */
uint32_t tk_joined_node(struct tk_orders *o, uint32_t a, uint32_t b);
/* tk_own_node - the node of the current actions of a thread. */
uint32_t tk_own_node(struct tk_orders *o, uint32_t thread);
/* tk_apart_in_time - whether one node is over when the other node begins. True as well if they are too far apart to tell. */
bool tk_apart_in_time(struct tk_orders *o, uint32_t a, uint32_t b);

/* ---- cycles.c ---- */

/* tk_cycle_search - looks for a cycle that can close, through a new order. Calls closed() of struct tk_orders with it. */
void tk_cycle_search(struct tk_orders *o, const struct tk_event *e, uint32_t order);
/* tk_cycle_handed - whether a thread of the cycle had a unit of a semaphore that turned out to keep no thread out. */
bool tk_cycle_handed(const struct tk_orders *o, const struct tk_cycle *cycle);
/*
 * tk_cycles_prevented - calls back with each cycle of up to 8 locks, with the orders that come nearest to closing it
 *
 * The search is bounded. Cycles that can close are included; their `prevented` is 0.
 */
void tk_cycles_prevented(struct tk_orders *o, void (*report)(struct tracker *t, const struct tk_cycle *cycle));

/* ---- orders.c ---- */

/* tk_orders_open - allocates the tables. Return: 0 or -ENOMEM. Call tk_orders_close() in both cases. */
int tk_orders_open(struct tk_orders *o, struct tracker *t);
void tk_orders_close(struct tk_orders *o);
/* tk_order_keep - keeps the orders from the holds of a thread to the lock that it asks for; see tk_ask(). */
void tk_order_keep(struct tk_orders *o, const struct tk_event *e, uint32_t object, uint8_t mode, bool tried);
/* tk_order_write - a thread asks to write under a read-write lock, and would wait for ever. */
void tk_order_write(struct tk_orders *o, const struct tk_event *e, uint32_t object);
/* tk_order_unit - a thread has taken a unit of a semaphore. */
void tk_order_unit(struct tk_orders *o, uint32_t thread, uint32_t object);
/* tk_order_unit_back - a thread posts a semaphore. If the thread has no unit, the semaphore keeps no thread out. */
void tk_order_unit_back(struct tk_orders *o, uint32_t thread, uint32_t object);

/*
 * tk_ask - a thread that holds locks asks for a lock. Inline, because every nested acquisition calls it.
 *
 * @asked: the TK_CACHE elements of the thread; @tried: the request does not wait for ever
 */
static inline void tk_ask(struct tk_orders *o, const struct tk_event *e, const struct tk_order_thread *t,
			  struct tk_asked *asked, uint32_t object, uint8_t mode, bool tried)
{
	uint32_t what = object << 2 | (uint32_t)tried << 1 | mode;
	uint32_t node = likely(t->own) ? t->own : tk_own_node(o, e->thread);

	asked += rd_hash(t->held_sum, what) % TK_CACHE;
	if (likely(asked->held == t->held_sum && asked->what == what && asked->node == node))
		return;
	*asked = (struct tk_asked){ .held = t->held_sum, .what = what, .node = node };
	tk_order_keep(o, e, object, mode, tried);
}

#endif
