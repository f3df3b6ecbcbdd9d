/* SPDX-License-Identifier: MIT */
/* fields.c - the numbers that events carry, found by the names they have in the catalogue. */
#include "internal.h"

#include "../reader/events/decode.h"

static const char *const field_names[CK_FIELDS] = {
	[CK_RESULT] = "result",	    [CK_OWNER] = "owner",	[CK_COUNT] = "count",
	[CK_VALUE] = "value",	    [CK_SERIAL] = "serial",	[CK_MUTEX] = "mutex",
	[CK_CREATOR] = "creator",   [CK_SHARED_FIELD] = "shared", [CK_WRITE] = "write",
	[CK_ROUTINE] = "routine",   [CK_DETACHED_FIELD] = "detached", [CK_TIMED] = "timed",
	[CK_PROTOCOL] = "protocol", [CK_ROBUST_FIELD] = "robust", [CK_PRIORITY] = "priority",
	[CK_KIND] = "kind",	    [CK_CHILD] = "child",
};

void ck_learn_catalogue(struct ptt_check *c)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id & PTT_ID_MASK;

		c->type[id] = type;
		c->level[id] = type->level;
		for (uint8_t k = 0; k < type->field_count; k++)
			for (int f = 0; f < CK_FIELDS; f++)
				if (strcmp(type->fields[k].name, field_names[f]) == 0)
					c->field_at[id][f] = (struct ck_field_at){
						k + 1, type->fields[k].offset, type->fields[k].type };
	}
}

int64_t ck_number(const struct ptt_check *c, const struct ck_event *e, enum ck_field field, int64_t none)
{
	const struct ck_field_at *at = &c->field_at[e->id][field];
	struct rd_value value;

	if (!at->number || !rd_field(e->payload, c->type[e->id], at->number - 1u, &value))
		return none;
	return value.number;
}
