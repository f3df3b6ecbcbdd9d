/* SPDX-License-Identifier: MIT */
/* pthreads.c - the thread that a pthread_t stood for: another thread may get the address of an ended thread. */
#include "pthreads.h"

#include "tables.h"

static int order(const void *a, const void *b)
{
	const struct rd_tenure *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->pthread != y->pthread)
		return x->pthread < y->pthread ? -1 : 1;
	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

void rd_pthreads_free(struct rd_pthreads *pthreads)
{
	free(pthreads->tenures);
	rd_map_free(&pthreads->begun);
	rd_map_free(&pthreads->begun_ts);
}

int rd_pthreads_add(struct rd_pthreads *pthreads, const struct rd_tenure *tenure)
{
	if (rd_grow((void **)&pthreads->tenures, &pthreads->room, pthreads->count, sizeof(*tenure)) < 0)
		return -ENOMEM;
	pthreads->tenures[pthreads->count++] = *tenure;
	pthreads->sorted = false;
	return 0;
}

/* Sorts the tenures and drops repeated ones. */
static void sort(struct rd_pthreads *pthreads)
{
	uint32_t kept = 0;

	if (pthreads->count)
		qsort(pthreads->tenures, pthreads->count, sizeof(*pthreads->tenures), order);
	for (uint32_t i = 0; i < pthreads->count; i++)
		if (!kept || order(&pthreads->tenures[kept - 1], &pthreads->tenures[i]) != 0)
			pthreads->tenures[kept++] = pthreads->tenures[i];
	pthreads->count = kept;
	pthreads->sorted = true;
}

/* The last thread that had the address until then, or else the first thread that ever had it. */
static const struct rd_tenure *tenure_at(struct rd_pthreads *pthreads, uint32_t process, uint64_t pthread, int64_t ts)
{
	struct rd_tenure wanted = { .process = process, .pthread = pthread, .since = ts, .thread = UINT32_MAX };
	uint32_t low = 0, high;

	if (!pthreads->sorted)
		sort(pthreads);
	high = pthreads->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (order(&pthreads->tenures[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = low ? low - 1 : 0; i <= low && i < pthreads->count; i++)
		if (pthreads->tenures[i].process == process && pthreads->tenures[i].pthread == pthread)
			return &pthreads->tenures[i];
	return NULL;
}

void rd_pthreads_begin(struct rd_pthreads *pthreads, const struct rd_tenure *seen)
{
	struct rd_entry *thread = rd_map_put(&pthreads->begun, seen->process, seen->pthread);
	struct rd_entry *ts = rd_map_put(&pthreads->begun_ts, seen->process, seen->pthread);

	if (!thread || !ts)
		return;
	thread->value = (uint64_t)seen->thread + 1;
	ts->value = (uint64_t)seen->since;
}

uint32_t rd_pthread_at(struct rd_pthreads *pthreads, uint32_t process, uint64_t pthread, int64_t ts)
{
	const struct rd_tenure *tenure = tenure_at(pthreads, process, pthread, ts);
	const struct rd_entry *begun = rd_map_find(&pthreads->begun, process, pthread);
	const struct rd_entry *begun_ts = rd_map_find(&pthreads->begun_ts, process, pthread);

	if (begun && begun->value && begun_ts &&
	    (!tenure || ((int64_t)begun_ts->value <= ts && (int64_t)begun_ts->value > tenure->since)))
		return (uint32_t)begun->value;
	return tenure ? tenure->thread + 1 : 0;
}
