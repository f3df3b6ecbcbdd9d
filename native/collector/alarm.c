/* SPDX-License-Identifier: MIT */
/* alarm.c - looks at new events in the live buffers for a reason to make a snapshot: a long wait for a lock, an event of the program. */
/*
 * Each look reads the slots that were written since the last look, so the program pays nothing. A chunk may be overwritten
 * while it is read. So a reason counts only if the chunk is still the same afterwards.
 */
#include "collector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"

#define EVENT_ID(domain, number) ((uint32_t)NPTL_DOMAIN_##domain << 6 | NPTL_EV_##number)
#define TEXT_MAX 256u
#define GIGA UINT64_C(1000000000)

/* The collector's notes about a chunk between two looks. */
struct alarm_note {
	uint64_t serial;     /* with state: the life of the chunk that this note describes */
	uint32_t state;
	uint32_t at;         /* offset of the first slot that no look has read */
	uint32_t wait;       /* id of the event that began a wait for a lock, if no event has ended the wait; else 0 */
	uint32_t told;       /* 1 = this wait was reported */
	uint64_t wait_begin; /* its time */
};

/* What a look searches, and what it has found so far. */
struct look {
	const struct ptt_collector *c;
	const struct ptt_collector_alarm *alarm;
	struct ptt_collector_reason *reason;
	uint64_t now;
};

/* A live chunk, as a look sees it. */
struct live {
	const struct ptt_chunk *chunk;
	uint32_t size;
	uint32_t state;
	uint64_t serial;
};

/* 8 bytes of a chunk, which a writer may reuse meanwhile; 0 behind its end. */
static uint64_t word_at(const struct live *live, uint32_t at)
{
	/* acquire: pairs with the writer's release of each first word */
	return at + 8 <= live->size ? __atomic_load_n((const uint64_t *)((const char *)live->chunk + at), __ATOMIC_ACQUIRE) : 0;
}

/*
 * The field @name of an event, cut off at the end of its word; 0 if the event has no such field. The caller drops the
 * fields behind it. @at: the event's first slot
 */
static uint64_t field_of(const struct live *live, uint32_t at, const struct ptt_event_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->field_count; i++) {
		uint32_t place = at + type->fields[i].offset;

		if (strcmp(type->fields[i].name, name) == 0)
			return word_at(live, place & ~7u) >> 8 * (place & 7);
	}
	return 0;
}

static bool is_lock(uint32_t domain)
{
	return domain == NPTL_DOMAIN_MUTEX || domain == NPTL_DOMAIN_RWLOCK || domain == NPTL_DOMAIN_SPIN ||
	       domain == NPTL_DOMAIN_LLL;
}

/* Does an event begin a wait for a lock? @at: its first slot */
static bool begins_wait(const struct live *live, uint32_t at, uint32_t id)
{
	const struct ptt_event_type *type;

	if (id == EVENT_ID(FUTEX, FUTEX_WAIT_IN)) {
		uint16_t kind = (uint16_t)field_of(live, at, ptt_event_type_find(id), "lock");

		return kind < ptt_futex_kind_count && ptt_futex_kinds[kind].waits == PTT_FUTEX_LOCK;
	}
	if (!is_lock(id >> 6))
		return false;
	type = ptt_event_type_find(id);
	return type && strcmp(type->role, "wait") == 0;
}

/*
 * Does an event end the wait for a lock that the event @wait began? Readings of the processor and events of a signal handler
 * come in the middle of a wait. Inside the thread library a wait for a mutex has waits for low-level locks and futexes.
 */
static bool ends_wait(uint32_t wait, uint32_t id)
{
	if (id >> 6 == NPTL_DOMAIN_LLL)
		return wait >> 6 == NPTL_DOMAIN_LLL;
	if (id == EVENT_ID(FUTEX, FUTEX_WAIT_OUT))
		return wait == EVENT_ID(FUTEX, FUTEX_WAIT_IN);
	return is_lock(id >> 6);
}

/* The duration of a wait for a lock that an event ends, or 0. @wait: the event that began the wait, or 0 */
static uint64_t wait_of(const struct live *live, uint32_t at, uint32_t id, uint32_t wait)
{
	const struct ptt_event_type *type;

	if (!is_lock(id >> 6) && !(wait && id == EVENT_ID(FUTEX, FUTEX_WAIT_OUT)))
		return 0;
	type = ptt_event_type_find(id);
	return type ? field_of(live, at, type, "wait_ns") : 0;
}

/* Does the text of a user event begin with one of the wanted texts? */
static bool says(const struct live *live, uint32_t at, const char *texts)
{
	const struct ptt_event_type *type = ptt_event_type_find(EVENT_ID(USER, USER));
	uint32_t size = (uint32_t)field_of(live, at, type, "size"), n;
	char text[TEXT_MAX];

	at += (1 + type->slots) * PTT_SLOT_SIZE;
	for (n = 0; n < size && n < TEXT_MAX; n++) {
		uint32_t byte = at + n / PTT_PIECE_SIZE * PTT_SLOT_SIZE + 2 + n % PTT_PIECE_SIZE;

		text[n] = (char)(word_at(live, byte & ~7u) >> 8 * (byte & 7));
	}
	for (; *texts; texts += strlen(texts) + 1)
		if (strlen(texts) <= n && memcmp(texts, text, strlen(texts)) == 0)
			return true;
	return false;
}

static uint64_t time_of(const struct ptt_chunk *chunk, uint64_t word)
{
	/* relaxed: constant as long as the chunk belongs to its thread */
	uint64_t t_base = __atomic_load_n(&chunk->t_base, __ATOMIC_RELAXED);

	return t_base + (((word >> PTT_TIME_SHIFT) - t_base) & PTT_TIME_MASK);
}

static void set_reason(const struct live *live, uint32_t kind, uint64_t wait_ns, struct ptt_collector_reason *found)
{
	found->kind = kind;
	found->wait_ns = wait_ns;
	/* relaxed, both: constant as long as the chunk belongs to its thread */
	found->pid = __atomic_load_n(&live->chunk->pid, __ATOMIC_RELAXED);
	found->tid = __atomic_load_n(&live->chunk->tid, __ATOMIC_RELAXED);
}

static uint64_t ns_of(const struct look *look, uint64_t ticks)
{
	uint64_t frequency = look->alarm->frequency;

	return ticks / frequency * GIGA + ticks % frequency * GIGA / frequency;
}

/*
 * Was a wait reported that began in the thread's chunk before this one? The next wait of the thread begins at least
 * min_wait_ns later. @end: time of the event that ends the wait
 */
static bool was_told(const struct look *look, const struct live *live, uint64_t end, uint64_t wait_ns)
{
	const struct ptt_collector *c = look->c;

	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		const struct alarm_note *note = &c->alarm_note[i];
		uint64_t since;

		if (!note->told || note->serial + 1 != live->serial ||
		    PTT_CHUNK_THREAD(note->state) != PTT_CHUNK_THREAD(live->state) || note->wait_begin > end)
			continue;
		since = ns_of(look, end - note->wait_begin);
		return since < wait_ns || since - wait_ns < look->alarm->min_wait_ns;
	}
	return false;
}

/* Read the new slots of a chunk. */
static void read_new(const struct look *look, const struct live *live, struct alarm_note *note,
		     struct ptt_collector_reason *found)
{
	const struct ptt_collector_alarm *alarm = look->alarm;
	uint64_t word;
	uint32_t id;

	for (; (id = (word = word_at(live, note->at)) & PTT_ID_MASK) != 0; note->at += PTT_SLOT_SIZE) {
		if (id == PTT_ID_MORE || id == PTT_ID_STACK || id == PTT_ID_END)
			continue;
		if (alarm->min_wait_ns && (!note->wait || ends_wait(note->wait, id))) {
			uint64_t wait_ns = wait_of(live, note->at, id, note->wait), time = time_of(live->chunk, word);

			if (wait_ns >= alarm->min_wait_ns && !note->told && !was_told(look, live, time, wait_ns))
				set_reason(live, PTT_REASON_WAIT, wait_ns, found);
			note->wait = begins_wait(live, note->at, id) ? id : 0;
			note->wait_begin = time;
			note->told = 0;
		}
		if (id == EVENT_ID(USER, USER) && alarm->texts && says(live, note->at, alarm->texts))
			set_reason(live, PTT_REASON_TEXT, 0, found);
	}
}

/* Has the thread waited for long, and waits still? */
static void check_wait(const struct look *look, const struct live *live, struct alarm_note *note,
		       struct ptt_collector_reason *found)
{
	uint64_t ticks = look->now - note->wait_begin, ns;

	if (!look->alarm->min_wait_ns || !note->wait || note->told || (int64_t)ticks < 0)
		return;
	ns = ns_of(look, ticks);
	if (ns < look->alarm->min_wait_ns)
		return;
	set_reason(live, PTT_REASON_WAIT, ns, found);
	note->told = 1;
}

static void look_at(const struct look *look, uint32_t index)
{
	const struct ptt_collector *c = look->c;
	struct alarm_note *note = &c->alarm_note[index], fresh;
	struct ptt_collector_reason found = {0};
	struct live live = {.chunk = chunk_at(c, index), .size = c->head.chunk_size, .state = state_of(c, index)};

	if (!holds_data(live.state))
		return;
	live.serial = serial_of(c, index);
	if (note->at && is_same_life(c, index, note->state, note->serial))
		fresh = *note;
	else
		fresh = (struct alarm_note){.serial = live.serial, .state = live.state, .at = PTT_CHUNK_HEAD};
	read_new(look, &live, &fresh, &found);
	if (PTT_CHUNK_STATUS(live.state) == PTT_CHUNK_OWNED)
		check_wait(look, &live, &fresh, &found);
	if (!is_same_life(c, index, fresh.state, fresh.serial))
		return;
	*note = fresh;
	if (found.kind && !look->reason->kind)
		*look->reason = found;
}

int ptt_collector_look(struct ptt_collector *c, const struct ptt_collector_alarm *alarm,
		       struct ptt_collector_reason *reason)
{
	struct look look = {.c = c, .alarm = alarm, .reason = reason, .now = ptt_clock_fenced(c->head.clock)};

	*reason = (struct ptt_collector_reason){0};
	if (c->shared || c->head.policy != PTT_POLICY_LOOP || !alarm->frequency)
		return -EINVAL;
	if (!c->alarm_note)
		c->alarm_note = calloc(c->head.chunk_count, sizeof(*c->alarm_note));
	if (!c->alarm_note)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->head.chunk_count; i++)
		look_at(&look, i);
	return reason->kind != 0;
}
