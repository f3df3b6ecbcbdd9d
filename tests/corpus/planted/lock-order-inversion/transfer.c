/* SPDX-License-Identifier: MIT */
/* transfer.c - transfers go both ways between two accounts on the heap; each transfer locks the giver first. */
/* expect: lock-order-inversion threads=east,west objects=mine,yours sites=receiver */
#include "corpus.h"
#include <threads.h>

struct account {
	int balance;
	mtx_t lock;
};

struct order {
	const char *name;
	struct account *from, *to;
	int turn;
};

static int turn;

static void transfer(struct account *from, struct account *to)
{
	mtx_lock(&from->lock);
	mtx_lock(&to->lock); /* SITE receiver */
	from->balance--;
	to->balance++;
	mtx_unlock(&to->lock);
	mtx_unlock(&from->lock);
}

static int teller(void *argument)
{
	struct order *order = argument;

	i_am(order->name);
	await(&turn, order->turn);
	transfer(order->from, order->to);
	arrive(&turn);
	return 0;
}

int main(void)
{
	struct account *mine = calloc(1, sizeof(*mine)), *yours = calloc(1, sizeof(*yours));
	struct order east = {"east", mine, yours, 0}, west = {"west", yours, mine, 1};
	thrd_t threads[2];

	mtx_init(&mine->lock, mtx_plain);
	mtx_init(&yours->lock, mtx_plain);
	object("mine", &mine->lock);
	object("yours", &yours->lock);
	thrd_create(&threads[0], teller, &east);
	thrd_create(&threads[1], teller, &west);
	thrd_join(threads[0], NULL);
	thrd_join(threads[1], NULL);
	mtx_destroy(&mine->lock);
	mtx_destroy(&yours->lock);
	free(mine);
	free(yours);
	return 0;
}
