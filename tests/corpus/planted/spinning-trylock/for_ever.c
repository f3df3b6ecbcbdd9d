/* SPDX-License-Identifier: MIT */
/* for_ever.c - a C11 thread spins on a mutex that another thread never releases. */
/* expect: spinning-trylock threads=spinner,keeper objects=door sites=try,take */
/* record: -l 3 */
#include "corpus.h"
#include <threads.h>

static mtx_t door;
static int taken;

static void *spins(void *unused)
{
	i_am("spinner");
	await(&taken, 1);
	for (;;) {
		if (mtx_trylock(&door) == thrd_success) /* SITE try */
			return unused;
		arrive(&taken);
	}
}

int main(void)
{
	OBJECT(door);
	i_am("keeper");
	mtx_init(&door, mtx_plain);
	start(spins, NULL);
	mtx_lock(&door); /* SITE take */
	arrive(&taken);
	await(&taken, 50000);
	_exit(0);
}
