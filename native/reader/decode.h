/* SPDX-License-Identifier: MIT */
/* decode.h - the fields of one event, in slots or in a record. */
#ifndef PTTREAD_DECODE_H
#define PTTREAD_DECODE_H

#include "nptl_trace_events.h"
#include "traceset.h"

/* Bit 0 of a payload value: it points to a record. Slots and records are at least 4-aligned. */
#define RD_PAYLOAD_RECORD 1u

/* Number of fixed continuation slots of an id; bit 7: variable slots follow. Filled when the library is loaded. */
extern uint8_t rd_slots_of[1024];
#define RD_SLOTS_BYTES 0x80u

/* rd_payload - the place of the fields of the event at `slot`; 0 if they are not all there before `end`. */
uint64_t rd_payload_checked(const uint8_t *slot, const uint8_t *end, uint32_t id);

static inline uint64_t rd_payload(const uint8_t *slot, const uint8_t *end, uint32_t id)
{
	return rd_slots_of[id] ? rd_payload_checked(slot, end, id) : (uint64_t)(uintptr_t)slot;
}

/* A reading of the scheduler without its second part, and the later reading that has the second part. */
#define RD_SCHED_RAN (NPTL_DOMAIN_HANDLER << 6 | NPTL_EV_SCHED_RAN)
#define RD_SCHED_KEPT (NPTL_DOMAIN_HANDLER << 6 | NPTL_EV_SCHED_KEPT)
#define RD_SCHED_PARTIAL (NPTL_DOMAIN_HANDLER << 6 | NPTL_EV_SCHED_PARTIAL)
/* Context switches have the ids from the first of these to the last. */
#define RD_SCHED_IN (NPTL_DOMAIN_HANDLER << 6 | NPTL_EV_SCHED_IN)
#define RD_SCHED_LOST (NPTL_DOMAIN_HANDLER << 6 | NPTL_EV_SCHED_LOST)

/* rd_reading_behind - slots from a SCHED_RAN to the SCHED_KEPT that belongs to it; 0: the packet has none */
uint16_t rd_reading_behind(const uint8_t *ran, const uint8_t *end);

/* rd_record_size - bytes of the record at p; 0 if no record has this length. @sound: its checksum is right */
uint32_t rd_record_size(const uint8_t *p, const uint8_t *end, bool *sound);

/* rd_record_object, rd_record_site - object, and address of the call site, of the record at p. */
static inline uint64_t rd_record_object(const uint8_t *p)
{
	return rd_u32(p + 20) | (uint64_t)rd_u32(p + 24) << 32;
}

static inline uint64_t rd_record_site(const uint8_t *p)
{
	return (rd_u32(p + 28) | (uint64_t)rd_u32(p + 32) << 32) & PTT_SITE_ADDRESS;
}

/* rd_emit - writes event i of the columns; all but its stack and reading. */
static inline void rd_emit(const struct ptt_columns *out, int64_t i, int64_t ts, uint32_t thread, uint16_t id, uint16_t cpu,
			   uint64_t object, uint64_t site, uint64_t payload)
{
	if (out->ts)
		out->ts[i] = ts;
	if (out->thread)
		out->thread[i] = thread;
	if (out->id)
		out->id[i] = id;
	if (out->cpu)
		out->cpu[i] = cpu;
	if (out->object)
		out->object[i] = object;
	if (out->site)
		out->site[i] = site;
	if (out->payload)
		out->payload[i] = payload;
}

struct rd_value {
	const uint8_t *bytes; /* a variable field in a record; NULL in slots */
	int64_t number;       /* the length, for a variable field */
};

/* rd_field - one field of an event; false if the event does not have it. */
bool rd_field(uint64_t payload, const struct ptt_event_type *type, uint32_t number, struct rd_value *out);
/* rd_bytes - copies a variable field of rd_value.number bytes. */
void rd_bytes(uint64_t payload, const struct ptt_event_type *type, const struct rd_value *value, char *out);

#endif
