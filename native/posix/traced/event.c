/* SPDX-License-Identifier: MIT */
/* event.c - posix_trace_event(), the trace point; maps the streams that trace the process. */
#include "traced.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "platform/missing.h"
#include "platform/raw_syscall.h"
#include "system_event.h"
#include "cells.h"
#include "records.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#if defined(__clang__) /* makes no clones */
#define NEVER_INLINE __attribute__((noinline))
#else
#define NEVER_INLINE __attribute__((noinline, noclone))
#endif

struct px_control px_control __attribute__((aligned(PX_PAGE)));
struct px_own px_own;

/* The id of the process. The kernel clears the page in the child of a fork, so a child never uses the id of its parent. */
struct identity {
	uint32_t pid;
};
static struct identity unknown;
static struct identity *identity = &unknown; /* for a kernel without MADV_WIPEONFORK */
static __thread uint32_t self_tid INITIAL_EXEC;

/* ------------------------------------------------------------ the calling process and thread */

static uint32_t raw_pid(void)
{
	return (uint32_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint32_t px_own_pid(void)
{
	/* relaxed: all threads find the same id, and a child finds 0 */
	uint32_t pid = __atomic_load_n(&identity->pid, __ATOMIC_RELAXED);

	if (__builtin_expect(!pid, 0)) {
		pid = raw_pid();
		self_tid = 0;
		__atomic_store_n(&identity->pid, pid, __ATOMIC_RELAXED);
	}
	return pid;
}

void px_identity_begin(void)
{
	int err;
	void *page = px_raw_mmap(NULL, PX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &err);

	if (page && ptt_raw_syscall(SYS_madvise, (long)page, PX_PAGE, MADV_WIPEONFORK, 0, 0, 0) == 0)
		/* release: the page is zero for every thread that sees it; it is set before there are other threads */
		__atomic_store_n(&identity, page, __ATOMIC_RELEASE);
	else if (page)
		px_raw_munmap(page, PX_PAGE);
}

void px_identity_forked(void)
{
	self_tid = 0;
	__atomic_store_n(&identity->pid, raw_pid(), __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ streams that trace us */

/* Free the memory of a mapping that threads may still use; unmap its addresses when the next stream retires. */
static void retire(uint32_t slot, struct px_stream *old)
{
	struct px_stream *older = __atomic_exchange_n(&px_own.retired[slot], old, __ATOMIC_ACQ_REL);
	uint64_t size = px_mapped_size(old);
	int err;

	px_raw_mmap((char *)old + PX_PAGE, size - PX_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0, &err);
	if (older)
		px_raw_munmap(older, px_mapped_size(older));
}

/*
 * Map the stream in @slot. If its file is gone, the stream no longer traces us. Another thread or a signal handler may map it
 * at the same time: the first mapping stays.
 */
static void map_stream(uint32_t slot, uint64_t serial)
{
	struct px_stream *old = __atomic_load_n(&px_own.stream[slot], __ATOMIC_ACQUIRE);
	uint32_t user = __atomic_load_n(&px_control.user[slot], __ATOMIC_RELAXED);
	struct px_path path, directory = px_own.directory;
	struct px_buffer buffer;
	int fd;

	if (!serial || (old && old->serial == serial) || !directory.text[0])
		return;
	if (user && px_directory(&directory, user - 1, false) < 0)
		return;
	px_path_add(&path, &directory, 's', serial, 0);
	fd = px_file_open(&path, 0, PX_NOT_MADE);
	if (fd == -ENOENT)
		px_control_leave(&px_control, slot, serial);
	if (fd < 0)
		return;
	if (px_buffer_map(&buffer, fd) == 0) {
		/* release: a load that sees the stream sees it mapped */
		if (!__atomic_compare_exchange_n(&px_own.stream[slot], &old, buffer.stream, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			px_raw_munmap(buffer.stream, px_mapped_size(buffer.stream));
		else if (old)
			retire(slot, old);
	}
	px_raw_close(fd);
}

struct px_stream *px_own_stream(uint32_t slot, uint64_t serial)
{
	struct px_stream *stream;

	map_stream(slot, serial);
	/* acquire: pairs with the release of the thread that mapped it */
	stream = __atomic_load_n(&px_own.stream[slot], __ATOMIC_ACQUIRE);
	return stream && stream->serial == serial ? stream : NULL;
}

static struct px_buffer buffer_of(struct px_stream *stream)
{
	return (struct px_buffer){
		.stream = stream,
		.mark = (uint64_t *)((char *)stream + stream->mark_offset),
		.ring = (char *)stream + stream->ring_offset,
		.mask = stream->ring_cells - 1,
	};
}

/* The stream in @slot; NULL if it is not mapped, or a new stream has taken the slot since. */
static inline struct px_stream *mapped_in(uint32_t slot)
{
	/* acquire: pairs with the release of the thread that mapped it */
	struct px_stream *stream = __atomic_load_n(&px_own.stream[slot], __ATOMIC_ACQUIRE);

	return stream && stream->serial == __atomic_load_n(&px_control.serial[slot], __ATOMIC_RELAXED) ? stream : NULL;
}

static uint32_t tid_slow(void)
{
	return self_tid = (uint32_t)ptt_raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline uint64_t own_thread(void)
{
#if defined(__x86_64__)
	return (uint64_t)ptt_thread_pointer(); /* the value of pthread_self(), without a call */
#else
	return (uint64_t)pthread_self();
#endif
}

/* Set the process and the thread of the event to the calling thread. */
static inline __attribute__((always_inline)) void set_thread(struct px_event *event)
{
	uint32_t pid = __atomic_load_n(&identity->pid, __ATOMIC_RELAXED), tid = self_tid;

	event->pid = __builtin_expect(!pid, 0) ? px_own_pid() : pid;
	event->tid = __builtin_expect(!tid || !pid, 0) ? tid_slow() : tid;
	event->thread = own_thread();
}

/* The fast path of an event into a stream; ring_put.c has the slow path. */
static inline __attribute__((always_inline)) void put(const struct px_buffer *b, const struct px_event *event)
{
	struct px_stream *stream = b->stream;
	uint32_t size = event->size < stream->max_data ? (uint32_t)event->size : stream->max_data;
	uint32_t cells = px_cells(size);
	uint64_t head = __atomic_load_n(&stream->head, __ATOMIC_ACQUIRE), time;

	if (__builtin_expect(head & PX_HEAD_FLAGS || !px_has_room(stream, head, cells, stream->limit), 0))
		return px_put_slow(b, event);
	/* the cell comes into the cache while the clock is read */
	__builtin_prefetch(px_record_at(b, PX_PLACE(head)), 1);
	px_help(b, head);
	if (__builtin_expect(!px_move_head(stream, head, cells, 0, &time), 0))
		return px_put_slow(b, event);
	px_write_record(b, PX_PLACE(head), cells, time, event, size);
	if (__builtin_expect(!px_finish(b, PX_PLACE(head), cells), 0))
		px_put_torn(b);
}

static inline __attribute__((always_inline)) void record(const struct px_event *event, uint32_t id)
{
	/* relaxed: see struct px_control */
	uint64_t active = __atomic_load_n(&px_control.active, __ATOMIC_RELAXED);

	for (; active; active &= active - 1) {
		uint32_t slot = (uint32_t)__builtin_ctzll(active);
		struct px_stream *stream = mapped_in(slot);
		struct px_buffer buffer;

		if (__builtin_expect(!stream, 0))
			stream = px_own_stream(slot, __atomic_load_n(&px_control.serial[slot], __ATOMIC_SEQ_CST));
		if (!stream || !px_records(stream, id))
			continue;
		buffer = buffer_of(stream);
		if (__builtin_expect(px_lives(stream), 1))
			put(&buffer, event);
		else
			px_close(stream); /* the controller has died, and this thread may be the first to notice */
	}
}

void px_record(struct px_event *event)
{
	set_thread(event);
	record(event, event->id);
}

struct px_event px_own_event(trace_event_id_t id, const void *address, const void *data, size_t size)
{
	struct px_event event = {.id = id, .address = (uint64_t)address, .data = data, .size = size};

	set_thread(&event);
	return event;
}

/* May a program record events with this id? */
static inline bool is_user_id(trace_event_id_t id)
{
	return id == POSIX_TRACE_UNNAMED_USEREVENT || id - PX_EVENT_USER < px_user_count(px_own.names);
}

static __attribute__((noinline)) void record_user_event(trace_event_id_t id, const void *data, size_t size, void *address)
{
	struct px_event event;

	if (!is_user_id(id))
		return;
	/* member by member, and never copied: a copy would wait for these stores */
	event.id = id;
	event.address = (uint64_t)address;
	event.data = data;
	event.size = data ? size : 0;
	set_thread(&event);
	record(&event, id);
	if (__builtin_expect(px_has_tracer, 0))
		px_tracer_event(&event);
}

/*
 * Never inlined, also not by the linker: the event records the address of our caller. If no stream records the event, this
 * function saves no register and calls nothing.
 */
NEVER_INLINE void posix_trace_event(trace_event_id_t event_id, const void *restrict data_ptr, size_t data_len)
{
	/* relaxed: a stream that is created at this moment may miss this event */
	uint64_t active = __atomic_load_n(&px_control.active, __ATOMIC_RELAXED);

	if (__builtin_expect(event_id >= PX_EVENT_COUNT, 0))
		return;
	if (__builtin_expect(px_has_tracer, 0))
		return record_user_event(event_id, data_ptr, data_len, __builtin_return_address(0));
	for (; __builtin_expect(active != 0, 0); active &= active - 1) {
		const struct px_stream *stream = mapped_in((uint32_t)__builtin_ctzll(active));

		if (!stream || px_records(stream, event_id))
			return record_user_event(event_id, data_ptr, data_len, __builtin_return_address(0));
	}
}

/* ------------------------------------------------------------ events of the system */

bool px_is_traced(void)
{
	/* relaxed: see struct px_control */
	return __atomic_load_n(&px_control.active, __ATOMIC_RELAXED);
}

void px_system_event(uint32_t type, const void *data, size_t size, void *address)
{
	px_record(&(struct px_event){
		.id = type, .address = (uint64_t)(uintptr_t)address, .data = data, .size = data ? size : 0});
}
