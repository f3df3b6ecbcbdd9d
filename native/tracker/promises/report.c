/* SPDX-License-Identifier: MIT */
/* report.c - the names of rules and of reasons for silence, and the table of violations. */
#include "promises.h"

/* Maximum of different violations. Further violations are not kept. */
#define ROWS_MAX 65536u

/* The comments say which numbers `number` of a violation contains. */
static const char *const rule_names[VF_RULES] = {
	[VF_MUTEX_EXCLUSION] = "mutex-exclusion",
	[VF_MUTEX_RECURSION] = "mutex-recursion",
	[VF_MUTEX_OWNER] = "mutex-owner",
	[VF_MUTEX_ROBUST] = "mutex-robust",
	[VF_RWLOCK_EXCLUSION] = "rwlock-exclusion",
	[VF_RWLOCK_PREFERENCE] = "rwlock-preference",
	[VF_SPIN_EXCLUSION] = "spin-exclusion",
	[VF_COND_MUTEX] = "cond-mutex",
	[VF_COND_WAKEUP] = "cond-wakeup",       /* threads to be woken, threads waiting */
	[VF_BARRIER_EARLY] = "barrier-early",   /* threads arrived, threads of a round */
	[VF_BARRIER_SERIAL] = "barrier-serial", /* serial threads, rounds */
	[VF_SEM_VALUE] = "sem-value",           /* units taken, units that existed */
	[VF_ONCE_TWICE] = "once-twice",
	[VF_ONCE_EARLY] = "once-early",
	[VF_JOIN_END] = "join-end",
	[VF_CREATE_BEGIN] = "create-begin",
	[VF_TRY_BUSY] = "try-busy",
	[VF_TIMEOUT_EARLY] = "timeout-early", /* ns too early */
	[VF_RESULT] = "result",               /* the result */
	[VF_NOT_WOKEN] = "not-woken",         /* ns since the thread could have continued */
};

static const char *const skip_names[VF_SKIPS] = {
	[VF_SKIP_INCOMPLETE] = "incomplete",
	[VF_SKIP_BEFORE] = "initialization-not-seen",
	[VF_SKIP_SHARED] = "process-shared",
	[VF_SKIP_FORKED] = "process-forked",
	[VF_SKIP_MISUSED] = "misused-by-the-program",
	[VF_SKIP_REUSED] = "address-used-anew",
	[VF_SKIP_LEVEL] = "events-missing-soon-after",
	[VF_SKIP_CLOCK] = "clock-unknown",
	[VF_SKIP_LATE] = "too-near-the-end",
};

const char *ptt_verify_rule_name(uint32_t rule)
{
	return rule < VF_RULES ? rule_names[rule] : NULL;
}

const char *ptt_verify_skip_name(uint32_t reason)
{
	return reason < VF_SKIPS ? skip_names[reason] : NULL;
}

uint64_t ptt_verify_checks(const struct ptt_verify *v, uint32_t rule)
{
	return rule < VF_RULES ? v->checks[rule] : 0;
}

uint64_t ptt_verify_skips(const struct ptt_verify *v, uint32_t reason)
{
	return reason < VF_SKIPS ? v->skips[reason] : 0;
}

const struct ptt_verify_violation *ptt_verify_violations(const struct ptt_verify *v, uint64_t *count)
{
	*count = v->row_count;
	return v->rows;
}

static struct ptt_verify_violation *new_row(struct ptt_verify *v)
{
	if (v->row_count == ROWS_MAX)
		return NULL;
	if (rd_array_reach((void **)&v->rows, &v->row_room, v->row_count, sizeof(*v->rows)) < 0) {
		v->t.error = -ENOMEM;
		return NULL;
	}
	return &v->rows[v->row_count++];
}

struct ptt_verify_violation *vf_report(struct ptt_verify *v, const struct vf_claim *claim,
				     const struct ptt_event *const *events, uint32_t count)
{
	uint64_t key = (uint64_t)claim->process << 32 | (uint64_t)claim->rule << 16 | (claim->detail & 0xffff);
	struct rd_entry *entry = rd_map_put(&v->row_of, key, claim->object ^ claim->detail >> 16 << 48);
	struct ptt_verify_violation *row;

	if (!entry) {
		v->t.error = -ENOMEM;
		return NULL;
	}
	row = entry->value ? &v->rows[entry->value - 1] : new_row(v);
	if (!row)
		return NULL;
	if (entry->value && row->count) {
		row->count++;
		return NULL;
	}
	if (!entry->value)
		entry->value = v->row_count;
	*row = (struct ptt_verify_violation){
		.object = claim->object, .count = 1, .rule = claim->rule, .severity = claim->severity,
		.process = claim->process, .kind = claim->kind, .ts = TK_NEVER,
	};
	for (uint32_t i = 0; i < count && row->event_count < PTT_VERIFY_EVENTS; i++) {
		if (!events[i]->id)
			continue;
		row->event[row->event_count++] = (struct ptt_verify_event){
			events[i]->ts, events[i]->object, events[i]->site, events[i]->payload, events[i]->number, events[i]->id,
		};
		if (row->ts < events[i]->ts)
			row->ts = events[i]->ts;
	}
	return row;
}


void vf_forget_recent(struct ptt_verify *v, uint32_t process, int64_t ts, enum vf_skip reason)
{
	for (uint32_t i = 0; i < v->row_count; i++) {
		struct ptt_verify_violation *row = &v->rows[i];

		/* a single call proves these: missing events of other threads do not matter */
		if (row->rule == VF_RESULT || row->rule == VF_TIMEOUT_EARLY)
			continue;
		if (row->process != process || row->ts < ts - INT64_C(1000000000))
			continue;
		if (reason == VF_SKIP_FORKED && row->rule != VF_SEM_VALUE && row->rule != VF_BARRIER_EARLY &&
		    row->rule != VF_BARRIER_SERIAL && row->rule != VF_TRY_BUSY)
			continue;
		v->skips[reason] += row->count;
		row->count = 0;
	}
}

bool vf_private(struct ptt_verify *v, const struct vf_object *o)
{
	const struct vf_process *p = VF_PROCESS(v, o->process);
	enum vf_skip reason;

	if (likely((o->flags & (PTT_OBJECT_MADE | PTT_OBJECT_SHARED | VF_MISUSED)) == PTT_OBJECT_MADE &&
		   (p->forked == TK_NEVER || o->init.ts > p->forked)))
		return true;
	reason = !(o->flags & PTT_OBJECT_MADE) ? VF_SKIP_BEFORE :
		 o->flags & PTT_OBJECT_SHARED    ? VF_SKIP_SHARED :
		 o->flags & VF_MISUSED   ? VF_SKIP_MISUSED :
					   VF_SKIP_FORKED;
	v->skips[reason]++;
	return false;
}

void vf_not_woken(struct ptt_verify *v, uint32_t process, const struct vf_object *o, int64_t since,
		  const struct ptt_event *wait, const struct ptt_event *due)
{
	const struct vf_process *p = VF_PROCESS(v, process);
	int64_t end = p->known.alive > p->last ? p->known.alive : p->last;
	struct ptt_verify_violation *row;

	v->checks[VF_NOT_WOKEN]++;
	if (end - since < v->patience) {
		v->skips[VF_SKIP_LATE]++;
		return;
	}
	row = vf_report(v, &(struct vf_claim){
		.rule = VF_NOT_WOKEN, .severity = PTT_VERIFY_WARNING, .process = process,
		.kind = o ? o->kind : PTT_KIND_THREAD, .object = o ? o->address : wait->object,
	}, VF_EVENTS(wait, due));
	if (row)
		row->number[0] = end - since;
}
