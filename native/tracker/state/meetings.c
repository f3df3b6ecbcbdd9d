/* SPDX-License-Identifier: MIT */
/* meetings.c - the order in time of actions of threads, by the points where threads meet: creations, joins, barriers. */
/*
 * The actions of a thread between two such points are a node. A node knows the nodes right before it. Numbers of nodes grow with
 * time, so a walk back from a node stops early. A node is added when a lock order needs it.
 */
#include "orders.h"

static uint32_t node_new(struct tk_orders *o, uint32_t a, uint32_t b)
{
	uint32_t number = rd_pool_new(&o->nodes, &o->t->error);

	if (number)
		*TK_NODE(o, number) = (struct tk_node){ .before = { a, b } };
	return number;
}

uint32_t tk_publish(struct tk_orders *o, uint32_t thread)
{
	struct tk_order_thread *t = TK_ORDER_THREAD(o, thread);

	if (t->own)
		t->base = t->own;
	t->own = 0;
	return t->base;
}

uint32_t tk_joined_node(struct tk_orders *o, uint32_t a, uint32_t b)
{
	if (a == b || !b)
		return a;
	return a ? node_new(o, a, b) : b;
}

uint32_t tk_own_node(struct tk_orders *o, uint32_t thread)
{
	struct tk_order_thread *t = TK_ORDER_THREAD(o, thread);

	if (!t->own)
		t->own = node_new(o, t->base, 0);
	return t->own;
}

bool tk_stack_push(struct tk_orders *o, uint32_t *depth, uint32_t value)
{
	if (rd_array_reach((void **)&o->stack, &o->stack_room, *depth, sizeof(*o->stack)) < 0) {
		o->t->error = -ENOMEM;
		return false;
	}
	o->stack[(*depth)++] = value;
	return true;
}

/* Whether node a is over when node b begins. True as well if node a is too far back to tell. */
static bool comes_before(struct tk_orders *o, uint32_t a, uint32_t b)
{
	uint32_t depth = 0, mark = ++o->mark, seen = 0;

	if (a == b)
		return true;
	if (a > b)
		return false;
	tk_stack_push(o, &depth, b);
	while (depth) {
		const struct tk_node *node = TK_NODE(o, o->stack[--depth]);

		o->looked_back++;
		if (++seen > 1000000)
			return true;
		for (int i = 0; i < 2; i++) {
			uint32_t before = node->before[i];

			if (before == a)
				return true;
			if (before < a || TK_NODE(o, before)->mark == mark)
				continue;
			TK_NODE(o, before)->mark = mark;
			if (!tk_stack_push(o, &depth, before))
				return true;
		}
	}
	return false;
}

bool tk_apart_in_time(struct tk_orders *o, uint32_t a, uint32_t b)
{
	return a < b ? comes_before(o, a, b) : comes_before(o, b, a);
}
