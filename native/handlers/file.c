/* SPDX-License-Identifier: MIT */
/* file.c - the trivial handler: one big private buffer that becomes a trace when the program ends. */
/*
 *     PTHREAD_NPTL_TRACE=file:DIR                      DIR becomes a trace directory
 *     PTHREAD_NPTL_TRACE=file:file=DIR,size=256M       room for 256 MB; 64 MB otherwise
 *     PTHREAD_NPTL_TRACE=file                          ptt-<program>-<pid> in the current directory
 *
 * For a first look without a recorder. Each process image writes its own trace: the first image writes DIR, all others
 * write DIR-<pid>. A process that is killed, or leaves by _exit(), writes nothing. The trace has the beginning: the first
 * event that finds no room ends it, and all later events are only counted.
 *
 * A thread reserves its place as in the shared buffer (shared.c): compare and swap, with the time taken in between. It
 * stores the first word of its record last, so the thread that writes the trace sees which records are complete.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include "file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "handler.h"
#include "origin/call_site.h"
#include "platform/clock.h"
#include "platform/confined.h"
#include "platform/own_process.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "platform/raw_syscall.h"
#include "record/record.h"
#include "module_list.h"
#include "parse_size.h"

#define SIZE_DEFAULT (UINT64_C(64) << 20)
#define SIZE_MIN UINT64_C(65536)
#define SIZE_MAX_BYTES (UINT64_C(1) << 40)
#define INFO_MAX (1u << 20) /* bytes of the files beside the events */

static struct file_buffer buffer;

static __thread uint32_t self_tid INITIAL_EXEC;

/* ------------------------------------------------------------ beginning */

static void refuse(const char *what, const char *detail)
{
	fprintf(stderr, "ptt: file: %s%s%s; the program runs untraced\n", what, detail ? ": " : "",
		detail ? detail : "");
	__nptl_trace_enabled = 0;
}

static bool parse_args(char **args, const char **path, uint64_t *size)
{
	*path = NULL;
	*size = SIZE_DEFAULT;
	for (; *args; args++) {
		if (strncmp(*args, "size=", 5) == 0) {
			if (!ptt_parse_size(*args + 5, SIZE_MIN, SIZE_MAX_BYTES, size)) {
				refuse("not a size from 64K to 1T", *args + 5);
				return false;
			}
		} else if (strncmp(*args, "file=", 5) == 0) {
			*path = *args + 5;
		} else if (!*path) {
			*path = *args;
		} else {
			refuse("unknown argument", *args);
			return false;
		}
	}
	return true;
}

/* Set the absolute path, which stays valid when the process changes its directory. */
static bool set_path(const char *path)
{
	char cwd[PATH_MAX] = "";
	int n;

	if (path && path[0] == '/')
		n = snprintf(buffer.path, sizeof(buffer.path), "%s", path);
	else if (!getcwd(cwd, sizeof(cwd)))
		return false;
	else if (path && *path)
		n = snprintf(buffer.path, sizeof(buffer.path), "%s/%s", cwd, path);
	else
		n = snprintf(buffer.path, sizeof(buffer.path), "%s/ptt-%s-%u", cwd,
			     program_invocation_short_name, buffer.pid);
	/* room for "-<pid>.<n>" and the names of files in the directory */
	return n > 0 && (size_t)n < sizeof(buffer.path) - 64;
}

static void begin_trace(void)
{
	struct put_identity *id = &buffer.identity;
	struct timespec now;

	buffer.pid = (uint32_t)getpid();
	clock_gettime(CLOCK_REALTIME, &now);
	id->start_clock = ptt_clock_monotonic_ns();
	id->start_unix_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	if (getrandom(id->uuid, sizeof(id->uuid), GRND_NONBLOCK) != sizeof(id->uuid))
		memcpy(id->uuid, &id->start_clock, sizeof(id->start_clock));
	id->uuid[6] = (id->uuid[6] & 0x0f) | 0x40; /* a random UUID, version 4 of RFC 9562 */
	id->uuid[8] = (id->uuid[8] & 0x3f) | 0x80;
}

/* In the child of a fork: the events in the buffer belong to the parent. */
static void begin_child(void)
{
	madvise(buffer.array, buffer.size * 4, MADV_DONTNEED); /* private memory: zero from now on */
	buffer.reserved = buffer.dropped = 0;
	buffer.stopped = buffer.saw_other_domain = 0;
	buffer.forked = true;
	self_tid = 0;
	buffer.claimed = false; /* the directory belongs to the parent */
	begin_trace();
}

EXPORT void nptl_trace_init(char **args)
{
	const char *path;
	uint64_t size;
	void *array;
	int err;

	if (buffer.array) {
		begin_child();
		return;
	}
	if (!parse_args(args, &path, &size))
		return;
	begin_trace();
	if (!set_path(path)) {
		refuse("no usable name for the trace directory", path);
		return;
	}
	err = file_claim(&buffer);
	if (err) {
		refuse(buffer.path, strerror(-err));
		return;
	}
	array = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (array == MAP_FAILED) {
		refuse("no memory for the buffer", strerror(errno));
		return;
	}
	file_note_modules();
	buffer.size = size / 4;
	buffer.array = array;
}

/* ------------------------------------------------------------ recording */

static bool reserve(uint32_t words, uint64_t *at, uint64_t *time)
{
	/* acquire: pairs with the swap of the thread that reserved before, so our time is not older than its time */
	uint64_t reserved = __atomic_load_n(&buffer.reserved, __ATOMIC_ACQUIRE);

	do {
		/* relaxed: a writer that does not see the stop yet has reserved before the end that file_write() reads, or is left out */
		if (__atomic_load_n(&buffer.stopped, __ATOMIC_RELAXED))
			return false;
		if (reserved + words > buffer.size) {
			/* a shorter event might fit, but then the trace would have a hole */
			__atomic_store_n(&buffer.stopped, STOPPED_FULL, __ATOMIC_RELAXED);
			return false;
		}
		*time = ptt_clock_monotonic_ns(); /* between the load and the swap: times follow places */
		*at = reserved;
	} while (!__atomic_compare_exchange_n(&buffer.reserved, &reserved, reserved + words, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
	return true;
}

static void put_event(uint32_t *record, uint32_t room, const struct nptl_trace_event *event, const void *site)
{
	uint32_t words = ptt_record_make(record, room, event, site);
	uint32_t *to;
	uint64_t at, time;

	if (!words)
		return;
	if (!reserve(words, &at, &time)) {
		/* events during the writing of the trace come after its end, and are not missing in it */
		if (__atomic_load_n(&buffer.stopped, __ATOMIC_RELAXED) != STOPPED_TO_WRITE)
			__atomic_fetch_add(&buffer.dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (__builtin_expect(!self_tid, 0))
		self_tid = ptt_own_tid();
	ptt_record_finish(record, words, time, buffer.pid, self_tid);
	to = buffer.array + at;
	to[3] = record[3];
	/* release: with the length, and the thread above, the record shows that it has begun */
	__atomic_store_n(&to[0], ptt_record_word0(PTT_RECORD_UNFINISHED, words), __ATOMIC_RELEASE);
	memcpy(to + 1, record + 1, (words - 1) * sizeof(*to));
	/* release: pairs with the acquire of the thread that writes the trace */
	__atomic_store_n(&to[0], record[0], __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void put_large(const struct nptl_trace_event *event, const void *site)
{
	uint32_t record[PTT_RECORD_WORDS_MAX];

	put_event(record, PTT_RECORD_WORDS_MAX, event, site);
}

/* The process executes another program: this is the end of the image, unless a child of vfork borrows it. */
static void before_exec(void)
{
	int before;

	if ((uint32_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != buffer.pid)
		return;
	if (buffer.forked && !buffer.saw_other_domain)
		return; /* fork and exec, as every program starts others: nothing to report */
	/* exec is no cancellation point, but the writing of the trace is */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	file_write(&buffer);
	pthread_setcancelstate(before, NULL);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	uint32_t record[PTT_RECORD_SMALL];
	bool process = event.source == NPTL_TRACE_SOURCE_NPTL && event.domain == NPTL_DOMAIN_PROCESS;

	if (__builtin_expect(!buffer.array, 0))
		return;
	if (__builtin_expect(ptt_record_is_small(&event), 1))
		put_event(record, PTT_RECORD_SMALL, &event, NULL);
	else
		put_large(&event, ptt_upcalls.user_site());
	if (!process && !buffer.saw_other_domain)
		buffer.saw_other_domain = 1;
	if (process && event.event == NPTL_EV_PROCESS_EXEC)
		before_exec();
}

EXPORT void nptl_trace_handler_module(const struct nptl_trace_module *module)
{
	if (module)
		module_list_add(module, ptt_clock_monotonic_ns());
}

EXPORT void nptl_trace_fini(void)
{
	int err;

	if (!buffer.array)
		return;
	if (ptt_is_confined()) {
		err = -EPERM;
	} else if (!ptt_may_write(buffer.reserved * 8 + INFO_MAX)) {
		err = -EFBIG;
	} else {
		file_note_modules();
		err = file_write(&buffer);
	}
	if (err)
		fprintf(stderr, "ptt: file: cannot write %s: %s\n", buffer.path, strerror(-err));
	else if (buffer.dropped)
		fprintf(stderr, "ptt: file: the buffer was full; %llu later events are not in %s\n",
			(unsigned long long)buffer.dropped, buffer.path);
}
