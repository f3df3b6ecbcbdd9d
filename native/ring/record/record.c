/* SPDX-License-Identifier: MIT */
/* record.c - makes classic records from events, and recognizes damaged records. */
#include "record.h"

#include <string.h>

#include "../origin/call_site.h"
#include "catalog.h"
#include "nptl_trace_events.h"

#define ID_USER ((uint32_t)NPTL_DOMAIN_USER << 6 | (uint32_t)NPTL_EV_USER)

static uint64_t load(const char *at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, at, size); /* all processors that PTT runs on are little endian */
	return value;
}

/* Put the count of the bytes, then the bytes, padded to a word. Return: words taken, 0 if there is no room. */
static uint32_t put_bytes(uint32_t *to, uint32_t room, const char *data, size_t size)
{
	uint32_t words;

	if (size > PTT_BYTES_MAX)
		size = PTT_BYTES_MAX;
	words = 1 + (uint32_t)(size + 3) / 4;
	if (words > room)
		return 0;
	to[0] = (uint32_t)size;
	to[words - 1] = 0; /* with one word only, this word is the count, and the count is 0 */
	if (size)
		memcpy(to + 1, data, size);
	return words;
}

/* Put a fixed field, at @from in the parameter struct. Return: words taken. */
static uint32_t put_field(uint32_t *to, const struct ptt_field *field, const char *from)
{
	switch (field->type) {
	case PTT_FIELD_U8:
		*to = (uint32_t)load(from, 1);
		return 1;
	case PTT_FIELD_U16:
		*to = (uint32_t)load(from, 2);
		return 1;
	case PTT_FIELD_U32:
	case PTT_FIELD_TID:
	case PTT_FIELD_S32:
		*to = (uint32_t)load(from, 4);
		return 1;
	case PTT_FIELD_PTR:
		ptt_record_put64(to, load(from, 6));
		return 2;
	default:
		ptt_record_put64(to, load(from, 8));
		return 2;
	}
}

/* Put the fields of an NPTL event. Return: words of the record, or 0. */
static uint32_t put_fields(uint32_t *record, uint32_t room, const struct ptt_event_type *type,
			   const struct nptl_trace_event *event)
{
	const char *param = event->param;
	size_t fixed = sizeof(struct nptl_trace_param) + type->slots * (size_t)PTT_SLOT_SIZE;
	uint32_t at = PTT_RECORD_HEAD_WORDS, i;

	if (event->param_size < fixed)
		return 0;
	for (i = 0; i < type->field_count; i++) {
		const struct ptt_field *field = &type->fields[i];
		uint32_t words;

		if (type->has_bytes && i + 2 == type->field_count)
			continue; /* a count of slots; a record counts bytes */
		if (at + 3 > room)
			return 0;
		if (field->type != PTT_FIELD_BYTES) {
			at += put_field(record + at, field, param + field->offset);
			continue;
		}
		words = put_bytes(record + at, room - at - 1, param + fixed, event->param_size - fixed);
		if (!words)
			return 0;
		at += words;
	}
	return at + 1;
}

static uint32_t make_user(uint32_t *record, uint32_t room, const struct nptl_trace_event *event, const void *site)
{
	size_t size = event->param ? event->param_size : 0;
	uint32_t at = PTT_RECORD_HEAD_WORDS, words;

	ptt_record_put64(record + 5, 0);
	ptt_record_put64(record + 7, (uint64_t)(uintptr_t)ptt_program_site((void *)(uintptr_t)site));
	record[at++] = (uint8_t)event->domain;
	record[at++] = (uint8_t)event->event;
	record[at++] = (uint32_t)size;
	words = put_bytes(record + at, room - at - 1, event->param, size);
	return words ? at + words + 1 : 0;
}

uint32_t ptt_record_make(uint32_t *record, uint32_t room, const struct nptl_trace_event *event, const void *site)
{
	const struct nptl_trace_param *param = event->param;
	uint32_t id = (uint32_t)(uint8_t)event->domain << 6 | ((uint32_t)event->event & 63);
	uint32_t words;

	if (event->source == NPTL_TRACE_SOURCE_PROGRAM) {
		id = ID_USER;
		words = make_user(record, room, event, site);
	} else {
		const struct ptt_event_type *type = ptt_event_type_find(id);

		if (!type || !param || event->param_size < sizeof(*param))
			return 0;
		ptt_record_put64(record + 5, (uint64_t)(uintptr_t)param->object);
		ptt_record_put64(record + 7, (uint64_t)(uintptr_t)ptt_program_site(param->site));
		words = put_fields(record, room, type, event);
	}
	if (words)
		record[0] = ptt_record_word0(id, words);
	return words;
}

enum ptt_record_state ptt_record_look(const uint32_t *word, uint64_t left, uint32_t *length)
{
	/* acquire: pairs with the writer's release of word 0, which it stores last */
	uint32_t first = left ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
	uint32_t words = first >> 16;

	if (!first)
		return PTT_RECORD_EMPTY;
	if (words < PTT_RECORD_HEAD_WORDS + 1 || words > PTT_RECORD_WORDS_MAX || words > left)
		return PTT_RECORD_NONSENSE;
	*length = words;
	if ((first & 0xffff) == PTT_RECORD_UNFINISHED)
		return PTT_RECORD_HOLE;
	if (ptt_record_checksum(word, words - 1) != word[words - 1])
		return PTT_RECORD_DAMAGED;
	return PTT_RECORD_GOOD;
}

uint64_t ptt_record_resync(const uint32_t *word, uint64_t left, uint64_t after)
{
	uint64_t at;

	for (at = 1; at < left; at++) {
		uint32_t length;

		/* words that end in their own checksum may occur by chance; the time and the id rule those out */
		if (ptt_record_look(word + at, left - at, &length) == PTT_RECORD_GOOD &&
		    ptt_event_type_find(word[at] & 0xffff) && ptt_record_get64(word + at + 1) >= after)
			return at;
		if (ptt_record_look(word + at, left - at, &length) == PTT_RECORD_HOLE && word[at + 3])
			return at;
	}
	return left;
}
