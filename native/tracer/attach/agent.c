/* SPDX-License-Identifier: MIT */
/* agent.c - the thread that was put into a process which runs: joins a recording, leads calls to the hooks, and ends that. */
/*
 * What the recorder wants stands in the file `attach` of the session, which is mapped as long as the agent lives. The levels
 * are on a page of the process's own here, which the kernel clears in every child: children of an attached process go
 * through the hooks without doing anything there, however they were made, and none of their parent's buffers is written to.
 *
 * Nothing is ever unloaded: threads may be asleep in a hook for as long as they like.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler.h"
#include "platform/raw_syscall.h"
#include "rebind.h"
#include "writer/bell.h"

/* So long it takes until calls of a module that was just loaded are recorded. */
#define LOOK_NS 25000000L
#define LOOKS_A_SECOND 40u
/* A thread that has passed the test of the level writes its event and is out again in much less. */
#define SETTLE_NS 20000000L

/* The name of a C library's function that this process was given to call. */
EXPORT int __nptl_trace_attach(const char *text);

static void *map_begin(const char *path, size_t size, int protection)
{
	void *begin = MAP_FAILED;
	struct stat st;
	int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)size)
		begin = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
	close(fd);
	return begin == MAP_FAILED ? NULL : begin;
}

static struct ptt_attach *map_file(const char *path)
{
	struct ptt_attach *file = map_begin(path, sizeof(*file), PROT_READ | PROT_WRITE);

	if (!file)
		return NULL;
	if (memcmp(file->abi.magic, PTT_ATTACH_MAGIC, sizeof(file->abi.magic)) == 0 && file->abi.major == PTT_ABI_MAJOR)
		return file;
	munmap(file, sizeof(*file));
	return NULL;
}

/* The head of the buffers, which lie beside the file. It is changed only by others. */
static const struct ptt_segment *map_segment(const char *path)
{
	const char *slash = strrchr(path, '/');
	char beside[512];

	if (!slash || snprintf(beside, sizeof(beside), "%.*s/segment", (int)(slash - path), path) >= (int)sizeof(beside))
		return NULL;
	return map_begin(beside, sizeof(struct ptt_segment), PROT_READ);
}

static void sleep_ns(long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	ptt_raw_syscall(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

static uint32_t wanted(const struct ptt_attach *file)
{
	/* acquire: pairs with the recorder's store, before which it has done what goes with it */
	return __atomic_load_n(&file->wanted, __ATOMIC_ACQUIRE);
}

static void set_state(struct ptt_attach *file, uint32_t state)
{
	/* release: pairs with the recorder's look, which sees all that was written before */
	__atomic_store_n(&file->state, state, __ATOMIC_RELEASE);
}

/*
 * Until the recorder wants something else, or there is none any more. A recorder that is killed is missed at the next look, one
 * that is stopped when patience is over.
 */
static void record(struct ptt_attach *file, const struct ptt_segment *segment)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint32_t beat = 0, silent = 0;
	struct ptt_rebound done;

	while (wanted(file) == PTT_ATTACH_WANT_RECORD && silent < PTT_ATTACH_PATIENCE_S * LOOKS_A_SECOND &&
	       (!segment || ptt_is_collected(segment))) {
		/* relaxed: it only has to change now and then */
		uint32_t now = __atomic_load_n(&file->beat, __ATOMIC_RELAXED);

		silent = now == beat ? silent + 1 : 0;
		beat = now;
		ptt_raw_syscall(SYS_futex, (long)&file->wanted, FUTEX_WAIT, PTT_ATTACH_WANT_RECORD, (long)&pause, 0, 0);
		if (ptt_rebind(true, true, &done)) {
			file->modules = done.modules;
			file->calls += done.calls;
			file->refused += done.refused;
		}
	}
}

static bool begin(struct ptt_attach *file, const char *variable)
{
	struct ptt_rebound done;

	ptt_modules_anew();
	if (!ptt_load_handler(variable))
		return false;
	ptt_python_start();
	if (!ptt_begin_handler())
		return false;
	ptt_start_threads_attached();
	ptt_rebind(true, false, &done);
	file->modules = done.modules;
	file->calls = done.calls;
	file->refused = done.refused;
	ptt_begin_levels_attached();
	set_state(file, PTT_ATTACH_RECORDS);
	return true;
}

static void end(struct ptt_attach *file)
{
	struct ptt_rebound done;

	ptt_clear_levels();
	ptt_rebind(false, false, &done);
	sleep_ns(SETTLE_NS);
	__nptl_trace_enabled = 0;
	ptt_end_handler();
	set_state(file, PTT_ATTACH_LEFT);
}

/* The text has the path of the file, a newline, and what PTHREAD_NPTL_TRACE would hold. */
int __nptl_trace_attach(const char *text)
{
	const char *variable = strchr(text, '\n');
	const struct ptt_segment *segment;
	struct ptt_attach *file;
	char path[512];
	bool tidy;

	if (!variable || (size_t)(variable - text) >= sizeof(path))
		return 0;
	memcpy(path, text, (size_t)(variable - text));
	path[variable - text] = '\0';
	file = map_file(path);
	if (!file)
		return 0;
	segment = map_segment(path);
	prctl(PR_SET_NAME, "ptt-attach");
	if (__nptl_trace_enabled) {
		strcpy(file->reason, "it is being recorded already");
		set_state(file, PTT_ATTACH_REFUSED);
	} else if (begin(file, variable + 1)) {
		record(file, segment);
		end(file);
	} else {
		strcpy(file->reason, "its tracer cannot join the recording");
		set_state(file, PTT_ATTACH_REFUSED);
	}
	tidy = wanted(file) == PTT_ATTACH_WANT_TIDY;
	munmap(file, sizeof(*file));
	if (segment)
		munmap((void *)segment, sizeof(*segment));
	return tidy;
}
