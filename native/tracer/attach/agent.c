/* SPDX-License-Identifier: MIT */
/* agent.c - the agent's thread: joins a recording, redirects calls to the hooks, and ends the recording. */
/*
 * `ptt attach` injects the first agent's thread into a running process. With --black-box, the agent ends once the calls
 * lead to the tracer, and they go on to do so. Calls of modules that are loaded later do not.
 *
 * The recorder writes its request into the file `attach` of the session; the agent maps the file as long as it lives.
 * The levels are on a private page that the kernel clears in every child (MADV_WIPEONFORK). So children of an
 * attached process pass through the hooks without events, however they were made, and do not write to their parent's
 * buffers.
 *
 * The tracer is never unloaded: threads may sleep in a hook for any time.
 *
 * Some system calls fail in a process with several threads. For such a call the agent's thread ends. After the call,
 * the calling thread starts a new agent's thread, which continues with the same files: see attach.h.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach.h"
#include "handler.h"
#include "platform/raw_syscall.h"
#include "writer/bell.h"

/* Interval between looks for new modules: the calls of a new module are recorded after this time. */
#define LOOK_NS 25000000L
#define LOOKS_A_SECOND 40u
/* A thread that passed the test of the level finishes its event in much less time. */
#define SETTLE_NS 20000000L
/*
 * A call waits STEPS * STEP_NS for the agent, at most. The agent reacts within 1 ms, unless it waits for the dynamic
 * linker.
 */
#define STEP_NS 100000L
#define STEPS 20000u
/* All but the C library's own signals. By these it cancels threads and changes users, so they must reach every thread. */
#define ALL_SIGNALS (~(UINT64_C(1) << 31 | UINT64_C(1) << 32))

enum presence { NO_AGENT, PRESENT, ASKED_TO_END, AWAY, LEAVING };

/*
 * The recording agent of this process. Only the agent's thread uses this struct; while that is away, the thread that
 * sent it away uses it. The copy in a child of a fork is of no use: no thread of the child has the agent's id.
 */
static struct {
	struct ptt_attach *file;
	const struct ptt_segment *segment;
	const char *text; /* in the memory that the injected thread began in */
	uint32_t tid;
	uint32_t presence;
} agent;

/* The injected thread calls this function by name. */
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

/* The head of the buffers, in the file beside @path. The agent only reads it. */
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
	/* acquire: pairs with the recorder's store of its request */
	return __atomic_load_n(&file->wanted, __ATOMIC_ACQUIRE);
}

static void set_state(struct ptt_attach *file, uint32_t state)
{
	/* release: pairs with the recorder's load; all earlier writes to the file are visible */
	__atomic_store_n(&file->state, state, __ATOMIC_RELEASE);
}

static bool is_present(enum presence presence)
{
	/* acquire: pairs with the release in pass(); the other thread no longer uses the agent's data */
	return __atomic_load_n(&agent.presence, __ATOMIC_ACQUIRE) == presence;
}

/* Change the presence. Return: false if it was not @from. */
static bool pass(enum presence from, enum presence to)
{
	uint32_t expected = from;

	/* acquire and release: the agent's data pass between threads; pairs with is_present() and with itself */
	return __atomic_compare_exchange_n(&agent.presence, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * Record until the recorder requests something else, or disappears, or until this thread has to end. The next look
 * notices a killed recorder. A stopped recorder is noticed when PTT_ATTACH_PATIENCE_S is over.
 */
static void record(struct ptt_attach *file, const struct ptt_segment *segment)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint32_t beat = 0, silent = 0;
	struct ptt_rebound done;

	while (wanted(file) == PTT_ATTACH_WANT_RECORD && silent < PTT_ATTACH_PATIENCE_S * LOOKS_A_SECOND &&
	       (!segment || ptt_is_collected(segment)) && is_present(PRESENT)) {
		/* relaxed: only a sign of life */
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

/*
 * Redirect the calls back last: some calls wait in a hook until the agent's thread has ended. A black box stays when its
 * recorder has left.
 */
static void end(struct ptt_attach *file)
{
	struct ptt_rebound done;

	if (ptt_needs_no_recorder()) {
		set_state(file, PTT_ATTACH_LEFT);
		return;
	}
	ptt_clear_levels();
	sleep_ns(SETTLE_NS);
	__nptl_trace_enabled = 0;
	ptt_end_handler();
	ptt_rebind(false, false, &done);
	set_state(file, PTT_ATTACH_LEFT);
}

static void unmap(struct ptt_attach *file, const struct ptt_segment *segment)
{
	munmap(file, sizeof(*file));
	if (segment)
		munmap((void *)segment, sizeof(*segment));
}

/* Record, as the agent's thread. Return: true if the recording is over; false if only this thread has to end. */
static bool serve(void)
{
	prctl(PR_SET_NAME, "ptt-attach");
	agent.tid = (uint32_t)ptt_raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	pass(AWAY, PRESENT);
	do {
		record(agent.file, agent.segment);
		if (pass(ASKED_TO_END, AWAY))
			return false;
	} while (!pass(PRESENT, LEAVING));
	if (wanted(agent.file) == PTT_ATTACH_WANT_RECORD)
		strcpy(agent.file->reason, "it saw no sign of the recorder for 20 s");
	end(agent.file);
	return true;
}

/* A new agent's thread. It also unmaps the memory that the injected thread began in: nothing else could. */
static void *serve_again(void *unused)
{
	set_state(agent.file, PTT_ATTACH_RECORDS);
	if (serve()) {
		bool tidy = wanted(agent.file) == PTT_ATTACH_WANT_TIDY;
		uintptr_t memory = (uintptr_t)agent.text - PTT_ATTACH_TEXT_AT;

		unmap(agent.file, agent.segment);
		if (tidy)
			munmap((void *)memory, PTT_ATTACH_MEMORY);
	}
	return unused;
}

/* ------------------------------------------------------------ calls without the agent's thread */

/* Does this process have a thread with the agent's id? Without an agent, the id is 0, and no thread has it. */
static bool agent_runs(void)
{
	long pid = ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	return ptt_raw_syscall(SYS_tgkill, pid, agent.tid, 0, 0, 0, 0) == 0;
}

/* Wait until the kernel has removed the agent's thread, a little after the thread ended here. */
static void await_end(void)
{
	for (uint32_t i = 0; i < STEPS && agent_runs(); i++)
		sleep_ns(STEP_NS);
}

static void set_mask(const uint64_t *mask, uint64_t *before)
{
	ptt_raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, (long)before, sizeof(*mask), 0, 0);
}

bool ptt_send_agent_away(uint64_t *mask)
{
	const uint64_t all = ALL_SIGNALS;
	struct ptt_attach *file;

	if (__nptl_trace_confined || !is_present(PRESENT) || !agent_runs())
		return false;
	set_mask(&all, mask);
	if (!pass(PRESENT, ASKED_TO_END)) {
		set_mask(mask, NULL);
		return false;
	}
	file = agent.file;
	set_state(file, PTT_ATTACH_AWAY);
	ptt_raw_syscall(SYS_futex, (long)&file->wanted, FUTEX_WAKE, INT_MAX, 0, 0, 0);
	for (uint32_t i = 0; i < STEPS && !is_present(AWAY); i++)
		sleep_ns(STEP_NS);
	if (pass(ASKED_TO_END, PRESENT)) {
		set_state(file, PTT_ATTACH_RECORDS);
		set_mask(mask, NULL);
		return false;
	}
	await_end();
	return true;
}

bool ptt_see_agent_off(void)
{
	if (__nptl_trace_confined || !is_present(LEAVING))
		return false;
	await_end();
	return true;
}

void ptt_bring_agent_back(const uint64_t *mask)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (ptt_real.pthread_create(&thread, &attr, serve_again, NULL) == 0) {
		/* the next such call must be able to send the agent away */
		for (uint32_t i = 0; i < STEPS && is_present(AWAY); i++)
			sleep_ns(STEP_NS);
	} else {
		strcpy(agent.file->reason, "it cannot restart the thread of the tracer after a call like unshare(CLONE_NEWPID)");
		end(agent.file);
		unmap(agent.file, agent.segment);
		pass(AWAY, NO_AGENT);
	}
	pthread_attr_destroy(&attr);
	set_mask(mask, NULL);
}

/* @text: the path of the file, a newline, and the value for PTHREAD_NPTL_TRACE */
int __nptl_trace_attach(const char *text)
{
	const char *variable = strchr(text, '\n');
	const struct ptt_segment *segment;
	struct ptt_attach *file;
	char path[512];
	bool over = true, tidy;

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
		agent.file = file;
		agent.segment = segment;
		agent.text = text;
		/* relaxed: the agent's own thread changes it next; in a child of a fork the value means nothing */
		__atomic_store_n(&agent.presence, AWAY, __ATOMIC_RELAXED);
		over = serve();
	} else {
		strcpy(file->reason, "its tracer cannot join the recording");
		set_state(file, PTT_ATTACH_REFUSED);
	}
	if (!over)
		return 0;
	tidy = wanted(file) == PTT_ATTACH_WANT_TIDY;
	unmap(file, segment);
	return tidy;
}
