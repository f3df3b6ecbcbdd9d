/* SPDX-License-Identifier: MIT */
/* inside.c - what the holder of a lock did while other threads waited for it. */
/*
 * A hold with waiters is cut where its thread begins or ends a wait or a system call, and where the hold ends. The cost of a piece
 * to the waiters is a difference of two values of `share` of the object, as in blame.c. So a moment counts once for each waiter,
 * and not at all while nobody waits. In a piece, readings of the scheduler tell how long the thread ran, slept and was ready,
 * but not in which order. So the cost is divided in proportion.
 *
 * Only holds that other threads wait for, or have waited for, are cut: they are in a list of their thread.
 */
#include "../holds.h"

void md_watch_hold(struct ptt_model *m, uint32_t number)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_thread *t = MD_THREAD(m, h->thread);

	if (h->watched)
		return;
	h->watched = true;
	h->watched_prev = 0;
	h->watched_next = t->watched;
	if (t->watched)
		MD_HOLD(m, t->watched)->watched_prev = number;
	t->watched = number;
}

void md_unwatch_hold(struct ptt_model *m, uint32_t number)
{
	struct md_hold *h = MD_HOLD(m, number);

	if (!h->watched)
		return;
	h->watched = false;
	*(h->watched_prev ? &MD_HOLD(m, h->watched_prev)->watched_next : &MD_THREAD(m, h->thread)->watched) = h->watched_next;
	if (h->watched_next)
		MD_HOLD(m, h->watched_next)->watched_prev = h->watched_prev;
}

void md_watch_holds(struct ptt_model *m, const struct md_object *o)
{
	/* The latest hold comes first. If it is watched, so are all earlier holds. */
	for (uint32_t i = o->pub.holds; i && !MD_HOLD(m, i)->watched; i = MD_HOLD(m, i)->object_next)
		md_watch_hold(m, i);
}

/* ---- pieces of holds ---- */

/* What the thread does in a piece, and where. */
struct doing {
	uint64_t wait;	/* its own wait, or 0 */
	uint32_t object; /* that it waits for, or 0 */
	uint32_t site;
	uint32_t stack;
	uint16_t call;
	bool waits;
	bool calls;
};

static struct doing doing_of(struct ptt_model *m, uint32_t thread)
{
	const struct md_thread *t = MD_THREAD(m, thread);
	const struct md_wait *w = MD_WAITING(m, t->pub.waits);

	if (t->pub.waits)
		return (struct doing){ .wait = w->id, .object = w->object, .site = w->site_row, .stack = w->stack, .waits = true };
	if (t->call)
		return (struct doing){ .call = t->call, .site = md_site(m, thread, t->called_at, 0), .stack = t->called_stack,
				       .calls = true };
	return (struct doing){ 0 };
}

/* The time of a piece by state, in ns. */
struct spent {
	int64_t ns[PTT_STATES];
};

/* Divides a piece of @ns. @sums: time without a processor; off_ns of -1: unknown */
static struct spent divided(const struct doing *what, const struct tk_sched_sums *sums, int64_t ns)
{
	struct spent spent = { { 0 } };
	uint8_t off = what->waits ? PTT_STATE_BLOCKED : PTT_STATE_ASLEEP;

	if (sums->off_ns < 0) {
		/* Without readings, the thread slept in the whole call or wait, as in the table of states. */
		spent.ns[what->waits || what->calls ? off : PTT_STATE_UNKNOWN] = ns;
		return spent;
	}
	spent.ns[PTT_STATE_READY] = sums->ready_least_ns;
	spent.ns[PTT_STATE_UNKNOWN] = sums->ready_most_ns - sums->ready_least_ns;
	spent.ns[off] = sums->off_ns - sums->ready_most_ns;
	/* A thread that spins or goes to sleep for a lock is blocked. */
	spent.ns[what->waits ? off : PTT_STATE_RUNNING] += ns - sums->off_ns;
	return spent;
}

/* The part [@from, @to) of @among, of a number. The parts add up to the number. */
static int64_t part_of(int64_t number, int64_t from, int64_t to, int64_t among)
{
	return (int64_t)((__int128)number * to / among - (__int128)number * from / among);
}

/* Adds a part of the cost of a piece to the sums, and reports it. */
static void charge(struct ptt_model *m, const struct md_hold *h, struct ptt_model_inside row)
{
	bool made;
	uint32_t number = md_lookup(m, &m->inside_of, &m->insides, (uint64_t)h->object << 32 | row.wanted,
				    (uint64_t)row.site << 32 | (uint32_t)row.call << 8 | row.state, &made);
	struct ptt_model_inside_sum *sum = &((struct ptt_model_inside_sum *)(void *)m->insides.items)[number];
	struct ptt_model_inside *out;

	if (made)
		*sum = (struct ptt_model_inside_sum){
			.object = h->object, .site = row.site, .wanted = row.wanted, .call = row.call, .state = row.state,
		};
	sum->ns += (uint64_t)row.waited_ns;
	if (!(m->flags & PTT_MODEL_INSIDE_OF))
		return;
	out = md_row(m, &m->inside_rows);
	if (out)
		*out = row;
}

/*
 * Accounts the piece of a hold up to @ts, and begins the next piece.
 * @since: when its thread began what it does; @sums: as in divided(), from then on or from the begin of the hold
 */
static void account(struct ptt_model *m, struct md_hold *h, int64_t since, int64_t ts, const struct doing *what,
		    const struct tk_sched_sums *sums)
{
	struct md_object *o = MD_OBJECT(m, h->object);
	int64_t ns = ts - since, before = 0, from = since, to = ts;
	struct spent spent = divided(what, sums, ns);
	uint64_t cost;

	md_share(m, o, ts);
	cost = o->share - h->cut_share;
	h->cut_share = o->share;
	/* below 0: the blame of the hold was taken back */
	if ((int64_t)cost <= 0 || ns <= 0 || !o->counted || !md_inside(m, &from, &to))
		return;
	for (uint8_t state = 0; state < PTT_STATES; state++) {
		int64_t after = before + spent.ns[state];
		struct ptt_model_inside row = {
			.t_ns = from, .dur_ns = part_of(to - from, before, after, ns),
			.waited_ns = part_of((int64_t)cost, before, after, ns), .wait = what->wait, .thread = h->thread,
			.object = h->object, .hold_site = h->site_row, .hold_stack = h->stack, .state = state,
		};

		/* a thread may lose its processor anywhere */
		if (state != PTT_STATE_READY && state != PTT_STATE_UNKNOWN) {
			row.wanted = what->object;
			row.site = what->site;
			row.stack = what->stack;
			row.call = what->call;
		}
		if (after > before)
			charge(m, h, row);
		before = after;
	}
}

/* The end of the piece of a hold. @known: the readings of its thread reach up to @ts. */
static void end_piece(struct ptt_model *m, uint32_t number, int64_t ts, bool known)
{
	struct md_hold *h = MD_HOLD(m, number);
	const struct md_thread *t = MD_THREAD(m, h->thread);
	bool cut = t->cut_ns > h->since;
	int64_t since = cut ? t->cut_ns : h->since;
	struct tk_sched_sums sums = { -1, -1, -1, -1 };
	struct doing what = doing_of(m, h->thread);

	if (known)
		sums = tk_sched_since(&t->sched, cut ? &t->cut_sched : &h->sched, ts, t->pub.last_ns);
	if (sums.off_ns > 0)
		tk_sched_limit(&sums, ts > since ? ts - since : 0);
	account(m, h, since, ts, &what, &sums);
}

void md_cut_hold(struct ptt_model *m, uint32_t number, int64_t ts, bool known)
{
	if (MD_HOLD(m, number)->watched)
		end_piece(m, number, ts, known);
}

void md_cut_holds(struct ptt_model *m, const struct tk_event *e)
{
	struct md_thread *t = MD_THREAD(m, e->thread);

	if (!t->pub.holds)
		return;
	for (uint32_t i = t->watched; i; i = MD_HOLD(m, i)->watched_next)
		end_piece(m, i, e->ts, true);
	t->cut_ns = e->ts;
	t->cut_sched = tk_sched_mark(&t->sched, e->ts, t->pub.last_ns);
}
