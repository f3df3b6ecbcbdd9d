/* SPDX-License-Identifier: MIT */
/* rings.c - opens, reads and closes the ring buffers with the kernel's records of context switches. */
#include "sched.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The memory that an ordinary user may lock for each processor (perf_event_mlock_kb), or less if less is left. */
#define RING_PAGES 128u
#define RING_PAGES_MIN 4u

/* The end of each record. */
struct sample_id {
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint32_t cpu;
	uint32_t reserved;
};
_Static_assert(sizeof(struct sample_id) == 24, "PERF_SAMPLE_TID, _TIME, _CPU");

#define RECORD_MAX 256u
#define RECORD_LONGEST 64u /* bytes of the longest record with the flags of open_event() */

bool sched_record_add(struct sched_records *records, const struct sched_record *record)
{
	struct sched_record *item = with_room(records->item, records->count, &records->room, sizeof(*item));

	if (!item)
		return false;
	records->item = item;
	records->item[records->count] = *record;
	records->item[records->count++].order = records->ever++;
	return true;
}

/* Threads and processes that @pid makes inherit the event. For inherited events, the kernel needs a ring for each processor. */
static int open_event(pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.context_switch = 1,
		.task = 1,
		.inherit = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int map_ring(struct sched_rings *rings, struct sched_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (;;) {
		char *map = mmap(NULL, page + rings->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

		if (map != MAP_FAILED) {
			ring->data = map + page;
			return 0;
		}
		/* all rings have the size of the first ring */
		if (errno != EPERM || rings->count || rings->size <= RING_PAGES_MIN * page)
			return -errno;
		rings->size /= 2;
	}
}

int rings_open(struct sched_rings *rings, pid_t pid)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	int err = 0;

	*rings = (struct sched_rings){.size = RING_PAGES * (size_t)sysconf(_SC_PAGESIZE)};
	rings->ring = calloc((size_t)processors, sizeof(*rings->ring));
	if (!rings->ring)
		return -ENOMEM;
	for (int cpu = 0; cpu < processors && !err; cpu++) {
		struct sched_ring *ring = &rings->ring[rings->count];

		ring->fd = open_event(pid, cpu);
		if (ring->fd == -ENODEV) /* the processor is switched off */
			continue;
		err = ring->fd < 0 ? ring->fd : map_ring(rings, ring);
		if (!err)
			rings->count++;
		else if (ring->fd >= 0)
			close(ring->fd);
	}
	if (!err && !rings->count)
		err = -ENODEV;
	if (err)
		rings_close(rings);
	return err;
}

void rings_close(struct sched_rings *rings)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < rings->count; i++) {
		munmap(rings->ring[i].data - page, page + rings->size);
		close(rings->ring[i].fd);
	}
	free(rings->ring);
	*rings = (struct sched_rings){0};
}

/* A record may begin at the end of the buffer and continue at its beginning. */
static void copy_out(const struct sched_rings *rings, const struct sched_ring *ring, uint64_t at, void *to, size_t size)
{
	size_t begin = at & (rings->size - 1), first = rings->size - begin < size ? rings->size - begin : size;

	memcpy(to, ring->data + begin, first);
	memcpy((char *)to + first, ring->data, size - first);
}

/* Add the record to @records. Return: 1 if there was no memory, else 0. */
static uint64_t take_record(struct sched_ring *ring, const char *bytes, const struct perf_event_header *head,
			    struct sched_records *records)
{
	struct sched_record record;
	struct sample_id id;
	uint64_t lost[2];

	memcpy(&id, bytes + head->size - sizeof(id), sizeof(id));
	record = (struct sched_record){.time = id.time, .pid = id.pid, .tid = id.tid, .cpu = (uint16_t)id.cpu};
	switch (head->type) {
	case PERF_RECORD_SWITCH:
		record.kind = SCHED_IS_IN;
		if (head->misc & PERF_RECORD_MISC_SWITCH_OUT)
			record.kind = head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? SCHED_IS_PREEMPTED : SCHED_IS_OUT;
		break;
	case PERF_RECORD_EXIT:
		record.kind = SCHED_IS_EXIT;
		break;
	case PERF_RECORD_LOST:
		/* the kernel lost the records after the last record of this ring */
		memcpy(lost, bytes + sizeof(*head), sizeof(lost));
		record.kind = SCHED_IS_LOST;
		record.tid = (uint32_t)lost[1];
		record.time = ring->last ? ring->last : id.time;
		break;
	default:
		return 0;
	}
	ring->last = id.time;
	return !sched_record_add(records, &record);
}

static uint64_t read_ring(struct sched_rings *rings, struct sched_ring *ring, struct sched_records *records)
{
	struct perf_event_mmap_page *page = (void *)(ring->data - sysconf(_SC_PAGESIZE));
	/* acquire: pairs with the kernel's barrier between the records and data_head */
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail, failed = 0;
	char bytes[RECORD_MAX];

	while (at < head) {
		struct perf_event_header record;

		copy_out(rings, ring, at, &record, sizeof(record));
		if (record.size >= sizeof(record) + sizeof(struct sample_id) && record.size <= sizeof(bytes)) {
			copy_out(rings, ring, at, bytes, record.size);
			failed += take_record(ring, bytes, &record, records);
		}
		at += record.size ? record.size : head - at;
	}
	/* The kernel counts records without room, and reports the count with the next record. There may be no next record. */
	if (head - page->data_tail + RECORD_LONGEST > rings->size) {
		struct sched_record full = {.time = ring->last, .kind = SCHED_IS_LOST};

		failed += !sched_record_add(records, &full);
	}
	/* release: the kernel may overwrite the records: our reads are over */
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return failed;
}

uint64_t rings_read(struct sched_rings *rings, struct sched_records *records)
{
	uint64_t failed = 0;

	for (uint32_t i = 0; i < rings->count; i++)
		failed += read_ring(rings, &rings->ring[i], records);
	return failed;
}
