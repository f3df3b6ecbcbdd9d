/* SPDX-License-Identifier: MIT */
/* thread_states.c - states of threads from their first event to their end, by waits, readings and context switches. */
/*
 * The order of states between an event and the next reading is known only if the thread got a processor once, in a wait.
 * Without readings, the state outside of waits is unknown. If context switches are recorded, they say when a thread had a
 * processor. Waits, calls and readings then say what it did without a processor.
 */
#include "../sums.h"

/* ---- rows ---- */

static void put_row(struct ptt_model *m, uint32_t thread, int64_t from, int64_t to, struct ptt_model_state what)
{
	uint32_t number = MD_THREAD(m, thread)->pub.number;
	struct ptt_model_state *row;

	if (to <= from || (m->only_threads && (number >= m->t.known_count || !m->t.known[number].allowed)) ||
	    !md_inside(m, &from, &to) || to <= from)
		return;
	row = md_row(m, &m->thread_states);
	if (!row)
		return;
	*row = what;
	row->t_ns = from;
	row->dur_ns = to - from;
	row->thread = thread;
}

/* The state of a thread after a context switch. @what: its state by waits, calls and readings */
static struct ptt_model_state seen(const struct md_thread *t, const struct md_switch *s, struct ptt_model_state what)
{
	switch (s->now) {
	case MD_ON:
		what.state = PTT_STATE_RUNNING;
		what.cpu = s->cpu;
		break;
	case MD_PREEMPTED:
		what.state = t->pub.held ? PTT_STATE_PREEMPTED : PTT_STATE_READY;
		break;
	case MD_OFF:
		/* it gave the processor up, in an unknown call */
		if (!what.wait && (what.state == PTT_STATE_RUNNING || what.state == PTT_STATE_UNKNOWN))
			what.state = PTT_STATE_ASLEEP;
	}
	if (what.state != PTT_STATE_ASLEEP)
		what.call = 0;
	return what;
}

/* Reports a state from the end of the last reported state on. @of: the wait that contains it, or the call of a sleeper */
static void put_state(struct ptt_model *m, uint32_t thread, int64_t until, uint8_t state, uint64_t of)
{
	struct md_thread *t = MD_THREAD(m, thread);
	int64_t from = t->reported == TK_NEVER ? t->pub.first_ns : t->reported;
	struct ptt_model_state what = { .state = state, .cpu = UINT16_MAX };
	uint32_t n = 0;

	if (until <= from)
		return;
	if (state == PTT_STATE_ASLEEP)
		what.call = (uint16_t)of;
	else
		what.wait = of;
	t->reported = until;
	for (; n < t->switch_count && t->switches[n].ts < until; n++) {
		const struct md_switch *s = &t->switches[n];
		int64_t to = n + 1 < t->switch_count && s[1].ts < until ? s[1].ts : until;

		put_row(m, thread, from, s->ts, what);
		from = s->ts > from ? s->ts : from;
		put_row(m, thread, from, to, seen(t, s, what));
		from = to > from ? to : from;
	}
	put_row(m, thread, from, until, what);
	if (n > 1) {
		t->switch_count -= n - 1;
		memmove(t->switches, t->switches + n - 1, t->switch_count * sizeof(*t->switches));
	}
}

/* The same for a thread that slept and then was ready for @ready ns until it had a processor again; 0: unknown. */
static void put_sleep(struct ptt_model *m, uint32_t thread, int64_t until, uint8_t state, uint64_t of, int64_t ready)
{
	const struct md_thread *t = MD_THREAD(m, thread);
	int64_t on = until;

	for (uint32_t i = t->switch_count; i && on == until; i--)
		if (t->switches[i - 1].now == MD_ON && t->switches[i - 1].ts < until)
			on = t->switches[i - 1].ts;
	if (ready > 0) {
		put_state(m, thread, on - ready, state, of);
		put_state(m, thread, on, PTT_STATE_READY, state == PTT_STATE_ASLEEP ? 0 : of);
	}
	put_state(m, thread, until, state, of);
}

/* ---- readings and context switches ---- */

static uint8_t without_wait(const struct md_thread *t)
{
	return tk_sched_runs(&t->sched) ? PTT_STATE_RUNNING : PTT_STATE_UNKNOWN;
}

/* Notes a context switch. */
static void add_switch(struct ptt_model *m, struct md_thread *t, struct md_switch now)
{
	t->last = now;
	if (!(m->flags & PTT_MODEL_STATES_OF))
		return;
	if (rd_array_reach((void **)&t->switches, &t->switch_room, t->switch_count, sizeof(*t->switches)) < 0)
		m->t.error = -ENOMEM;
	else
		t->switches[t->switch_count++] = now;
}

void md_switches_loaded(struct ptt_model *m, struct md_thread *t)
{
	t->switches = NULL;
	t->switch_count = t->switch_room = 0;
	if (t->last.now != MD_NEVER)
		add_switch(m, t, t->last);
}

/* The processor of the last switch of a thread. */
static uint16_t cpu_of(const struct ptt_model *m, const struct md_thread *t)
{
	uint16_t cpu = m->t.known[t->pub.number].cpu;

	return cpu == PTT_CPU_NONE ? UINT16_MAX : cpu;
}

/* A thread ran on its processor from its first event on: its switches so far were earlier, or this switch is its first. */
static void began_on(struct ptt_model *m, struct md_thread *t)
{
	add_switch(m, t, (struct md_switch){ t->pub.first_ns, cpu_of(m, t), MD_ON });
}

void md_sched(struct ptt_model *m, const struct tk_event *e)
{
	struct md_thread *t = MD_THREAD(m, e->thread);
	int64_t before = t->pub.last_ns < e->ts ? t->pub.last_ns : e->ts;
	bool reports = m->flags & PTT_MODEL_STATES_OF && !t->pub.waits && !t->call, switched;

	if (t->last.now == MD_NEVER && m->t.known[e->number].switches)
		began_on(m, t);
	if (reports)
		put_state(m, e->thread, before, without_wait(t), 0);
	switched = tk_sched_read(&t->sched, e, t->pub.last_ns).switched;
	if (reports)
		put_state(m, e->thread, e->ts, switched ? PTT_STATE_UNKNOWN : without_wait(t), 0);
}

void md_sched_unknown(struct ptt_model *m, const struct tk_event *e)
{
	for (uint32_t i = TK_PROCESS(&m->t, e->process)->threads; i; i = MD_THREAD(m, i)->pub.process_next)
		tk_sched_lose(&MD_THREAD(m, i)->sched);
}

void md_switched(struct ptt_model *m, const struct tk_event *e, enum tk_action action)
{
	static const uint8_t now[TK_ACTIONS] = {
		[TK_SWITCHED_IN] = MD_ON, [TK_SWITCHED_OUT] = MD_OFF, [TK_PREEMPTED] = MD_PREEMPTED,
		[TK_SWITCHES_LOST] = MD_MISSED,
	};
	struct md_thread *t = MD_THREAD(m, e->thread);
	int64_t event = t->pub.last_ns < e->ts ? t->pub.last_ns : e->ts;
	bool stops = action == TK_SWITCHED_OUT || action == TK_PREEMPTED;

	if (t->last.now == MD_NEVER && stops)
		began_on(m, t);
	else if (t->switch_count && (stops != (t->last.now == MD_ON) || action == TK_SWITCHES_LOST))
		t->switches[t->switch_count - 1].now = MD_MISSED;
	add_switch(m, t, (struct md_switch){ e->ts, cpu_of(m, t), now[action] });
	if (!(m->flags & PTT_MODEL_STATES_OF) || t->pub.waits || t->call)
		return;
	put_state(m, e->thread, event, without_wait(t), 0);
	put_state(m, e->thread, e->ts, PTT_STATE_UNKNOWN, 0);
}

/* ---- system calls ---- */

/* Reports the states in a system call up to now. Without readings of the scheduler, the thread slept all the time. */
static void put_call(struct ptt_model *m, uint32_t thread, int64_t until)
{
	const struct md_thread *t = MD_THREAD(m, thread);
	struct tk_sched_sums spent = tk_sched_since(&t->sched, &t->called, until, t->pub.last_ns);
	bool once = spent.off_ns >= 0 && t->sched.now.slices - t->called.slices <= 1;

	if (t->switch_count) {
		put_sleep(m, thread, until, PTT_STATE_ASLEEP, t->call, once ? spent.ready_least_ns : 0);
	} else if (once) {
		/* It got a processor once at most: so it ran, slept and was ready, in this order. */
		put_state(m, thread, until - spent.off_ns, PTT_STATE_RUNNING, 0);
		put_state(m, thread, until - spent.ready_most_ns, PTT_STATE_ASLEEP, t->call);
		put_state(m, thread, until - spent.ready_least_ns, PTT_STATE_UNKNOWN, 0);
		put_state(m, thread, until, PTT_STATE_READY, 0);
	} else {
		put_state(m, thread, until, PTT_STATE_ASLEEP, t->call);
	}
}

void md_sleep_begin(struct ptt_model *m, const struct tk_event *e)
{
	struct md_thread *t = MD_THREAD(m, e->thread);

	if (t->pub.waits)
		return;
	if (m->flags & PTT_MODEL_STATES_OF)
		put_state(m, e->thread, e->ts, without_wait(t), 0);
	t->call = (uint16_t)tk_number(&e->e, TK_CALL, 0);
	t->called_at = e->site;
	t->called_stack = e->stack;
	t->call_ns = e->ts;
	t->called = tk_sched_mark(&t->sched, e->ts, t->pub.last_ns);
}

/* An event in a signal handler ends the sleep too: nothing says whether the handler returned or jumped elsewhere. */
void md_sleep_end(struct ptt_model *m, const struct tk_event *e)
{
	struct md_thread *t = MD_THREAD(m, e->thread);

	if (m->flags & PTT_MODEL_STATES_OF)
		put_call(m, e->thread, e->ts);
	t->call = 0;
}

/* ---- waits ---- */

static uint8_t state_of(const struct md_wait *w, uint8_t wait_class)
{
	switch (wait_class) {
	case PTT_CONTENDED:
	case PTT_JOIN:
	case PTT_GIL:
		return PTT_STATE_BLOCKED;
	case PTT_IDLE:
		return PTT_STATE_IDLE;
	case PTT_UNKNOWN:
		return PTT_STATE_UNKNOWN;
	}
	return md_is_lock(w->kind) ? PTT_STATE_BLOCKED : PTT_STATE_IDLE;
}

/* A wait in a signal handler is part of the outer wait. A wait for the mutex of an outer condition wait is not. */
void md_state_of_wait(struct ptt_model *m, const struct md_wait *w, uint8_t wait_class, int64_t until)
{
	const struct md_thread *t = MD_THREAD(m, w->thread);
	const struct md_wait *outer = t->pub.waits ? MD_WAITING(m, t->pub.waits) : NULL;
	uint8_t state = state_of(w, wait_class);
	int64_t ready = tk_sched_since(&t->sched, &w->sched, until, t->pub.last_ns).ready_ns;

	if (outer && outer->id != w->id && outer->mutex != w->object)
		return;
	put_state(m, w->thread, w->since < until ? w->since : until, without_wait(t), 0);
	/* If it got a processor only once, this was at the end, after it had been ready. */
	put_sleep(m, w->thread, until, state, w->id, t->sched.now.slices - w->sched.slices == 1 ? ready : 0);
}

void md_finish_states(struct ptt_model *m)
{
	bool whole = m->window.begin == INT64_MIN && m->window.end == INT64_MAX;

	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		struct md_thread *t = MD_THREAD(m, i);
		int64_t event = t->path_event;

		if (t->pub.first_ns == INT64_MAX)
			continue;
		/* Its state is known up to its last event. */
		if (m->flags & PTT_MODEL_STATES_OF) {
			put_state(m, i, event, without_wait(t), 0);
			put_state(m, i, t->pub.last_ns, t->call ? PTT_STATE_ASLEEP : PTT_STATE_UNKNOWN, t->call);
		}
		if (!whole || event < t->pub.last_ns)
			continue;
		t->pub.cpu_ns = tk_sched_total(&t->sched, event);
		if (t->pub.cpu_ns >= 0 && t->sched.now.divided && !t->sched.now.vague_ns && !t->sched.now.open_ns)
			t->pub.ready_ns = t->sched.ready;
	}
}
