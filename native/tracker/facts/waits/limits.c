/* SPDX-License-Identifier: MIT */
/* limits.c - time limits of condition waits that belong to another clock, or were over before the wait began. */
#include <time.h>

#include "../facts.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)
#define YEAR (365 * DAY)
/* A limit that is farther away is a mistake. */
#define FAR (10 * YEAR)
/* A program that gives an earlier limit wants no wait. */
#define ANY_TIME SECOND
#define AT_ONCE INT64_C(1000000)
#define SOON (10 * AT_ONCE)
/* A thread that had to wait for a processor may be this late with a reasonable limit. */
#define LATE (60 * SECOND)

int ptt_check_clocks(struct ptt_check *c, uint32_t process, int64_t realtime, int64_t monotonic)
{
	if (tk_process_reach(&c->t, process) < 0)
		return -ENOMEM;
	CK_PROCESS(c, process)->realtime = realtime;
	CK_PROCESS(c, process)->monotonic = monotonic;
	return 0;
}

/* The time from the beginning of a wait to its limit by a clock, in ns; TK_NEVER: unknown. */
static int64_t ahead(const struct ptt_check *c, const struct tk_event *e, int64_t clock, int64_t limit)
{
	const struct ck_process *p = CK_PROCESS(c, e->process);
	int64_t now, ns;

	if (!p->realtime || !p->monotonic || limit < 0)
		return TK_NEVER;
	if (__builtin_add_overflow(clock == CLOCK_MONOTONIC ? p->monotonic : p->realtime, e->ts, &now) ||
	    __builtin_sub_overflow(limit, now, &ns))
		return TK_NEVER;
	return ns;
}

/* Whether a time to a limit is reasonable, so that the program probably meant this clock. */
static bool is_near(int64_t ns)
{
	return ns >= SOON && ns <= DAY;
}

void ck_limit_in(struct ptt_check *c, const struct tk_event *e, uint32_t wait)
{
	struct ck_wait *w = CK_WAITING(c, wait);
	const struct ck_object *o = CK_OBJECT(c, w->object);
	int64_t limit = tk_number(&e->e, TK_DEADLINE, TK_NEVER), monotonic, realtime;

	if (limit < ANY_TIME)
		return;
	monotonic = ahead(c, e, CLOCK_MONOTONIC, limit);
	realtime = ahead(c, e, CLOCK_REALTIME, limit);
	if (monotonic == TK_NEVER || realtime == TK_NEVER)
		return;
	/* If the limit is nearly over by the other clock, an immediate timeout proves nothing. */
	w->limit_over = realtime < -DAY && (monotonic < -LATE || monotonic > AT_ONCE);
	w->limit_by_other = is_near(monotonic) && realtime < -FAR ? monotonic : 0;
	/* A condition with an unseen initialization may use either clock. */
	if (tk_number(&e->e, TK_CLOCK, o->flags & PTT_OBJECT_MADE ? o->clock : CLOCK_REALTIME) != CLOCK_MONOTONIC)
		return;
	w->limit_over = monotonic < -LATE;
	w->limit_by_other = 0;
	if (monotonic < FAR || !is_near(realtime))
		return;
	if (!ck_fact_add(c, PTT_FACT_LIMIT_OF_OTHER_CLOCK, e, (uint64_t)w->object << 16, e->site, 0))
		return;
	CK_FACT(c, c->current)->value = realtime;
	ck_step_wait(c, wait, 0);
	CK_STEP(c, c->steps.count - 1)->wait = 0;
}

/* An immediate timeout proves which clock the library used. */
void ck_limit_out(struct ptt_check *c, const struct tk_event *e, uint32_t wait)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	struct tk_event at = *e;

	if (!w->limit_over || tk_number(&e->e, TK_RESULT, 0) != ETIMEDOUT || e->ts - w->since > AT_ONCE)
		return;
	at.ts = w->since;
	at.site = w->site;
	if (!ck_fact_add(c, PTT_FACT_LIMIT_OVER, &at, (uint64_t)w->object << 16, w->site, 0))
		return;
	CK_FACT(c, c->current)->value = w->limit_by_other;
	ck_step_wait(c, wait, 0);
	CK_STEP(c, c->steps.count - 1)->wait = 0;
}
