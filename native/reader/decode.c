/* SPDX-License-Identifier: MIT */
/* decode.c - takes the fields of an event out of its slots or its record. */
#include "decode.h"

#include "../ring/record/record.h"

uint8_t rd_slots_of[1024];

/* Filled once, when the library is loaded: the merge needs it for every event. */
__attribute__((constructor)) static void fill_slots_of(void)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];

		rd_slots_of[type->id & PTT_ID_MASK] = type->slots | (type->has_bytes ? RD_SLOTS_BYTES : 0);
	}
}

/* Number of pieces after the fixed slots, as the event itself says. */
static uint32_t piece_count(const uint8_t *slot, const struct ptt_event_type *type)
{
	return rd_u32(slot + type->fields[type->field_count - 2].offset);
}

uint64_t rd_payload_checked(const uint8_t *slot, const uint8_t *end, uint32_t id)
{
	uint32_t fixed = rd_slots_of[id] & ~RD_SLOTS_BYTES, need = fixed;
	uint64_t room = (uint64_t)(end - slot) / PTT_SLOT_SIZE - 1;

	if (need > room)
		return 0;
	if (rd_slots_of[id] & RD_SLOTS_BYTES) {
		const struct ptt_event_type *type = ptt_event_type_find(id);
		uint32_t pieces = piece_count(slot, type);

		if (pieces > PTT_EVENT_SLOTS_MAX || pieces + fixed > room)
			return 0;
		need += pieces;
	}
	for (uint32_t i = 1; i <= need; i++)
		if ((rd_u16(slot + i * PTT_SLOT_SIZE) & PTT_ID_MASK) != PTT_ID_MORE)
			return 0;
	return (uint64_t)(uintptr_t)slot;
}

uint32_t rd_record_size(const uint8_t *p, const uint8_t *end, bool *sound)
{
	uint64_t left = (uint64_t)(end - p) / 4;
	uint32_t words;

	if (!left)
		return 0;
	words = rd_u32(p) >> 16;
	if (words < PTT_RECORD_HEAD_WORDS + 1 || words > PTT_RECORD_WORDS_MAX || words > left)
		return 0;
	/* packets and records begin on whole words */
	*sound = ptt_record_checksum((const uint32_t *)(const void *)p, words - 1) == rd_u32(p + 4 * (words - 1));
	return words * 4;
}

static int64_t slot_number(const uint8_t *p, uint8_t kind)
{
	switch (kind) {
	case PTT_FIELD_U8:
		return *p;
	case PTT_FIELD_U16:
		return rd_u16(p);
	case PTT_FIELD_U32:
	case PTT_FIELD_TID:
		return rd_u32(p);
	case PTT_FIELD_S32:
		return (int32_t)rd_u32(p);
	case PTT_FIELD_PTR:
		return (int64_t)((uint64_t)rd_u32(p) | (uint64_t)rd_u16(p + 4) << 32);
	default:
		return (int64_t)rd_u64(p);
	}
}

static int64_t trimmed(const uint8_t *p, int64_t n)
{
	while (n > 0 && !p[n - 1])
		n--;
	return n;
}

/* Length of the variable field: the field `size` before it, or else all bytes up to the trailing zeros. */
static int64_t bytes_length(const uint8_t *slot, const struct ptt_event_type *type, uint32_t pieces)
{
	int64_t most = (int64_t)pieces * PTT_PIECE_SIZE;

	if (type->field_count > 2 && strcmp(type->fields[type->field_count - 3].name, "size") == 0) {
		int64_t size = rd_u32(slot + type->fields[type->field_count - 3].offset);

		return size < most ? size : most;
	}
	for (const uint8_t *p = slot + (1 + type->slots) * PTT_SLOT_SIZE; most; most -= PTT_PIECE_SIZE) {
		const uint8_t *last = p + (most / PTT_PIECE_SIZE - 1) * PTT_SLOT_SIZE + 2;
		int64_t n = trimmed(last, PTT_PIECE_SIZE);

		if (n)
			return most - PTT_PIECE_SIZE + n;
	}
	return 0;
}

/* Records hold each field in one or two words, in order. */
static bool record_field(const uint8_t *p, const struct ptt_event_type *type, uint32_t number, struct rd_value *out)
{
	const uint8_t *end = p + 4 * ((rd_u32(p) >> 16) - 1);
	const uint8_t *at = p + 4 * PTT_RECORD_HEAD_WORDS;

	for (uint32_t i = 0; i <= number; i++) {
		const struct ptt_field *field = &type->fields[i];
		bool count = i + 2 == type->field_count && type->has_bytes;
		uint32_t size = field->type >= PTT_FIELD_U64 && field->type != PTT_FIELD_BYTES ? 8 : 4;

		if (count) /* a record has no such count: the data begins with its length in bytes */
			continue;
		if ((uint64_t)(end - at) < size)
			return false;
		if (field->type == PTT_FIELD_BYTES) {
			out->number = rd_u32(at);
			out->bytes = at + 4;
			if (out->number > end - at - 4)
				return false;
			if (strcmp(field->name, "data") != 0)
				out->number = trimmed(out->bytes, out->number);
		} else if (i == number) {
			out->number = size == 8 ? (int64_t)rd_u64(at) : field->type == PTT_FIELD_S32 ?
					     (int64_t)(int32_t)rd_u32(at) : (int64_t)rd_u32(at);
		}
		at += size;
	}
	return true;
}

bool rd_field(uint64_t payload, const struct ptt_event_type *type, uint32_t number, struct rd_value *out)
{
	const uint8_t *slot = (const uint8_t *)(uintptr_t)(payload & ~(uint64_t)RD_PAYLOAD_RECORD);

	if (!payload || number >= type->field_count)
		return false;
	out->bytes = NULL;
	out->number = 0;
	if (payload & RD_PAYLOAD_RECORD)
		return record_field(slot, type, number, out);
	if (type->fields[number].type == PTT_FIELD_BYTES)
		out->number = bytes_length(slot, type, piece_count(slot, type));
	else
		out->number = slot_number(slot + type->fields[number].offset, type->fields[number].type);
	return true;
}

void rd_bytes(uint64_t payload, const struct ptt_event_type *type, const struct rd_value *value, char *out)
{
	const uint8_t *slot = (const uint8_t *)(uintptr_t)payload;
	int64_t left = value->number;

	if (value->bytes) {
		memcpy(out, value->bytes, (size_t)left);
		return;
	}
	for (slot += (1 + type->slots) * PTT_SLOT_SIZE; left > 0; slot += PTT_SLOT_SIZE) {
		size_t n = left < PTT_PIECE_SIZE ? (size_t)left : PTT_PIECE_SIZE;

		memcpy(out, slot + 2, n);
		out += n;
		left -= PTT_PIECE_SIZE;
	}
}

/* The field with a name in each type, so a column needs no search for each event. RD_NONE: the type has no such field. */
static void find_fields(const char *name, uint32_t *number, bool bytes)
{
	for (uint32_t i = 0; i < 1024; i++)
		number[i] = RD_NONE;
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];

		for (uint32_t k = 0; k < type->field_count; k++)
			if (strcmp(type->fields[k].name, name) == 0 &&
			    (type->fields[k].type == PTT_FIELD_BYTES) == bytes)
				number[type->id & PTT_ID_MASK] = k;
	}
}

int64_t ptt_field_column(const struct ptt_columns *columns, int64_t n, const char *name, int64_t *values,
			 uint8_t *valid)
{
	uint32_t number[1024];
	int64_t have = 0;

	find_fields(name, number, false);
	for (int64_t i = 0; i < n; i++) {
		uint32_t id = columns->id[i] & PTT_ID_MASK;
		struct rd_value value = { NULL, 0 };

		valid[i] = number[id] != RD_NONE &&
			   rd_field(columns->payload[i], ptt_event_type_find(id), number[id], &value);
		values[i] = valid[i] ? value.number : 0;
		have += valid[i];
	}
	return have;
}

int64_t ptt_bytes_column(const struct ptt_columns *columns, int64_t n, const char *name, int64_t *offsets,
			 char *data, int64_t room)
{
	uint32_t number[1024];
	int64_t at = 0;

	find_fields(name, number, true);
	for (int64_t i = 0; i < n; i++) {
		uint32_t id = columns->id[i] & PTT_ID_MASK;
		const struct ptt_event_type *type = ptt_event_type_find(id);
		struct rd_value value;

		offsets[i] = at;
		if (number[id] == RD_NONE || !rd_field(columns->payload[i], type, number[id], &value))
			continue;
		if (at + value.number <= room)
			rd_bytes(columns->payload[i], type, &value, data + at);
		at += value.number;
	}
	offsets[n] = at;
	return at;
}

/* ---- readings of the scheduler ---- */

/* A signal handler's reading stands in the trace before the reading that it interrupted, and is newer. */
static bool is_newer(const uint8_t *kept, const uint8_t *ran)
{
	return rd_u64(kept + offsetof(struct nptl_trace_sched_kept, ran_ns)) >=
	       rd_u64(ran + offsetof(struct nptl_trace_sched_ran, ran_ns));
}

uint16_t rd_reading_behind(const uint8_t *ran, const uint8_t *end)
{
	if (!rd_payload_checked(ran, end, RD_SCHED_RAN))
		return 0;
	if (end - ran > UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE)
		end = ran + UINT16_MAX * (ptrdiff_t)PTT_SLOT_SIZE;
	for (const uint8_t *p = ran + PTT_SLOT_SIZE; p < end; p += PTT_SLOT_SIZE) {
		uint32_t id = rd_u16(p) & PTT_ID_MASK;

		if (id == RD_SCHED_KEPT)
			return rd_payload_checked(p, end, id) && is_newer(p, ran) ? (uint16_t)((p - ran) / PTT_SLOT_SIZE) : 0;
		/* another reading, or events were lost */
		if (id >> 6 == NPTL_DOMAIN_HANDLER)
			return 0;
	}
	return 0;
}
