/* SPDX-License-Identifier: MIT */
/* reader.c - the traceset's tables: traces, streams, files, processes, threads, damages. */
#include "traceset.h"

#include <stdio.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

int ptt_read_version(void)
{
	return PTT_READ_VERSION;
}

struct ptt_reader *ptt_reader_create(void)
{
	struct ptt_reader *reader = calloc(1, sizeof(*reader));

	if (reader) {
		pthread_mutex_init(&reader->damage_lock, NULL);
		for (uint32_t i = 0; i < RD_DECODE_LOCKS; i++)
			pthread_mutex_init(&reader->decode_lock[i], NULL);
		reader->key_ticks = true;
		reader->decoded_max = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4 * 3;
	}
	return reader;
}

void ptt_reader_destroy(struct ptt_reader *reader)
{
	if (!reader)
		return;
	for (uint32_t i = 0; i < reader->file_count; i++) {
		rd_plain_free(&reader->files[i]);
		ptt_guard_unmap(reader->files[i].guard);
		free(reader->files[i].path);
	}
	for (uint32_t i = 0; i < reader->stream_count; i++)
		free(reader->streams[i].packets);
	for (uint32_t i = 0; i < reader->process_count; i++)
		rd_sites_free(&reader->processes[i].sites);
	free(reader->files);
	free(reader->streams);
	free(reader->processes);
	free(reader->threads);
	free(reader->traces);
	free(reader->damages);
	rd_map_free(&reader->process_of);
	rd_map_free(&reader->thread_of);
	pthread_mutex_destroy(&reader->damage_lock);
	for (uint32_t i = 0; i < RD_DECODE_LOCKS; i++)
		pthread_mutex_destroy(&reader->decode_lock[i]);
	free(reader);
}

static void clock_set(struct rd_clock *clock, uint64_t frequency, uint64_t origin, int64_t shift)
{
	unsigned __int128 rest;

	clock->frequency = frequency ? frequency : NS_PER_S;
	clock->origin = origin;
	clock->shift = shift;
	clock->whole = NS_PER_S / clock->frequency;
	rest = (unsigned __int128)(NS_PER_S % clock->frequency) << 64;
	clock->fraction = (uint64_t)(rest / clock->frequency);
}

uint64_t rd_ticks(const struct rd_clock *clock, int64_t ts)
{
	__int128 ns = (__int128)ts - clock->shift;
	__int128 ticks = ns * clock->frequency;

	/* Rounded up, also below zero. */
	ticks = ticks / (int64_t)NS_PER_S + (ticks > 0 && ticks % (int64_t)NS_PER_S) + clock->origin;
	if (ticks < 0)
		return 0;
	return ticks > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

int ptt_reader_add_trace(struct ptt_reader *reader, const uint8_t *uuid)
{
	struct rd_trace *trace;

	if (RD_GROW(reader, traces, trace) < 0)
		return -ENOMEM;
	trace = &reader->traces[reader->trace_count];
	memset(trace, 0, sizeof(*trace));
	clock_set(&trace->clock, NS_PER_S, 0, 0);
	if (uuid) {
		memcpy(trace->uuid, uuid, sizeof(trace->uuid));
		trace->has_uuid = true;
	}
	return (int)reader->trace_count++;
}

int ptt_reader_set_clock(struct ptt_reader *reader, uint32_t trace, uint64_t frequency, uint64_t origin,
			 int64_t shift_ns)
{
	if (trace >= reader->trace_count)
		return -EINVAL;
	clock_set(&reader->traces[trace].clock, frequency, origin, shift_ns);
	return 0;
}

void ptt_reader_key_ticks(struct ptt_reader *reader, int on)
{
	reader->key_ticks = on;
}

uint64_t ptt_reader_key_of_time(struct ptt_reader *reader, int64_t ts)
{
	if (!reader->key_ticks)
		return (uint64_t)ts ^ RD_KEY_BIAS;
	return reader->trace_count ? rd_ticks(&reader->traces[0].clock, ts) : 0;
}

int64_t ptt_reader_time_of_key(struct ptt_reader *reader, uint64_t key)
{
	if (!reader->key_ticks || !reader->trace_count)
		return (int64_t)(key ^ RD_KEY_BIAS);
	return rd_time(&reader->traces[0].clock, key);
}

int ptt_reader_key_range(struct ptt_reader *reader, uint64_t *first, uint64_t *last)
{
	*first = UINT64_MAX;
	*last = 0;
	for (uint32_t i = 0; i < reader->trace_count; i++) {
		const struct rd_clock *clock = &reader->traces[i].clock;
		struct ptt_trace_info info;
		uint64_t begin, end;

		ptt_reader_trace_info(reader, i, &info);
		if (!info.packets)
			continue;
		begin = rd_key(reader, clock, info.begin);
		end = rd_key(reader, clock, info.end);
		*first = begin < *first ? begin : *first;
		*last = end > *last ? end : *last;
	}
	return *first <= *last ? 0 : -ENOENT;
}

int ptt_reader_add_stream(struct ptt_reader *reader, uint32_t trace)
{
	if (trace >= reader->trace_count)
		return -EINVAL;
	if (RD_GROW(reader, streams, stream) < 0)
		return -ENOMEM;
	reader->streams[reader->stream_count] = (struct rd_stream){ .trace = trace };
	return (int)reader->stream_count++;
}

int ptt_reader_add_file(struct ptt_reader *reader, uint32_t stream, const char *path)
{
	char *copy;

	if (stream >= reader->stream_count)
		return -EINVAL;
	if (RD_GROW(reader, files, file) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	reader->files[reader->file_count] = (struct rd_file){ .path = copy, .stream = stream };
	return (int)reader->file_count++;
}

/* The number of the process of entry @e; a new entry gets @process. */
static uint32_t process_of(struct ptt_reader *reader, struct rd_entry *e, struct rd_process process)
{
	if (!e)
		return RD_NONE;
	if (e->value)
		return (uint32_t)(e->value - 1);
	if (RD_GROW(reader, processes, process) < 0)
		return RD_NONE;
	reader->processes[reader->process_count] = process;
	e->value = ++reader->process_count;
	return reader->process_count - 1;
}

uint32_t rd_process(struct ptt_reader *reader, uint32_t trace, uint32_t index, uint32_t pid)
{
	uint32_t before = reader->process_count;
	uint32_t number = process_of(reader, rd_map_put(&reader->process_of, trace, index),
				     (struct rd_process){ .trace = trace, .index = index, .pid = pid });
	struct rd_entry *by_pid;

	if (reader->process_count == before)
		return number;
	by_pid = rd_map_put(&reader->process_of, trace, RD_KEY_PID | pid);
	if (by_pid && !by_pid->value)
		by_pid->value = reader->process_count;
	return number;
}

uint32_t rd_process_of_pid(struct ptt_reader *reader, uint32_t trace, uint32_t pid)
{
	return process_of(reader, rd_map_put(&reader->process_of, trace, RD_KEY_PID | pid),
			  (struct rd_process){ .trace = trace, .index = RD_NONE, .pid = pid });
}

uint32_t rd_thread(struct ptt_reader *reader, uint32_t process, uint32_t tid)
{
	struct rd_entry *e = rd_map_put(&reader->thread_of, process, tid);

	if (!e || process == RD_NONE)
		return RD_NONE;
	if (e->value)
		return (uint32_t)(e->value - 1);
	if (RD_GROW(reader, threads, thread) < 0)
		return RD_NONE;
	reader->threads[reader->thread_count] = (struct rd_thread){ process, tid };
	e->value = ++reader->thread_count;
	return reader->thread_count - 1;
}

int ptt_reader_add_process(struct ptt_reader *reader, uint32_t trace, uint32_t index, uint32_t pid)
{
	uint32_t number;

	if (trace >= reader->trace_count)
		return -EINVAL;
	number = rd_process(reader, trace, index, pid);
	return number == RD_NONE ? -ENOMEM : (int)number;
}

int ptt_reader_set_site(struct ptt_reader *reader, uint32_t process, uint32_t id, uint64_t address)
{
	if (process >= reader->process_count || !id || id >= PTT_SITE_COUNT)
		return -EINVAL;
	return rd_sites_set(&reader->processes[process].sites, id, address);
}

int ptt_reader_set_stack_sites(struct ptt_reader *reader, uint32_t process, const uint64_t *sites, uint32_t count)
{
	if (process >= reader->process_count || count > PTT_STACK_COUNT)
		return -EINVAL;
	return rd_sites_of_stacks(&reader->processes[process].sites, sites, count);
}

int ptt_reader_set_tenants(struct ptt_reader *reader, uint32_t process, const struct ptt_tenant *tenants, uint32_t count)
{
	int err = 0;

	if (process >= reader->process_count)
		return -EINVAL;
	reader->processes[process].sites.tenant_count = 0;
	for (uint32_t i = 0; i < count && !err; i++)
		err = rd_sites_add_tenant(&reader->processes[process].sites, &tenants[i]);
	return err;
}

void rd_damage(struct ptt_reader *reader, uint32_t file, uint64_t offset, uint64_t size, const char *reason)
{
	pthread_mutex_lock(&reader->damage_lock);
	if (RD_GROW(reader, damages, damage) == 0) {
		struct ptt_damage *d = &reader->damages[reader->damage_count++];

		memset(d, 0, sizeof(*d));
		snprintf(d->path, sizeof(d->path), "%s", reader->files[file].path);
		snprintf(d->reason, sizeof(d->reason), "%s", reason);
		d->offset = offset;
		d->size = size;
	}
	pthread_mutex_unlock(&reader->damage_lock);
}

/* Adds the packets of a stream, without the damaged packets. */
static void add_stream(const struct rd_stream *stream, struct ptt_trace_info *sum)
{
	uint64_t discarded = 0;

	for (uint32_t k = 0; k < stream->count; k++) {
		const struct rd_packet *p = &stream->packets[k];

		if (p->state == RD_BAD)
			continue;
		sum->begin = p->begin < sum->begin ? p->begin : sum->begin;
		sum->end = p->end > sum->end ? p->end : sum->end;
		sum->packets++;
		sum->bytes += p->size;
		sum->events += p->events;
		discarded = p->discarded > discarded ? p->discarded : discarded;
	}
	sum->discarded += discarded;
}

int ptt_reader_trace_info(struct ptt_reader *reader, uint32_t trace, struct ptt_trace_info *out)
{
	if (trace >= reader->trace_count)
		return -EINVAL;
	*out = (struct ptt_trace_info){ .begin = UINT64_MAX };
	for (uint32_t i = 0; i < reader->stream_count; i++)
		if (reader->streams[i].trace == trace)
			add_stream(&reader->streams[i], out);
	return 0;
}

int ptt_reader_stream_info(struct ptt_reader *reader, uint32_t stream, struct ptt_stream_info *out)
{
	struct ptt_trace_info sum = { .begin = UINT64_MAX };
	const struct rd_stream *s;

	if (stream >= reader->stream_count)
		return -EINVAL;
	s = &reader->streams[stream];
	add_stream(s, &sum);
	*out = (struct ptt_stream_info){ s->trace, s->stream_class, sum.packets, sum.bytes, sum.discarded, sum.end };
	return 0;
}

uint32_t ptt_reader_stream_count(struct ptt_reader *reader)
{
	return reader->stream_count;
}

uint32_t ptt_reader_process_count(struct ptt_reader *reader)
{
	return reader->process_count;
}

uint32_t ptt_reader_thread_count(struct ptt_reader *reader)
{
	return reader->thread_count;
}

uint32_t ptt_reader_damage_count(struct ptt_reader *reader)
{
	return reader->damage_count;
}

int ptt_reader_process_info(struct ptt_reader *reader, uint32_t process, struct ptt_process_info *out)
{
	struct rd_process *p;

	if (process >= reader->process_count)
		return -EINVAL;
	p = &reader->processes[process];
	*out = (struct ptt_process_info){ p->trace, p->index, p->pid, 0 };
	return 0;
}

int ptt_reader_thread_info(struct ptt_reader *reader, uint32_t thread, struct ptt_thread_info *out)
{
	if (thread >= reader->thread_count)
		return -EINVAL;
	*out = (struct ptt_thread_info){ reader->threads[thread].process, reader->threads[thread].tid };
	return 0;
}

int ptt_reader_cut(struct ptt_reader *reader, struct ptt_damage *out)
{
	for (uint32_t i = 0; i < reader->file_count; i++) {
		const struct rd_file *file = &reader->files[i];
		/* relaxed: rd_may_decode() sets it; the callers have joined the threads that read */
		bool large = __atomic_load_n(&file->too_large, __ATOMIC_RELAXED);

		if (!large && !rd_file_cut(file))
			continue;
		memset(out, 0, sizeof(*out));
		snprintf(out->path, sizeof(out->path), "%s", file->path);
		snprintf(out->reason, sizeof(out->reason), "%s",
			 large ? "too large to be read on this machine; write the plain trace: `ptt export --format ctf`"
			       : "became shorter while it was read");
		return 1;
	}
	return 0;
}

int ptt_reader_damage(struct ptt_reader *reader, uint32_t number, struct ptt_damage *out)
{
	if (number >= reader->damage_count)
		return -EINVAL;
	*out = reader->damages[number];
	return 0;
}
