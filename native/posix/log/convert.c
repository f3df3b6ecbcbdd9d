/* SPDX-License-Identifier: MIT */
/* convert.c - writes the events of a log as packets of classic records, with the trace's metadata and info. */
#define NPTL_TRACE_IMPLEMENTATION
#include "convert.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "catalog.h"
#include "layout/crc32c.h"
#include "log.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "put.h"
#include "record/record.h"
#include "tracer_type.h"

#define PACKET_WORDS (256u * 1024u)
#define PIDS_MAX 4096u
#define GIGA INT64_C(1000000000)

struct conversion {
	struct px_log_reader *log;
	int directory;
	int stream;
	const struct ptt_event_type *tracers[PX_EVENT_COUNT]; /* by id in the log: the tracer's event type, or NULL */
	bool named[PX_EVENT_COUNT];
	uint32_t pid[PIDS_MAX];
	uint32_t pid_count;
	struct ptt_packet head;
	struct put_identity identity;
	struct {
		uint64_t events;
		uint64_t threads;
		uint64_t bytes;
	} counts;
	uint64_t last_time;
	uint32_t words; /* words of the current packet */
	uint32_t word[PACKET_WORDS + PTT_RECORD_WORDS_MAX];
};

/* ------------------------------------------------------------ packets */

static int write_packet(struct conversion *c)
{
	struct ptt_packet *head = &c->head;
	size_t size = (size_t)c->words * 4, padding = -size % 8;
	const uint64_t zero = 0;
	int err;

	if (!c->words)
		return 0;
	head->magic = PTT_CTF_MAGIC;
	memcpy(head->uuid, c->identity.uuid, sizeof(head->uuid));
	head->stream_id = PTT_STREAM_RECORDS;
	head->process = UINT32_MAX;
	head->content_size = (sizeof(*head) + size) * 8;
	head->packet_size = (sizeof(*head) + size + padding) * 8;
	head->events_discarded = px_log_status_of(c->log)->lost;
	head->crc = 0;
	head->crc = ptt_crc32c(ptt_crc32c(ptt_crc32c(0, head, sizeof(*head)), c->word, size), &zero, padding);
	err = put_write_all(c->stream, head, sizeof(*head));
	if (!err)
		err = put_write_all(c->stream, c->word, size);
	if (!err)
		err = put_write_all(c->stream, &zero, padding);
	c->counts.bytes += head->packet_size / 8;
	head->packet_seq_num++;
	head->event_count = 0;
	c->words = 0;
	return err;
}

static int put_event(struct conversion *c, const struct px_record *from, const struct nptl_trace_event *event)
{
	uint32_t *to = c->word + c->words;
	uint32_t words = ptt_record_make(to, PTT_RECORD_WORDS_MAX, event, (const void *)(uintptr_t)from->address);
	uint64_t time = from->time > c->last_time ? from->time : c->last_time;

	if (!words)
		return 0;
	ptt_record_finish(to, words, time, from->pid, from->owner);
	if (!c->head.event_count)
		c->head.timestamp_begin = time;
	c->head.timestamp_end = c->last_time = time;
	c->head.event_count++;
	c->counts.events++;
	c->words += words;
	return c->words >= PACKET_WORDS ? write_packet(c) : 0;
}

/* ------------------------------------------------------------ events */

/* Before the first event of a type: an event that says the name of the type. */
static int tell_name(struct conversion *c, const struct px_record *record)
{
	const char *name = px_names_of(px_log_names_of(c->log), record->event);
	struct nptl_trace_event event = {.source = NPTL_TRACE_SOURCE_PROGRAM};
	char text[PX_NAME_SIZE + 32];

	c->named[record->event] = true;
	if (!name)
		return 0;
	event.param_size = (size_t)snprintf(text, sizeof(text), "trace event %u is %s", record->event, name);
	event.param = text;
	return put_event(c, record, &event);
}

static int put_posix(struct conversion *c, const struct px_record *record)
{
	static union {
		struct nptl_trace_posix_trace_event event;
		char bytes[sizeof(struct nptl_trace_posix_trace_event) + PTT_BYTES_MAX];
	} param;
	uint32_t kept = record->size < PTT_BYTES_MAX ? record->size : PTT_BYTES_MAX;
	struct nptl_trace_event event = {.source = NPTL_TRACE_SOURCE_NPTL,
					 .domain = NPTL_DOMAIN_USER,
					 .event = NPTL_EV_POSIX_TRACE_EVENT,
					 .param_size = sizeof(param.event) + kept,
					 .param = &param};
	int err = c->named[record->event] ? 0 : tell_name(c, record);

	memset(&param.event, 0, sizeof(param.event));
	param.event.site = (void *)(uintptr_t)record->address;
	param.event.type = record->event;
	param.event.size = record->size;
	memcpy(param.event.data, record->data, kept);
	return err ? err : put_event(c, record, &event);
}

static int put_tracers(struct conversion *c, const struct px_record *record, const struct ptt_event_type *type)
{
	struct nptl_trace_event event = {.source = NPTL_TRACE_SOURCE_NPTL,
					 .domain = (char)(type->id >> 6),
					 .event = (char)(type->id & 63),
					 .param_size = record->size,
					 .param = (void *)record->data};

	if (type->id == ((uint32_t)NPTL_DOMAIN_USER << 6 | NPTL_EV_USER))
		event.source = NPTL_TRACE_SOURCE_PROGRAM;
	return put_event(c, record, &event);
}

static void note_process(struct conversion *c, uint32_t pid)
{
	for (uint32_t i = c->pid_count; i-- > 0;)
		if (c->pid[i] == pid)
			return;
	if (c->pid_count < PIDS_MAX && pid)
		c->pid[c->pid_count++] = pid;
}

static int put_all(struct conversion *c)
{
	const struct px_record *record;
	int err = 0;

	while (!err && (record = px_log_next(c->log))) {
		const struct ptt_event_type *type = c->tracers[record->event % PX_EVENT_COUNT];

		if (record->event >= PX_EVENT_COUNT)
			continue;
		note_process(c, record->pid);
		err = type ? put_tracers(c, record, type) : put_posix(c, record);
	}
	return err ? err : write_packet(c);
}

/* Find the event types of the log that the handler `posix` has made. */
static void find_tracers(struct conversion *c)
{
	const struct px_names *names = px_log_names_of(c->log);

	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		char name[PX_TRACER_NAME];

		px_tracer_type_name(name, &ptt_event_types[i]);
		for (uint32_t k = 0; k < names->system_count; k++)
			if (strcmp(names->name[PX_EVENT_SYSTEM + k], name) == 0)
				c->tracers[PX_EVENT_SYSTEM + k] = &ptt_event_types[i];
	}
}

/* ------------------------------------------------------------ info */

static void put_session(struct put *put, const struct conversion *c)
{
	const struct px_log_head *head = px_log_head_of(c->log);
	const struct px_log_status *status = px_log_status_of(c->log);

	put_string(put, "{\n \"version\": 1,\n \"state\": \"complete\",\n \"handler\": \"posix\",\n \"uuid\": \"");
	put_uuid(put, c->identity.uuid);
	put_string(put, "\",\n \"level\": \"2\",\n \"command\": []");
	put_json_string(put, "hostname", head->host);
	put_json_string(put, "stream", head->name);
	put_json_string(put, "generation", head->version);
	put_json_number(put, "start_unix_ns", (uint64_t)c->identity.start_unix_ns);
	put_json_number(put, "end_unix_ns", c->last_time + (uint64_t)head->real_offset);
	put_json_number(put, "events", c->counts.events);
	put_json_number(put, "threads", c->counts.threads);
	put_json_number(put, "bytes", c->counts.bytes);
	put_string(put, ",\n \"clock\": {\"name\": \"monotonic\", \"frequency\": 1000000000, \"start\": ");
	put_decimal(put, c->identity.start_clock, 1);
	put_string(put, "},\n \"lost\": {\"buffers_full\": ");
	put_decimal(put, status->lost, 1);
	put_string(put, "}\n}\n");
}

static void put_processes(struct put *put, const struct conversion *c)
{
	for (uint32_t i = 0; i < c->pid_count; i++) {
		put_string(put, "{\"process\": {\"index\": ");
		put_decimal(put, i, 1);
		put_string(put, ", \"pid\": ");
		put_decimal(put, c->pid[i], 1);
		put_string(put, ", \"ppid\": 0, \"start_unix_ns\": ");
		put_signed(put, c->identity.start_unix_ns);
		put_string(put, ", \"exe\": \"\", \"cmdline\": []}}\n");
	}
}

static int put_info(const struct conversion *c)
{
	char room[4096];
	struct put put;
	int err;

	if (mkdirat(c->directory, "info", 0777) < 0)
		return -errno;
	err = put_open(&put, c->directory, "info/processes.jsonl", room, sizeof(room));
	if (err)
		return err;
	put_processes(&put, c);
	err = put_close(&put);
	if (!err)
		err = put_open(&put, c->directory, "info/session.json", room, sizeof(room));
	if (err)
		return err;
	put_session(&put, c);
	return put_close(&put);
}

/* ------------------------------------------------------------ the whole conversion */

/* Derived from the log: each conversion of the same log has the same identity. */
static void set_identity(struct put_identity *id, const struct px_log_head *head)
{
	id->start_unix_ns = head->create_sec * GIGA + head->create_nsec;
	id->start_clock = (uint64_t)(id->start_unix_ns - head->real_offset);
	memcpy(id->uuid, &id->start_unix_ns, 8);
	memcpy(id->uuid + 8, &id->start_clock, 8);
	for (int i = 0; i < 4; i++)
		id->uuid[12 + i] ^= (uint8_t)(head->pid >> 8 * i);
	id->uuid[6] = (id->uuid[6] & 0x0f) | 0x80; /* version 8, a custom UUID (RFC 9562, section 5.8) */
	id->uuid[8] = (id->uuid[8] & 0x3f) | 0x80;
}

static int convert(struct conversion *c)
{
	int err;

	set_identity(&c->identity, px_log_head_of(c->log));
	find_tracers(c);
	c->stream = openat(c->directory, "stream-posix", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (c->stream < 0)
		return -errno;
	err = put_all(c);
	close(c->stream);
	if (!err)
		err = put_info(c);
	return err ? err : put_record_metadata(c->directory, "posix", &c->identity);
}

int ptt_posix_convert(const char *log, const char *directory)
{
	struct conversion *c = calloc(1, sizeof(*c));
	int err, fd;

	if (!c)
		return -ENOMEM;
	fd = open(log, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : -px_log_read_whole(&c->log, fd);
	if (fd >= 0)
		close(fd);
	if (!err) {
		c->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = c->directory < 0 ? -errno : convert(c);
		if (c->directory >= 0)
			close(c->directory);
		px_log_read_end(c->log);
	}
	free(c);
	return err;
}
