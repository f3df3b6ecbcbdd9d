/* SPDX-License-Identifier: MIT */
/* steps.c - keeps the finished waits for the critical path: the latest in memory, earlier waits in a file. */
#include <unistd.h>

#include "../sums.h"

/* Number of steps in memory. The same number goes to the file, and comes back, at a time. */
#define STEPS_HELD (UINT64_C(1) << 16)
/* Maximum of steps in the file. After that, the shortest steps in memory make room. */
#define STEPS_STORED (UINT64_C(1) << 26)
#define FIRST_LEAST 1000

#define HELD(m, i) (&((struct md_step *)(void *)(m)->steps.held.items)[i])

static void drop_shortest(struct md_steps *steps)
{
	struct md_step *held = (struct md_step *)(void *)steps->held.items;
	uint64_t kept = 0;

	steps->least = steps->least ? steps->least * 4 : FIRST_LEAST;
	for (uint64_t i = 0; i < steps->held.count; i++)
		if (held[i].end - held[i].start >= steps->least)
			held[kept++] = held[i];
	steps->held.count = kept;
}

/* Moves all steps in memory to the file. False: there is no room. */
static bool store(struct md_steps *steps)
{
	size_t bytes = steps->held.count * sizeof(struct md_step), done = 0;
	off_t at = (off_t)(steps->stored * sizeof(struct md_step));

	/* The file contains full parts only: after the first failure nothing more is stored. */
	if (steps->file < 0 || steps->least || steps->stored + steps->held.count > STEPS_STORED)
		return false;
	while (done < bytes) {
		ssize_t n = pwrite(steps->file, steps->held.items + done, bytes - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	steps->stored += steps->held.count;
	steps->held.count = 0;
	return true;
}

void md_step_put(struct ptt_model *m, struct md_step step)
{
	struct md_step *row;

	if (!(m->flags & PTT_MODEL_PATH) || step.end <= m->window.begin || step.start >= m->window.end)
		return;
	if (m->steps.held.count >= STEPS_HELD && !store(&m->steps))
		while (m->steps.held.count >= STEPS_HELD)
			drop_shortest(&m->steps);
	row = md_row(m, &m->steps.held);
	if (row)
		*row = step;
}

void md_step_add(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, int64_t dur)
{
	const struct md_thread *t = MD_THREAD(m, w->thread);
	/* It got a processor once, at the end. */
	bool once = t->sched.now.slices - w->sched.slices <= 1;

	if (dur >= m->steps.least)
		md_step_put(m, (struct md_step){ w->since, end->wake, end->ts,
						 once ? tk_sched_since(&t->sched, &w->sched, end->ts, t->pub.last_ns).ready_ns : -1, w->thread,
						 end->waker, w->object, w->site_row });
}

/* Reads a part of the file into memory. */
static int bring(struct md_steps *steps, uint64_t part)
{
	size_t bytes = STEPS_HELD * sizeof(struct md_step), done = 0;

	if (!steps->back)
		steps->back = malloc(bytes);
	if (!steps->back)
		return -ENOMEM;
	while (done < bytes) {
		ssize_t n = pread(steps->file, (uint8_t *)steps->back + done, bytes - done,
				  (off_t)(part * bytes + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	steps->back_part = part + 1;
	return 0;
}

uint64_t md_step_count(const struct ptt_model *m)
{
	return m->steps.stored + m->steps.held.count;
}

const struct md_step *md_step_at(struct ptt_model *m, uint64_t number)
{
	struct md_steps *steps = &m->steps;
	uint64_t part = number / STEPS_HELD;
	int err;

	if (number >= steps->stored)
		return HELD(m, number - steps->stored);
	if (steps->back_part != part + 1) {
		err = bring(steps, part);
		if (err < 0) {
			m->t.error = err;
			return NULL;
		}
	}
	return &steps->back[number % STEPS_HELD];
}

void md_steps_leave(struct ptt_model *m)
{
	free(m->steps.back);
	m->steps.back = NULL;
	m->steps.back_part = 0;
}

void ptt_model_path_file(struct ptt_model *m, int file)
{
	m->steps.file = file;
}

int64_t ptt_model_path_resolution(const struct ptt_model *m)
{
	return m->steps.least;
}
