/* SPDX-License-Identifier: MIT */
/* before.c - what comes before what, by the points where threads meet: creations, joins, barriers. */
/*
 * What a thread does between two such points is one node, which knows the nodes right before it. Numbers grow with time, so
 * the way back from a node is never long without need. Nodes are made when an order of locks needs one.
 */
#include "facts.h"

static uint32_t node_new(struct ptt_check *c, uint32_t a, uint32_t b)
{
	uint32_t number = ck_new(c, &c->nodes);

	if (number)
		*CK_NODE(c, number) = (struct ck_node){ .before = { a, b } };
	return number;
}

uint32_t ck_publish(struct ptt_check *c, uint32_t thread)
{
	struct ck_thread *t = CK_THREAD(c, thread);

	if (t->own)
		t->base = t->own;
	t->own = 0;
	return t->base;
}

uint32_t ck_joined_node(struct ptt_check *c, uint32_t a, uint32_t b)
{
	if (a == b || !b)
		return a;
	return a ? node_new(c, a, b) : b;
}

uint32_t ck_own_node(struct ptt_check *c, uint32_t thread)
{
	struct ck_thread *t = CK_THREAD(c, thread);

	if (!t->own)
		t->own = node_new(c, t->base, 0);
	return t->own;
}

bool ck_stack_push(struct ptt_check *c, uint32_t *depth, uint32_t value)
{
	if (*depth == c->stack_room) {
		uint32_t room = c->stack_room ? c->stack_room * 2 : 1024;
		uint32_t *bigger = realloc(c->stack, room * sizeof(*bigger));

		if (!bigger) {
			c->t.error = -ENOMEM;
			return false;
		}
		c->stack = bigger;
		c->stack_room = room;
	}
	c->stack[(*depth)++] = value;
	return true;
}

/* Whether everything in node a is over when node b begins; also when that is too far to see. */
static bool comes_before(struct ptt_check *c, uint32_t a, uint32_t b)
{
	uint32_t depth = 0, mark = ++c->mark, seen = 0;

	if (a == b)
		return true;
	if (a > b)
		return false;
	ck_stack_push(c, &depth, b);
	while (depth) {
		const struct ck_node *node = CK_NODE(c, c->stack[--depth]);

		if (++seen > 1000000)
			return true;
		for (int i = 0; i < 2; i++) {
			uint32_t before = node->before[i];

			if (before == a)
				return true;
			if (before < a || CK_NODE(c, before)->mark == mark)
				continue;
			CK_NODE(c, before)->mark = mark;
			if (!ck_stack_push(c, &depth, before))
				return true;
		}
	}
	return false;
}

bool ck_apart_in_time(struct ptt_check *c, uint32_t a, uint32_t b)
{
	return a < b ? comes_before(c, a, b) : comes_before(c, b, a);
}
