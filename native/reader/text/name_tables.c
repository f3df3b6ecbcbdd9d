/* SPDX-License-Identifier: MIT */
/* name_tables.c - tables of names; the caller asks for missing names and fills them in. */
#include "name_tables.h"

#include <stdio.h>

#include "../decode.h"

bool rd_is_code(const struct ptt_field *field)
{
	return field->type == PTT_FIELD_PTR && strcmp(field->name, "mutex") != 0 && strcmp(field->name, "futex") != 0;
}

bool rd_is_named(uint32_t domain)
{
	return (domain >= NPTL_DOMAIN_MUTEX && domain <= NPTL_DOMAIN_FUTEX) || domain == NPTL_DOMAIN_LLL;
}

static int add_op(struct rd_sentence *sentence, const struct rd_op *op)
{
	struct rd_op *ops = realloc(sentence->ops, (sentence->count + 1) * sizeof(*ops));

	if (!ops)
		return -ENOMEM;
	sentence->ops = ops;
	ops[sentence->count++] = *op;
	return 0;
}

static struct rd_op placeholder(const struct ptt_event_type *type, const char *name, size_t size)
{
	struct rd_op op = { RD_OP_TEXT, 0, name - 1, (uint32_t)size + 2 };

	if (size == 6 && memcmp(name, "thread", 6) == 0)
		op.kind = RD_OP_THREAD;
	if (size == 6 && memcmp(name, "object", 6) == 0)
		op.kind = RD_OP_OBJECT;
	for (uint32_t i = 0; i < type->field_count; i++)
		if (strlen(type->fields[i].name) == size && memcmp(type->fields[i].name, name, size) == 0) {
			op.kind = RD_OP_FIELD;
			op.field = i;
		}
	return op;
}

static int compile(struct rd_sentence *sentence, const struct ptt_event_type *type)
{
	const char *p = type->text;

	sentence->type = type;
	while (*p) {
		const char *open = strchr(p, '{'), *close = open ? strchr(open, '}') : NULL;
		struct rd_op text = { RD_OP_TEXT, 0, p, (uint32_t)(close ? (size_t)(open - p) : strlen(p)) };
		struct rd_op hole;

		if (text.size && add_op(sentence, &text) < 0)
			return -ENOMEM;
		if (!close)
			break;
		hole = placeholder(type, open + 1, (size_t)(close - open - 1));
		if (add_op(sentence, &hole) < 0)
			return -ENOMEM;
		p = close + 1;
	}
	return 0;
}

struct ptt_names *ptt_names_create(struct ptt_reader *reader)
{
	struct ptt_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->reader = reader;
	names->label_width = 8;
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id & PTT_ID_MASK;

		if (compile(&names->sentences[id], type) < 0) {
			ptt_names_destroy(names);
			return NULL;
		}
		for (uint32_t k = 0; k < type->field_count; k++)
			names->pointers[id] |= type->fields[k].type == PTT_FIELD_PTR;
	}
	return names;
}

void ptt_names_destroy(struct ptt_names *names)
{
	if (!names)
		return;
	for (int kind = 0; kind < 3; kind++) {
		const struct rd_entry *e;

		for (uint64_t i = 0; (e = rd_map_next(&names->names[kind], &i));)
			free((void *)(uintptr_t)e->value);
		rd_map_free(&names->names[kind]);
	}
	for (uint32_t i = 0; i < 1024; i++)
		free(names->sentences[i].ops);
	rd_thread_names_free(&names->threads);
	free(names->ranges);
	rd_pthreads_free(&names->pthreads);
	free(names);
}

void ptt_names_show_process(struct ptt_names *names, int on)
{
	names->show_process = on;
}

/* Approximate columns of a text on a terminal: its code points. */
static uint32_t columns_of(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += ((uint8_t)*text & 0xc0) != 0x80;
	return n;
}

#define LABEL_SIZE (RD_NAME_MAX + 64)
#define LABEL_WIDTH_MAX 32u

static uint32_t label_text(struct ptt_names *names, uint32_t thread, const char *name, char *out)
{
	const struct rd_thread *t = &names->reader->threads[thread];
	uint32_t pid = names->reader->processes[t->process].pid, width;

	if (names->show_process)
		snprintf(out, LABEL_SIZE, "%u/%u%s%s", pid, t->tid, name ? " " : "", name ? name : "");
	else
		snprintf(out, LABEL_SIZE, "%u%s%s", t->tid, name ? " " : "", name ? name : "");
	width = columns_of(out);
	if (width > names->label_width)
		names->label_width = width < LABEL_WIDTH_MAX ? width : LABEL_WIDTH_MAX;
	return width;
}

/* NULL also for a number that no thread has. */
static struct rd_turn *turn_at(struct ptt_names *names, uint32_t thread, int64_t ts)
{
	return thread < names->reader->thread_count ? rd_turn_at(&names->threads, thread, ts) : NULL;
}

const char *rd_thread_name(struct ptt_names *names, uint32_t thread, int64_t ts)
{
	const struct rd_turn *turn = turn_at(names, thread, ts);

	return turn ? turn->name : NULL;
}

const char *rd_label(struct ptt_names *names, uint32_t thread, int64_t ts)
{
	struct rd_turn *turn = turn_at(names, thread, ts);
	char text[LABEL_SIZE], *label;
	uint32_t width;
	size_t size;

	if (!turn || turn->label)
		return turn ? turn->label : NULL;
	width = label_text(names, thread, turn->name, text);
	size = strlen(text);
	label = malloc(size + LABEL_WIDTH_MAX + 1);
	if (!label)
		return NULL;
	memcpy(label, text, size);
	for (; width < names->label_width; width++)
		label[size++] = ' ';
	label[size] = 0;
	turn->label = label;
	return label;
}

int ptt_names_set_thread(struct ptt_names *names, uint32_t thread, int64_t since, const char *text)
{
	char label[LABEL_SIZE], *copy = NULL;

	if (thread >= names->reader->thread_count)
		return -EINVAL;
	if (*text) {
		copy = strndup(text, RD_NAME_MAX);
		if (!copy)
			return -ENOMEM;
		/* Sets the width now, so all lines have the same width from the first on. */
		label_text(names, thread, copy, label);
	}
	return rd_turn_set(&names->threads, thread, since, copy);
}

int ptt_names_set_pthread(struct ptt_names *names, uint32_t process, uint64_t pthread, int64_t since, uint32_t thread)
{
	struct rd_tenure tenure = { .pthread = pthread, .since = since, .process = process, .thread = thread };

	return thread < names->reader->thread_count ? rd_pthreads_add(&names->pthreads, &tenure) : -EINVAL;
}

int ptt_names_set(struct ptt_names *names, uint32_t kind, uint32_t process, uint64_t address, const char *text)
{
	struct rd_entry *e;
	char *copy;

	if (kind > PTT_NAME_CODE)
		return -EINVAL;
	copy = strndup(text, RD_NAME_MAX);
	e = copy ? rd_map_put(&names->names[kind], process, address) : NULL;
	if (!e) {
		free(copy);
		return -ENOMEM;
	}
	free((void *)(uintptr_t)e->value);
	e->value = (uint64_t)(uintptr_t)copy;
	return 0;
}

int ptt_names_add_range(struct ptt_names *names, uint32_t process, uint64_t from, uint64_t to)
{
	if (rd_grow((void **)&names->ranges, &names->range_room, names->range_count, sizeof(*names->ranges)) < 0)
		return -ENOMEM;
	names->ranges[names->range_count++] = (struct rd_range){ process, from, to };
	names->sorted = false;
	return 0;
}

static int range_order(const void *left, const void *right)
{
	const struct rd_range *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

static bool in_range(struct ptt_names *names, uint32_t process, uint64_t address)
{
	uint32_t lo = 0, hi = names->range_count;

	if (!names->sorted && names->range_count)
		qsort(names->ranges, names->range_count, sizeof(*names->ranges), range_order);
	names->sorted = true;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct rd_range *r = &names->ranges[mid];

		if (r->process < process || (r->process == process && r->from <= address))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && names->ranges[lo - 1].process == process && address < names->ranges[lo - 1].to;
}

struct ask {
	struct ptt_names *names;
	struct ptt_missing_name *out;
	int64_t count;
	int64_t room;
};

static void ask_for(struct ask *ask, enum ptt_name_kind kind, uint32_t process, uint64_t address)
{
	struct ptt_names *names = ask->names;

	if (!address || ask->count == ask->room || rd_map_find(&names->names[kind], process, address))
		return;
	if (kind != PTT_NAME_SITE && !in_range(names, process, address))
		return;
	if (rd_map_put(&names->names[kind], process, address))
		ask->out[ask->count++] = (struct ptt_missing_name){ kind, process, address };
}

int64_t ptt_names_missing(struct ptt_names *names, const struct ptt_columns *columns, int64_t n,
			  struct ptt_missing_name *out, int64_t room)
{
	struct ask ask = { names, out, 0, room };
	uint32_t last_process = RD_NONE;
	uint64_t last_site = 0, last_object = 0;

	for (int64_t i = 0; i < n && ask.count < room; i++) {
		uint32_t id = columns->id[i] & PTT_ID_MASK;
		uint32_t process = names->reader->threads[columns->thread[i]].process;

		if (process == last_process && columns->site[i] == last_site && columns->object[i] == last_object &&
		    !names->pointers[id])
			continue;
		last_process = process;
		last_site = columns->site[i];
		last_object = columns->object[i];
		ask_for(&ask, PTT_NAME_SITE, process, last_site);
		if (rd_is_named(id >> 6))
			ask_for(&ask, PTT_NAME_OBJECT, process, last_object);
		for (uint32_t k = 0; names->pointers[id] && k < names->sentences[id].type->field_count; k++) {
			const struct ptt_field *field = &names->sentences[id].type->fields[k];
			struct rd_value value;

			if (field->type == PTT_FIELD_PTR &&
			    rd_field(columns->payload[i], names->sentences[id].type, k, &value))
				ask_for(&ask, rd_is_code(field) ? PTT_NAME_CODE : PTT_NAME_OBJECT, process,
					(uint64_t)value.number);
		}
	}
	return ask.count;
}
