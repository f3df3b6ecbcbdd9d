/* SPDX-License-Identifier: MIT */
/* events.c - what the types of events mean to the model, and the numbers they carry. */
#include "internal.h"

#include "../reader/events/decode.h"

static const char *const field_names[MD_FIELDS] = {
	[MD_RESULT] = "result",     [MD_WAIT_NS] = "wait_ns",     [MD_OWNER] = "owner",
	[MD_COUNT] = "count",       [MD_VALUE] = "value",         [MD_SERIAL] = "serial",
	[MD_MUTEX] = "mutex",       [MD_CREATOR] = "creator",     [MD_SHARED] = "shared",
	[MD_WRITE] = "write",       [MD_CANCELLED] = "cancelled", [MD_ROUTINE] = "start_routine",
	[MD_DETACHED] = "detached", [MD_PURPOSE] = "purpose",     [MD_KIND] = "kind",
	[MD_PROTOCOL] = "protocol", [MD_ROBUST] = "robust",       [MD_PREFERENCE] = "preference",
	[MD_CLOCK] = "clock",       [MD_POLICY] = "policy",       [MD_PRIORITY] = "priority",
};

struct meaning {
	const char *role;
	uint32_t kind;
	enum md_action action;
};

/* The first line that fits counts; kind 0 = any. */
static const struct meaning meanings[] = {
	{ "init", 0, MD_INIT },
	{ "destroy", 0, MD_DESTROY },
	{ "acquire", PTT_KIND_SEM, MD_SEM_TAKEN },
	{ "acquire", 0, MD_ACQUIRE },
	{ "acquire-shared", 0, MD_ACQUIRE_SHARED },
	{ "release", 0, MD_RELEASE },
	{ "wait", 0, MD_WAIT },
	{ "wait-in", PTT_KIND_THREAD, MD_JOIN_IN },
	{ "wait-out", PTT_KIND_THREAD, MD_JOIN_OUT },
	{ "wait-in", PTT_KIND_COND, MD_COND_IN },
	{ "wait-out", PTT_KIND_COND, MD_COND_OUT },
	{ "wait-in", PTT_KIND_BARRIER, MD_BARRIER_IN },
	{ "wait-out", PTT_KIND_BARRIER, MD_BARRIER_OUT },
	{ "wait-in", PTT_KIND_FUTEX, MD_FUTEX_IN },
	{ "wait-out", PTT_KIND_FUTEX, MD_FUTEX_OUT },
	{ "wait-out", 0, MD_WAIT_END },
	{ "wake", PTT_KIND_SEM, MD_SEM_POST },
	{ "wake", PTT_KIND_FUTEX, MD_FUTEX_WAKE },
	{ "wake", 0, MD_WAKE },
	{ "wake-all", 0, MD_WAKE_ALL },
	{ "run-in", 0, MD_ONCE_BEGIN },
	{ "run-out", 0, MD_ONCE_END },
	{ "create", 0, MD_CREATE },
	{ "begin", 0, MD_BEGIN },
	{ "end", 0, MD_END },
	{ "lost", 0, MD_LOST },
};

static enum md_action action_of(const struct ptt_event_type *type)
{
	uint32_t kind = type->id >> 6;

	/* What the role alone does not tell. */
	if (strcmp(type->name, "THREAD_DETACH") == 0)
		return MD_DETACH;
	if (strcmp(type->name, "THREAD_PRIORITY") == 0)
		return MD_SCHEDULE;
	if (strcmp(type->name, "PROCESS_EXEC") == 0)
		return MD_EXEC;
	if (strcmp(type->name, "PROCESS_EXIT") == 0)
		return MD_EXIT;
	if (strcmp(type->name, "LEVEL_CHANGED") == 0)
		return MD_LEVEL;
	if (strcmp(type->name, "BUFFER_WAIT") == 0)
		return MD_BUFFER;
	if (strcmp(type->name, "LLL_PURPOSE") == 0)
		return MD_LLL_PURPOSE;
	if (strstr(type->name, "_TRY") && strcmp(type->role, "call-in") == 0)
		return MD_TRY_IN;
	if (strstr(type->name, "_TRY") && strcmp(type->role, "call-out") == 0)
		return MD_TRY_OUT;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (strcmp(meanings[i].role, type->role) == 0 &&
		    (!meanings[i].kind || meanings[i].kind == kind))
			return meanings[i].action;
	return MD_IGNORE;
}

void md_learn_catalogue(struct ptt_model *m)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id & PTT_ID_MASK;

		m->type[id] = type;
		m->action[id] = (uint8_t)action_of(type);
		m->level[id] = type->level;
		for (uint8_t k = 0; k < type->field_count; k++)
			for (int f = 0; f < MD_FIELDS; f++)
				if (strcmp(type->fields[k].name, field_names[f]) == 0)
					m->field_at[id][f] = (struct md_field_at){
						k + 1, type->fields[k].offset, type->fields[k].type };
	}
}

int64_t md_number(const struct ptt_model *m, const struct md_event *e, enum md_field field, int64_t none)
{
	const struct md_field_at *at = &m->field_at[e->id][field];
	struct rd_value value;

	/* What almost all of them are: numbers of 32 or 64 bits in slots. */
	if (likely(at->number && e->payload && !(e->payload & RD_PAYLOAD_RECORD))) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)e->payload + at->offset;

		if (at->type == PTT_FIELD_S32)
			return (int32_t)rd_u32(p);
		if (at->type == PTT_FIELD_NS)
			return (int64_t)rd_u64(p);
		if (at->type == PTT_FIELD_TID)
			return rd_u32(p);
	}
	if (!at->number || !rd_field(e->payload, m->type[e->id], at->number - 1u, &value))
		return none;
	return value.number;
}
