/* SPDX-License-Identifier: MIT */
/* process_entries.c - process entries: finds new, changed and dead processes, and gives entries back. */
/*
 * A look costs a few instructions for each entry that was ever in use, and more only for entries with changes. An entry is given
 * back once its image is gone, the entries of its threads have been given back, and its announced call sites are on disk.
 */
#include "../collector.h"

#include <errno.h>
#include <stdlib.h>

/* The collector's notes about a process entry, in addition to the segment. */
struct process_note {
	uint32_t state; /* the last state that ptt_collector_processes() reported */
	uint32_t image;
	uint32_t pid;   /* pid in our PID namespace; 0 = not found, or not looked for */
	bool gone;
	uint64_t sites; /* number of call sites in the journal when the process was gone */
};

int processes_init(struct ptt_collector *c)
{
	c->process_note = calloc(c->head.process_count, sizeof(*c->process_note));
	c->process_used = calloc(c->head.process_count, sizeof(*c->process_used));
	return c->process_note && c->process_used ? 0 : -ENOMEM;
}

uint32_t process_high(const struct ptt_collector *c)
{
	/* acquire: pairs with the release of the process that took the entry */
	uint32_t high = __atomic_load_n(&c->segment->process_high, __ATOMIC_ACQUIRE);

	return high < c->head.process_count ? high : c->head.process_count;
}

int ptt_collector_processes(struct ptt_collector *c, struct ptt_collector_process *processes, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < process_high(c) && n < count; i++) {
		struct process_note *note = &c->process_note[i];
		/* acquire: pairs with the release of LIVE after the entry was filled in */
		uint32_t state = __atomic_load_n(&c->process[i].state, __ATOMIC_ACQUIRE);

		if (state == note->state || note->gone)
			continue;
		note->state = state;
		processes[n].entry = c->process[i];
		processes[n].entry.state = state;
		processes[n++].index = i;
	}
	return (int)n;
}

uint32_t ptt_collector_process_pid(struct ptt_collector *c, uint32_t index)
{
	struct ptt_process entry;

	if (index >= c->head.process_count)
		return 0;
	entry = c->process[index];
	if (!c->process_note[index].pid || c->process_note[index].image != entry.image) {
		c->process_note[index].image = entry.image;
		c->process_note[index].pid = identity_pid(c, &entry);
	}
	return c->process_note[index].pid;
}

uint32_t process_image(const struct ptt_collector *c, uint32_t index)
{
	return index < c->head.process_count ? c->process[index].image : PTT_NO_IMAGE;
}

bool process_is_gone(const struct ptt_collector *c, uint32_t index)
{
	return index < c->head.process_count && c->process_note[index].gone;
}

int ptt_collector_process_gone(struct ptt_collector *c, uint32_t index)
{
	if (index >= c->head.process_count)
		return -EINVAL;
	if (c->shared_process)
		c->shared_process[index].gone = 1;
	/* acquire: the process reserved its entries of the journal before it ended */
	c->process_note[index].sites = __atomic_load_n(&c->segment->site_head, __ATOMIC_ACQUIRE);
	if (!c->process_note[index].gone)
		c->gone_processes++;
	c->process_note[index].gone = true;
	return 0;
}

static void give_back(struct ptt_collector *c, uint32_t index)
{
	struct ptt_process *p = &c->process[index];

	c->lost_threads += p->lost_threads;
	c->process_note[index] = (struct process_note){0};
	c->gone_processes--;
	*p = (struct ptt_process){.state = p->state};
	if (c->shared_process)
		c->shared_process[index] = (struct ptt_shared_process){0};
	/* release: pairs with the acquire of the process that takes the entry next */
	__atomic_store_n(&p->state, PTT_PROCESS_FREE, __ATOMIC_RELEASE);
	/* relaxed: only a hint */
	if (index < __atomic_load_n(&c->segment->process_hint, __ATOMIC_RELAXED))
		__atomic_store_n(&c->segment->process_hint, index, __ATOMIC_RELAXED);
}

void processes_recycle(struct ptt_collector *c)
{
	uint64_t read = __atomic_load_n(&c->segment->site_tail, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < process_high(c); i++) {
		struct process_note *note = &c->process_note[i];

		if (note->gone && !c->process_used[i] && read >= note->sites)
			give_back(c, i);
	}
}

uint64_t processes_lost_threads(const struct ptt_collector *c)
{
	uint64_t lost = c->lost_threads;

	/* relaxed: counts, which order nothing */
	for (uint32_t i = 0; i < process_high(c); i++)
		lost += __atomic_load_n(&c->process[i].lost_threads, __ATOMIC_RELAXED);
	return lost;
}
