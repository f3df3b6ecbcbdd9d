/* SPDX-License-Identifier: MIT */
/* count.c - counts events by thread, type and object, in no order, in several threads. */
/*
 * Workers take packets one by one from a shared counter. All events of a packet of slots belong to one thread. So a small
 * array by id is enough for a packet; the worker adds it to its totals at the packet's end. Totals are joined at the end.
 */
#include "../decode.h"

#define IDS 1024u

struct job {
	uint32_t stream;
	uint32_t packet;
};

struct counter_worker {
	struct ptt_counter *counter;
	struct rd_map threads; /* (thread, id) -> events */
	struct rd_map objects; /* (process << 4 | domain, object) -> events */
	struct ptt_thread_span *spans;
	pthread_t thread;
	int err;
};

struct ptt_counter {
	struct ptt_reader *reader;
	struct job *jobs;
	uint64_t job_count;
	uint64_t next;
	uint32_t thread_count;
	int with_objects;
	struct counter_worker total;
};

static int add(struct rd_map *map, uint64_t a, uint64_t b, uint64_t n)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	if (!e)
		return -ENOMEM;
	e->value += n;
	return 0;
}

/* Context switches are not among the events of the thread itself, which begins and ends with its own events. */
static bool is_switch(uint32_t id)
{
	return id >= RD_SCHED_IN && id <= RD_SCHED_LOST;
}

static bool is_not_own(const uint8_t *slot)
{
	return rd_slot_skipped(rd_u64(slot)) || is_switch(rd_u16(slot) & PTT_ID_MASK);
}

static void widen(struct ptt_thread_span *span, int64_t first, int64_t last)
{
	span->first = first < span->first ? first : span->first;
	span->last = last > span->last ? last : span->last;
}

static int count_ids(struct counter_worker *worker, const struct rd_packet *packet, const uint8_t *p,
		     const uint8_t *end, const struct rd_clock *clock)
{
	/* Two arrays: in a run of one id, each addition would wait for the addition before. */
	uint64_t counts[2][IDS];
	struct ptt_thread_span *span = &worker->spans[packet->thread];
	const uint8_t *first, *last;
	const uint8_t *q = end;

	memset(counts, 0, sizeof(counts));
	while (p < q && rd_slot_skipped(rd_u64(p)))
		p += PTT_SLOT_SIZE;
	while (q > p && rd_slot_skipped(rd_u64(q - PTT_SLOT_SIZE)))
		q -= PTT_SLOT_SIZE;
	if (p == q)
		return 0;
	for (first = p; first < q && is_not_own(first);)
		first += PTT_SLOT_SIZE;
	for (last = q; last > first && is_not_own(last - PTT_SLOT_SIZE);)
		last -= PTT_SLOT_SIZE;
	for (; p + 2 * PTT_SLOT_SIZE <= q; p += 2 * PTT_SLOT_SIZE) {
		counts[0][rd_u16(p) & PTT_ID_MASK]++;
		counts[1][rd_u16(p + PTT_SLOT_SIZE) & PTT_ID_MASK]++;
	}
	if (p < q)
		counts[0][rd_u16(p) & PTT_ID_MASK]++;
	for (uint32_t id = 1; id < PTT_ID_STACK; id++) {
		uint64_t n = counts[0][id] + counts[1][id];

		if (n && add(&worker->threads, packet->thread, id, n) < 0)
			return -ENOMEM;
		span->events += n;
	}
	if (first < last)
		widen(span, rd_time(clock, rd_slot_ticks(rd_u64(first), packet->begin)),
		      rd_time(clock, rd_slot_ticks(rd_u64(last - PTT_SLOT_SIZE), packet->begin)));
	return 0;
}

static int count_objects(struct counter_worker *worker, const struct rd_packet *packet, const uint8_t *p,
			 const uint8_t *end)
{
	uint64_t last_a = UINT64_MAX, last_b = 0, n = 0;

	for (; p < end; p += PTT_SLOT_SIZE) {
		uint64_t w0 = rd_u64(p), a, b;

		if (rd_slot_skipped(w0))
			continue;
		a = (uint64_t)packet->process << 4 | (w0 >> 6 & 0xf);
		b = rd_u64(p + 8) & PTT_OBJECT_MASK;
		/* Acquisition and release come in pairs: one look-up serves both. */
		if (a == last_a && b == last_b) {
			n++;
			continue;
		}
		if (n && add(&worker->objects, last_a, last_b, n) < 0)
			return -ENOMEM;
		last_a = a;
		last_b = b;
		n = 1;
	}
	return n ? add(&worker->objects, last_a, last_b, n) : 0;
}

static int count_records(struct counter_worker *worker, uint32_t trace, const uint8_t *p, const uint8_t *end,
			 const struct rd_clock *clock)
{
	struct ptt_reader *reader = worker->counter->reader;
	uint32_t size;
	bool sound;

	for (; (size = rd_record_size(p, end, &sound)) != 0; p += size) {
		uint32_t process, thread, id = rd_u32(p) & PTT_ID_MASK;
		int64_t ts = rd_time(clock, rd_u64(p + 4));

		if (!sound)
			continue;
		process = rd_number_of(&reader->process_of, trace, RD_KEY_PID | rd_u32(p + 12));
		thread = process == RD_NONE ? RD_NONE : rd_number_of(&reader->thread_of, process, rd_u32(p + 16));
		if (thread == RD_NONE)
			continue;
		if (add(&worker->threads, thread, id, 1) < 0)
			return -ENOMEM;
		worker->spans[thread].events++;
		if (!is_switch(id))
			widen(&worker->spans[thread], ts, ts);
		if (worker->counter->with_objects &&
		    add(&worker->objects, (uint64_t)process << 4 | id >> 6, rd_record_object(p), 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int count_packet(struct counter_worker *worker, const struct job *job)
{
	struct ptt_reader *reader = worker->counter->reader;
	const struct rd_stream *stream = &reader->streams[job->stream];
	struct rd_packet *packet = &stream->packets[job->packet];
	const struct rd_clock *clock = &reader->traces[stream->trace].clock;
	const uint8_t *p = rd_data(reader, packet) + sizeof(struct ptt_packet);
	const uint8_t *end = rd_data(reader, packet) + packet->content;
	int err;

	if (!rd_check(reader, packet))
		return 0;
	if (stream->stream_class == PTT_STREAM_RECORDS)
		return count_records(worker, stream->trace, p, end, clock);
	err = count_ids(worker, packet, p, end, clock);
	if (err == 0 && worker->counter->with_objects)
		err = count_objects(worker, packet, p, end);
	return err;
}

static void *work(void *arg)
{
	struct counter_worker *worker = arg;
	struct ptt_counter *counter = worker->counter;
	uint64_t i;

	while (worker->err == 0 &&
	/* relaxed: the jobs are older than the threads, and joining the threads orders their results */
	       (i = __atomic_fetch_add(&counter->next, 1, __ATOMIC_RELAXED)) < counter->job_count)
		worker->err = count_packet(worker, &counter->jobs[i]);
	return NULL;
}

static int worker_init(struct counter_worker *worker, struct ptt_counter *counter)
{
	worker->counter = counter;
	worker->spans = malloc((counter->thread_count + 1) * sizeof(*worker->spans));
	if (!worker->spans)
		return -ENOMEM;
	for (uint32_t i = 0; i <= counter->thread_count; i++)
		worker->spans[i] = (struct ptt_thread_span){ INT64_MAX, INT64_MIN, 0 };
	return 0;
}

static void worker_free(struct counter_worker *worker)
{
	rd_map_free(&worker->threads);
	rd_map_free(&worker->objects);
	free(worker->spans);
	worker->spans = NULL;
}

static int join_map(struct rd_map *into, const struct rd_map *from)
{
	const struct rd_entry *e;

	for (uint64_t i = 0; (e = rd_map_next(from, &i));)
		if (add(into, e->a, e->b, e->value) < 0)
			return -ENOMEM;
	return 0;
}

static int worker_join(struct counter_worker *total, struct counter_worker *worker)
{
	if (worker->err < 0)
		return worker->err;
	for (uint32_t i = 0; i < total->counter->thread_count; i++) {
		widen(&total->spans[i], worker->spans[i].first, worker->spans[i].last);
		total->spans[i].events += worker->spans[i].events;
	}
	if (join_map(&total->threads, &worker->threads) < 0)
		return -ENOMEM;
	return join_map(&total->objects, &worker->objects);
}

static int count_all(struct ptt_counter *counter, int workers)
{
	struct counter_worker *pool = calloc((size_t)workers, sizeof(*pool));
	int started = 0, err = pool ? 0 : -ENOMEM;

	for (; err == 0 && started < workers; started++) {
		err = worker_init(&pool[started], counter);
		if (err == 0 && started && pthread_create(&pool[started].thread, NULL, work, &pool[started]) != 0) {
			worker_free(&pool[started]);
			break; /* fewer workers are enough */
		}
	}
	if (err == 0)
		work(&pool[0]);
	for (int i = 0; pool && i < started; i++) {
		if (i && pool[i].thread)
			pthread_join(pool[i].thread, NULL);
		if (err == 0)
			err = worker_join(&counter->total, &pool[i]);
		worker_free(&pool[i]);
	}
	free(pool);
	return err;
}

static int list_jobs(struct ptt_counter *counter)
{
	struct ptt_reader *reader = counter->reader;
	uint64_t n = 0;

	for (uint32_t i = 0; i < reader->stream_count; i++)
		n += reader->streams[i].count;
	counter->jobs = malloc((n + 1) * sizeof(*counter->jobs));
	if (!counter->jobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < reader->stream_count; i++)
		for (uint32_t k = 0; k < reader->streams[i].count; k++)
			counter->jobs[counter->job_count++] = (struct job){ i, k };
	return 0;
}

struct ptt_counter *ptt_counter_create(struct ptt_reader *reader, int workers, int objects)
{
	struct ptt_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return NULL;
	counter->reader = reader;
	counter->with_objects = objects;
	counter->thread_count = reader->thread_count;
	workers = workers < 1 ? 1 : workers > 64 ? 64 : workers;
	if (worker_init(&counter->total, counter) < 0 || list_jobs(counter) < 0 ||
	    count_all(counter, workers) < 0) {
		ptt_counter_destroy(counter);
		return NULL;
	}
	return counter;
}

void ptt_counter_destroy(struct ptt_counter *counter)
{
	if (!counter)
		return;
	worker_free(&counter->total);
	free(counter->jobs);
	free(counter);
}

int64_t ptt_counter_threads(struct ptt_counter *counter, struct ptt_thread_count *out, int64_t room)
{
	const struct rd_entry *e;
	int64_t n = 0;

	for (uint64_t i = 0; (e = rd_map_next(&counter->total.threads, &i)); n++)
		if (n < room)
			out[n] = (struct ptt_thread_count){ (uint32_t)e->a, (uint32_t)e->b, e->value };
	return n;
}

int64_t ptt_counter_objects(struct ptt_counter *counter, struct ptt_object_count *out, int64_t room)
{
	const struct rd_entry *e;
	int64_t n = 0;

	for (uint64_t i = 0; (e = rd_map_next(&counter->total.objects, &i)); n++)
		if (n < room)
			out[n] = (struct ptt_object_count){ (uint32_t)(e->a >> 4), (uint32_t)(e->a & 15),
							    e->b, e->value };
	return n;
}

int64_t ptt_counter_spans(struct ptt_counter *counter, struct ptt_thread_span *out, int64_t room)
{
	for (int64_t i = 0; i < room && i < counter->thread_count; i++)
		out[i] = counter->total.spans[i];
	return counter->thread_count;
}
