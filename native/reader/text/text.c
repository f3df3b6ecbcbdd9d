/* SPDX-License-Identifier: MIT */
/* text.c - events as lines: sentences for people, and lines for programs. */
#include <dlfcn.h>
#include <stdio.h>

#include "../decode.h"
#include "name_tables.h"
#include "line.h"

#define TEXT_COLUMN 58 /* column of the call site, counted from the sentence */
#define BYTES_SIZE 4608 /* more than slots or a record can hold; six times this fits a line */

/* An event of the columns, with its thread, its sentence and its names. */
struct event {
	struct ptt_names *names;
	const struct ptt_columns *columns;
	const struct rd_sentence *sentence; /* type is NULL if the id is not in the catalogue */
	int64_t i;
	uint32_t id;
	uint32_t process;
	uint32_t tid;
	uint32_t pid;
	const char *site;
	const char *object;
};

static char *put_bytes(char *p, const struct event *e, const struct rd_value *value,
		       char *(*put)(char *, const char *, size_t))
{
	char bytes[BYTES_SIZE];
	struct rd_value cut = *value;

	if (cut.number > BYTES_SIZE)
		cut.number = BYTES_SIZE;
	rd_bytes(e->columns->payload[e->i], e->sentence->type, &cut, bytes);
	return put(p, bytes, (size_t)cut.number);
}

/* ---- sentences ---- */

#define FEW_ZEROS 8

/* Data in quotes. Many zero bytes at its end, as in an array with spare room, are counted and not shown. */
static char *out_quoted(char *p, const char *bytes, size_t size)
{
	size_t used = size;

	while (used && !bytes[used - 1])
		used--;
	if (size - used <= FEW_ZEROS)
		used = size;
	*p++ = '"';
	p = out_plain(p, bytes, used);
	*p++ = '"';
	if (used == size)
		return p;
	p = OUT_LITERAL(p, " and ");
	p = out_u64(p, size - used);
	return OUT_LITERAL(p, " zero bytes");
}

typedef const char *error_namer(int error);

static const char *no_name(int error)
{
	(void)error;
	return NULL;
}

/* strerrorname_np() of glibc 2.32; with an older C library, errors are numbers. */
static const char *error_name(int error)
{
	static error_namer *cached;
	/* relaxed: a thread that does not see it yet finds the same function */
	error_namer *namer = __atomic_load_n(&cached, __ATOMIC_RELAXED);

	if (!namer) {
		*(void **)&namer = dlsym(RTLD_DEFAULT, "strerrorname_np");
		namer = namer ? namer : no_name;
		__atomic_store_n(&cached, namer, __ATOMIC_RELAXED);
	}
	return namer(error);
}

static char *put_errno(char *p, int64_t value)
{
	const char *name = value > 0 && value < 4096 ? error_name((int)value) : NULL;

	p = out_s64(p, value);
	if (name) {
		p = OUT_LITERAL(p, " (");
		p = out_string(p, name);
		*p++ = ')';
	}
	return p;
}

static char *put_tid(char *p, const struct event *e, uint32_t tid)
{
	const struct rd_entry *entry = rd_map_find(&e->names->reader->thread_of, e->process, tid);
	int64_t ts = e->columns->ts[e->i];
	const char *name = entry ? rd_thread_name(e->names, (uint32_t)(entry->value - 1), ts) : NULL;

	if (!tid)
		return OUT_LITERAL(p, "unknown");
	p = out_u64(p, tid);
	if (name) {
		p = OUT_LITERAL(p, " (");
		p = out_plain(p, name, strlen(name));
		*p++ = ')';
	}
	return p;
}

static char *put_routine(char *p, const struct event *e, uint32_t number)
{
	size_t size;
	const char *name = ptt_routine_name(e->id, number, &size);

	return name ? out_text(p, name, size) : out_u64(p, number);
}

static char *put_address(char *p, const struct event *e, enum ptt_name_kind kind, uint64_t address)
{
	const char *name = rd_name(e->names, kind, e->process, address);

	return name ? out_plain(p, name, strlen(name)) : out_hex(p, address);
}

static char *put_object(char *p, const struct event *e)
{
	uint64_t object = e->columns->object[e->i];
	uint32_t thread;

	if (e->id >> 6 == NPTL_DOMAIN_PROCESS)
		return out_u64(p, object);
	if (e->id >> 6 != NPTL_DOMAIN_THREAD)
		return e->object ? out_plain(p, e->object, strlen(e->object)) : out_hex(p, object);
	/* The event that connects thread and address shows both. */
	if (e->id == (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_BEGIN))
		return out_hex(p, object);
	thread = rd_pthread_at(&e->names->pthreads, e->process, object, e->columns->ts[e->i]);
	return thread ? put_tid(p, e, e->names->reader->threads[thread - 1].tid) : out_hex(p, object);
}

static char *put_field(char *p, const struct event *e, uint32_t number)
{
	static const char *const kinds[] = { "normal", "recursive", "error-checking", "adaptive" };
	const struct ptt_field *field = &e->sentence->type->fields[number];
	struct rd_value value;

	if (!rd_field(e->columns->payload[e->i], e->sentence->type, number, &value))
		return OUT_LITERAL(p, "?");
	switch (field->type) {
	case PTT_FIELD_BYTES:
		return put_bytes(p, e, &value, out_quoted);
	case PTT_FIELD_NS:
		if (strncmp(field->name, "deadline", 8) == 0)
			return out_seconds(p, value.number, 0);
		return out_duration(p, (uint64_t)value.number);
	case PTT_FIELD_PTR:
		return put_address(p, e, rd_is_code(field) ? PTT_NAME_CODE : PTT_NAME_OBJECT,
				   (uint64_t)value.number);
	case PTT_FIELD_TID:
		return put_tid(p, e, (uint32_t)value.number);
	case PTT_FIELD_S32:
		return strcmp(field->name, "result") == 0 ? put_errno(p, value.number) : out_s64(p, value.number);
	case PTT_FIELD_U16:
		if (strcmp(field->name, "routine") == 0)
			return put_routine(p, e, (uint32_t)value.number);
		if (strcmp(field->name, "kind") == 0 && value.number < 4)
			return out_string(p, kinds[value.number]);
		if (strcmp(field->name, "purpose") == 0 && value.number < ptt_lll_purpose_count)
			return out_string(p, ptt_lll_purposes[value.number]);
		if (strcmp(field->name, "type") == 0 && e->id >> 6 != NPTL_DOMAIN_USER)
			return value.number > 0 && value.number < ptt_lock_type_count ?
				       out_string(p, ptt_lock_types[value.number]) : out_s64(p, value.number);
		if (strcmp(field->name, "call") == 0 && value.number && value.number < ptt_sys_call_count)
			return out_string(p, ptt_sys_calls[value.number]);
		return out_u64(p, (uint64_t)value.number);
	case PTT_FIELD_U64:
		/* Possible pointers: attributes and results of threads. */
		return (uint64_t)value.number < 65536 ? out_u64(p, (uint64_t)value.number) :
							 out_hex(p, (uint64_t)value.number);
	default:
		return out_s64(p, value.number);
	}
}

/* Does the rest of a sentence only say that the call succeeded? A sentence of the role call-out always says so. */
static bool is_success(const struct event *e, const struct rd_op *op)
{
	static const char text[] = ", result = ";
	struct rd_value value;

	return op->kind == RD_OP_TEXT && op->size == sizeof(text) - 1 && op[1].kind == RD_OP_FIELD &&
	       memcmp(op->text, text, sizeof(text) - 1) == 0 &&
	       strcmp(e->sentence->type->role, "call-out") != 0 &&
	       rd_field(e->columns->payload[e->i], e->sentence->type, op[1].field, &value) && !value.number;
}

static char *put_sentence(char *p, const struct event *e)
{
	if (!e->sentence->type) {
		p = OUT_LITERAL(p, "event ");
		p = out_u64(p, e->id);
		p = OUT_LITERAL(p, " of ");
		return out_hex(p, e->columns->object[e->i]);
	}
	for (uint32_t k = 0; k < e->sentence->count; k++) {
		const struct rd_op *op = &e->sentence->ops[k];

		if (k + 2 == e->sentence->count && is_success(e, op))
			break;

		switch (op->kind) {
		case RD_OP_TEXT:
			p = out_text(p, op->text, op->size);
			break;
		case RD_OP_THREAD:
			p = out_u64(p, e->tid);
			break;
		case RD_OP_OBJECT:
			p = put_object(p, e);
			break;
		case RD_OP_FIELD:
			p = put_field(p, e, op->field);
			break;
		}
	}
	return p;
}

static char *put_site_address(char *p, const struct event *e)
{
	return out_hex(p, e->columns->site[e->i] & PTT_SITE_ADDRESS);
}

/* Only the sentence, for views with columns for time, thread and site. */
static char *line_sentence(char *p, const struct event *e)
{
	p = put_sentence(p, e);
	*p++ = '\n';
	return p;
}

static char *line_text(char *p, const struct event *e)
{
	const char *label = rd_label(e->names, e->columns->thread[e->i], e->columns->ts[e->i]);
	char *start;

	p = out_seconds(p, e->columns->ts[e->i], 4);
	p = OUT_LITERAL(p, "  ");
	p = out_string(p, label ? label : "");
	p = OUT_LITERAL(p, "  ");
	start = p;
	p = put_sentence(p, e);
	if (e->site || e->columns->site[e->i]) {
		do
			*p++ = ' ';
		while (p - start < TEXT_COLUMN);
		p = OUT_LITERAL(p, " at ");
		p = e->site ? out_plain(p, e->site, strlen(e->site)) : put_site_address(p, e);
	}
	*p++ = '\n';
	return p;
}

/* ---- machine lines ---- */

static char *put_event_name(char *p, const struct event *e)
{
	if (e->sentence->type)
		return out_string(p, e->sentence->type->name);
	return out_u64(OUT_LITERAL(p, "EVENT_"), e->id);
}

static const char *source_of(const struct event *e)
{
	return e->id >> 6 == NPTL_DOMAIN_USER ? "user" : e->id >> 6 == NPTL_DOMAIN_HANDLER ? "handler" : "nptl";
}

/* Counts of pieces belong to the layout, not to the event. */
static bool is_hidden(const struct ptt_event_type *type, uint32_t number)
{
	return type->has_bytes && number + 2 == type->field_count;
}

static char *put_number(char *p, uint32_t kind, int64_t number)
{
	if (kind == PTT_FIELD_PTR)
		return out_hex(p, (uint64_t)number);
	return kind == PTT_FIELD_U64 ? out_u64(p, (uint64_t)number) : out_s64(p, number);
}

/* name=value … of all fields, with `between` in front of each field but the first. */
static char *put_fields(char *p, const struct event *e, const char *between,
			char *(*put)(char *, const char *, size_t))
{
	const struct ptt_event_type *type = e->sentence->type;
	const char *lead = "";

	for (uint32_t k = 0; type && k < type->field_count; k++) {
		struct rd_value value;

		if (is_hidden(type, k) || !rd_field(e->columns->payload[e->i], type, k, &value))
			continue;
		p = out_string(p, lead);
		lead = between;
		p = out_string(p, type->fields[k].name);
		*p++ = '=';
		p = type->fields[k].type == PTT_FIELD_BYTES ? put_bytes(p, e, &value, put) :
							      put_number(p, type->fields[k].type, value.number);
	}
	return p;
}

static char *put_cpu(char *p, const struct event *e, const char *none)
{
	uint16_t cpu = e->columns->cpu[e->i];

	return cpu == PTT_CPU_UNKNOWN ? out_string(p, none) : out_u64(p, cpu);
}

static char *line_raw(char *p, const struct event *e)
{
	char *fields;

	p = out_s64(p, e->columns->ts[e->i]);
	*p++ = ' ';
	p = out_u64(p, e->pid);
	*p++ = ' ';
	p = out_u64(p, e->tid);
	*p++ = ' ';
	p = put_cpu(p, e, "-");
	*p++ = ' ';
	p = put_event_name(p, e);
	*p++ = ' ';
	p = out_hex(p, e->columns->object[e->i]);
	*p++ = ' ';
	p = put_site_address(p, e);
	*p++ = ' ';
	fields = p;
	p = put_fields(p, e, " ", out_word);
	if (p == fields)
		p--; /* no fields: no blank at the end */
	*p++ = '\n';
	return p;
}

static char *json_string(char *p, const char *text)
{
	*p++ = '"';
	p = out_json(p, text, strlen(text));
	*p++ = '"';
	return p;
}

static char *line_json(char *p, const struct event *e)
{
	const struct ptt_event_type *type = e->sentence->type;
	const char *thread = rd_thread_name(e->names, e->columns->thread[e->i], e->columns->ts[e->i]);

	p = OUT_LITERAL(p, "{\"ts_ns\": ");
	p = out_s64(p, e->columns->ts[e->i]);
	p = OUT_LITERAL(p, ", \"pid\": ");
	p = out_u64(p, e->pid);
	p = OUT_LITERAL(p, ", \"tid\": ");
	p = out_u64(p, e->tid);
	p = OUT_LITERAL(p, ", \"cpu\": ");
	p = put_cpu(p, e, "null");
	p = OUT_LITERAL(p, ", \"source\": \"");
	p = out_string(p, source_of(e));
	p = OUT_LITERAL(p, "\", \"event\": \"");
	p = put_event_name(p, e);
	p = OUT_LITERAL(p, "\", \"object\": \"");
	p = out_hex(p, e->columns->object[e->i]);
	p = OUT_LITERAL(p, "\", \"site\": \"");
	p = put_site_address(p, e);
	p = OUT_LITERAL(p, "\", \"site_name\": ");
	p = json_string(p, e->site ? e->site : "");
	if (e->object)
		p = json_string(OUT_LITERAL(p, ", \"object_name\": "), e->object);
	if (thread)
		p = json_string(OUT_LITERAL(p, ", \"thread_name\": "), thread);
	for (uint32_t k = 0; type && k < type->field_count; k++) {
		struct rd_value value;
		const char *quote;

		if (is_hidden(type, k) || !rd_field(e->columns->payload[e->i], type, k, &value))
			continue;
		p = OUT_LITERAL(p, ", \"");
		p = out_string(p, type->fields[k].name);
		p = OUT_LITERAL(p, "\": ");
		quote = type->fields[k].type == PTT_FIELD_BYTES || type->fields[k].type == PTT_FIELD_PTR ? "\"" : "";
		p = out_string(p, quote);
		p = type->fields[k].type == PTT_FIELD_BYTES ? put_bytes(p, e, &value, out_json) :
							      put_number(p, type->fields[k].type, value.number);
		p = out_string(p, quote);
	}
	return OUT_LITERAL(p, "}\n");
}

static char *csv_field(char *p, const char *text)
{
	*p++ = ',';
	return text ? out_csv(p, text, strlen(text)) : p;
}

static char *line_csv(char *p, const struct event *e)
{
	static _Thread_local char fields[PTT_LINE_MAX / 2];
	char *end = put_fields(fields, e, " ", out_word);

	p = out_s64(p, e->columns->ts[e->i]);
	*p++ = ',';
	p = out_u64(p, e->pid);
	*p++ = ',';
	p = out_u64(p, e->tid);
	p = csv_field(p, rd_thread_name(e->names, e->columns->thread[e->i], e->columns->ts[e->i]));
	*p++ = ',';
	p = put_cpu(p, e, "");
	p = csv_field(p, source_of(e));
	*p++ = ',';
	p = put_event_name(p, e);
	*p++ = ',';
	p = out_hex(p, e->columns->object[e->i]);
	p = csv_field(p, e->object);
	*p++ = ',';
	p = put_site_address(p, e);
	p = csv_field(p, e->site);
	*p++ = ',';
	p = out_csv(p, fields, (size_t)(end - fields));
	*p++ = '\n';
	return p;
}

int64_t ptt_text(struct ptt_names *names, const struct ptt_columns *columns, int64_t n, int format, char *out,
		 int64_t room, int64_t *done)
{
	static char *(*const lines[])(char *, const struct event *) = { line_text, line_raw, line_json, line_csv,
									 line_sentence };
	const struct ptt_reader *reader = names->reader;
	char *p = out;
	int64_t i;

	if (format < PTT_TEXT || format > PTT_SENTENCE)
		return -EINVAL;
	for (i = 0; i < n && room - (p - out) > PTT_LINE_MAX; i++) {
		uint32_t thread = columns->thread[i] < reader->thread_count ? columns->thread[i] : 0;
		struct event e = {
			.names = names, .columns = columns, .i = i, .id = columns->id[i] & PTT_ID_MASK,
			.process = reader->threads[thread].process, .tid = reader->threads[thread].tid,
		};

		e.sentence = &names->sentences[e.id];
		e.pid = reader->processes[e.process].pid;
		if (columns->site[i])
			e.site = rd_name(names, PTT_NAME_SITE, e.process, columns->site[i]);
		if (rd_is_named(e.id >> 6))
			e.object = rd_name(names, PTT_NAME_OBJECT, e.process, columns->object[i]);
		if (e.id == (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_BEGIN)) {
			struct rd_tenure seen = { columns->object[i], columns->ts[i], e.process, thread };

			rd_pthreads_begin(&names->pthreads, &seen);
			rd_turn_begin(&names->threads, thread, columns->ts[i]);
		}
		p = lines[format](p, &e);
	}
	*done = i;
	return p - out;
}
