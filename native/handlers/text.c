/* SPDX-License-Identifier: MIT */
/* text.c - one sentence for each event, on standard error or in a file: for experiments. */
/*
 *     PTHREAD_NPTL_TRACE=text            lines on standard error
 *     PTHREAD_NPTL_TRACE=text:FILE       lines appended to FILE
 *
 *     ptt: 0.000431 4242 thread 4243 took mutex 0x55d0c0de1040 at prog+0x11d3
 *
 * The numbers are the seconds since the program started, and the pid; the last part is the call site. Each line is one
 * write(2), so lines of several threads do not mix. The write is a plain system call: it is no cancellation point and keeps
 * errno. One system call for each event is slow, but you see each event at once.
 *
 * Addresses are printed as module and offset. dladdr() takes a lock, so it may not be called where events happen. Instead
 * there is a table of the modules at the start of the handler, and a list of modules that calls came from since.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalog.h"
#include "handler.h"
#include "module_list.h"
#include "origin/call_site.h"
#include "platform/clock.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "put.h"
#include "platform/raw_syscall.h"
#include "record/record.h"

#define MODULES_MAX 256u
#define LINE_MAX_BYTES 1536u
#define DATA_MAX 512u /* bytes of a text that a line shows */
/* The lowest descriptor that the handler may use: programs rely on the low descriptors. */
#define DESCRIPTOR_MIN 700

static struct module {
	uint64_t start, end, bias;
	char name[48];
} module[MODULES_MAX];
static uint32_t module_count;

static int output = STDERR_FILENO;
static uint64_t start_ns, lost;
static uint32_t self_pid;
static __thread uint32_t self_tid INITIAL_EXEC;

/* ------------------------------------------------------------ beginning and end */

static int note_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct module *m = &module[module_count];
	const char *name = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : program_invocation_short_name;
	const char *slash = strrchr(name, '/');

	(void)size;
	(void)unused;
	if (module_count == MODULES_MAX)
		return 1;
	m->bias = info->dlpi_addr;
	module_list_span(info, &m->start, &m->end);
	snprintf(m->name, sizeof(m->name), "%s", slash ? slash + 1 : name);
	module_count++;
	return 0;
}

static int open_output(const char *path)
{
	int high, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
	if (high < 0)
		return fd; /* a low limit of descriptors: the file keeps its low descriptor */
	close(fd);
	return high;
}

EXPORT void nptl_trace_init(char **args)
{
	bool again = start_ns != 0; /* in the child of a fork */

	self_pid = (uint32_t)getpid();
	self_tid = 0;
	if (again)
		return;
	start_ns = ptt_clock_monotonic_ns();
	if (args[0] && args[0][0]) {
		output = open_output(args[0]);
		if (output < 0) {
			fprintf(stderr, "ptt: text: cannot write %s: %s; the program runs untraced\n", args[0],
				strerror(-output));
			__nptl_trace_enabled = 0;
			return;
		}
	}
	dl_iterate_phdr(note_module, NULL);
}

EXPORT void nptl_trace_fini(void)
{
	/* relaxed: a count */
	uint64_t count = __atomic_load_n(&lost, __ATOMIC_RELAXED);

	if (count && output >= 0)
		fprintf(stderr, "ptt: text: %llu lines could not be written\n", (unsigned long long)count);
}

EXPORT void nptl_trace_handler_module(const struct nptl_trace_module *newer)
{
	if (newer)
		module_list_add(newer, 0);
}

/* ------------------------------------------------------------ sentences */

static void put_place(struct put *put, const char *name, uint64_t offset)
{
	put_string(put, name);
	put_text(put, "+", 1);
	put_hex(put, offset);
}

static void put_address(struct put *put, uint64_t address)
{
	const struct module_note *note = module_list_find(address);
	const char *slash = note ? strrchr(note->path, '/') : NULL;

	if (slash) {
		put_place(put, slash + 1, address - note->bias);
		return;
	}
	for (uint32_t i = 0; i < module_count; i++) {
		const struct module *m = &module[i];

		if (address < m->start || address >= m->end)
			continue;
		put_place(put, m->name, address - m->bias);
		return;
	}
	put_hex(put, address);
}

static void put_value(struct put *put, uint32_t id, const struct ptt_field *field, const uint32_t *at)
{
	const char *routine;
	size_t size;

	switch (field->type) {
	case PTT_FIELD_BYTES:
		put_json(put, (const char *)(at + 1), *at < DATA_MAX ? *at : DATA_MAX);
		break;
	case PTT_FIELD_PTR:
		put_address(put, ptt_record_get64(at));
		break;
	case PTT_FIELD_NS:
		put_decimal(put, ptt_record_get64(at), 1);
		put_string(put, " ns");
		break;
	case PTT_FIELD_U64:
		/* possible pointers: attributes, and results of threads */
		if (ptt_record_get64(at) < 65536)
			put_decimal(put, ptt_record_get64(at), 1);
		else
			put_hex(put, ptt_record_get64(at));
		break;
	case PTT_FIELD_S64:
		put_signed(put, (int64_t)ptt_record_get64(at));
		break;
	case PTT_FIELD_S32:
		put_signed(put, (int32_t)*at);
		break;
	case PTT_FIELD_U16:
		if (!strcmp(field->name, "routine") && (routine = ptt_routine_name(id, *at, &size))) {
			put_text(put, routine, size);
			break;
		}
		__attribute__((fallthrough));
	default:
		put_decimal(put, *at, 1);
	}
}

/* Put the field that the template calls @name. */
static void put_field(struct put *put, const struct ptt_event_type *type, const uint32_t *record, const char *name,
		      size_t size)
{
	const uint32_t *at = record + PTT_RECORD_HEAD_WORDS;

	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct ptt_field *field = &type->fields[i];

		if (type->has_bytes && i + 2 == type->field_count)
			continue; /* a record has no count of pieces */
		if (strlen(field->name) == size && !memcmp(field->name, name, size)) {
			put_value(put, type->id, field, at);
			return;
		}
		at += field->type >= PTT_FIELD_U64 && field->type != PTT_FIELD_BYTES ? 2 : 1;
	}
	put_text(put, "?", 1);
}

static void put_object(struct put *put, const struct ptt_event_type *type, uint64_t object)
{
	if (type->id >> 6 == NPTL_DOMAIN_PROCESS)
		put_decimal(put, object, 1);
	else
		put_hex(put, object);
}

static void put_sentence(struct put *put, const struct ptt_event_type *type, const uint32_t *record)
{
	const char *text = type->text;

	while (*text) {
		size_t plain = strcspn(text, "{"), name;

		put_text(put, text, plain);
		text += plain;
		if (!*text)
			break;
		name = strcspn(++text, "}");
		if (name == 6 && !memcmp(text, "thread", 6))
			put_decimal(put, record[4], 1);
		else if (name == 6 && !memcmp(text, "object", 6))
			put_object(put, type, ptt_record_get64(record + 5));
		else
			put_field(put, type, record, text, name);
		text += name + (text[name] == '}');
	}
}

static void write_line(const struct ptt_event_type *type, const uint32_t *record)
{
	uint64_t now = ptt_clock_monotonic_ns() - start_ns;
	char text[LINE_MAX_BYTES];
	struct put put = {.text = text, .room = sizeof(text) - 1, .fd = -1};
	long n;

	put_string(&put, "ptt: ");
	put_decimal(&put, now / 1000000000, 1);
	put_text(&put, ".", 1);
	put_decimal(&put, now % 1000000000 / 1000, 6);
	put_text(&put, " ", 1);
	put_decimal(&put, self_pid, 1);
	put_text(&put, " ", 1);
	put_sentence(&put, type, record);
	if (ptt_record_get64(record + 7)) {
		put_string(&put, " at ");
		put_address(&put, ptt_record_get64(record + 7));
	}
	text[put.size++] = '\n';
	do
		n = ptt_raw_syscall(SYS_write, output, (long)text, (long)put.size, 0, 0, 0);
	while (n == -EINTR);
	if (n != (long)put.size)
		__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void put_event(uint32_t *record, uint32_t room, const struct nptl_trace_event *event,
						const void *site)
{
	const struct ptt_event_type *type;

	if (!ptt_record_make(record, room, event, site))
		return;
	type = ptt_event_type_find(record[0] & 0xffff);
	if (!type)
		return;
	if (!self_tid)
		self_tid = (uint32_t)ptt_raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	record[4] = self_tid;
	write_line(type, record);
}

static __attribute__((noinline)) void put_large(const struct nptl_trace_event *event, const void *site)
{
	uint32_t record[PTT_RECORD_WORDS_MAX];

	put_event(record, PTT_RECORD_WORDS_MAX, event, site);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	uint32_t record[PTT_RECORD_SMALL];

	if (!start_ns || output < 0)
		return;
	if (ptt_record_is_small(&event))
		put_event(record, PTT_RECORD_SMALL, &event, NULL);
	else
		put_large(&event, ptt_upcalls.user_site());
}
