/* SPDX-License-Identifier: MIT */
/* schedstat.c - reads the kernel's file about the calling thread: how long it was ready, and how often it ran. */
#include "session.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../platform/clock.h"
#include "../platform/confined.h"
#include "../platform/signals.h"
#include "writer.h"

/* The file of a thread stays open. PTT takes few of the program's descriptors, from the end: one of SHARE, and at most FILES. */
#define FILES 32u
#define SHARE 32u
#define HIGHEST 1024u /* a higher number would enlarge the kernel's table beyond the size that most programs need */

/*
 * A new file first gets the lowest free number, until it moves to a high number. Another thread could meet it there. The
 * kernel also makes a directory in /proc for the file, and removes it when the thread ends, which takes longer than the
 * creation of a thread. So a file is opened only for a thread that has lost the processor in a wait or with a lock held.
 * After the first files, a process opens one in a millisecond for threads that have lived for a while. For young threads it
 * opens only a few files, because threads that come and go would need files all the time. In a process with one thread, no
 * other thread can meet the file.
 */
#define AGE_MIN (UINT64_C(1) << 25) /* ticks: of a processor's counter or nanoseconds; 10 to 30 ms */
static const struct pace {
	uint32_t at_once, interval_ms;
} paces[2] = {{8, 250}, {64, 1}}; /* young threads, other threads */

/* A program may close a descriptor and open another file with the same number: the descriptor is ours while it is the same file. */
struct file {
	uint32_t used;
	int fd; /* -1: not opened yet */
	uint64_t device;
	uint64_t inode;
};

static struct file files[FILES];

enum { NOT_TRIED = 0, REFUSED = -1 }; /* else the index of the file plus 1 */
static __thread int own_file __attribute__((tls_model("initial-exec")));

static bool is_ours(const struct file *file)
{
	struct stat st;

	return file->fd >= 0 && ptt_raw_syscall(SYS_fstat, file->fd, (long)&st, 0, 0, 0, 0) == 0 &&
	       st.st_dev == file->device && st.st_ino == file->inode;
}

static void give_back(struct file *file)
{
	if (is_ours(file))
		ptt_raw_syscall(SYS_close, file->fd, 0, 0, 0, 0, 0);
	file->fd = -1;
	/* release: pairs with the acquire in claim_file() */
	__atomic_store_n(&file->used, 0, __ATOMIC_RELEASE);
}

/* How many descriptors the process may use, at most HIGHEST. */
static long numbers(void)
{
	struct rlimit limit;

	if (ptt_raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) < 0)
		return 0;
	return limit.rlim_cur < HIGHEST ? (long)limit.rlim_cur : (long)HIGHEST;
}

static int claim_file(void)
{
	uint32_t count = (uint32_t)numbers() / SHARE;

	for (uint32_t i = 0; i < FILES && i < count; i++) {
		uint32_t expected = 0;

		if (__atomic_compare_exchange_n(&files[i].used, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			files[i].fd = -1;
			return (int)i + 1;
		}
	}
	return REFUSED;
}

static bool identify(struct file *file)
{
	struct stat st;

	if (file->fd < 0 || ptt_raw_syscall(SYS_fstat, file->fd, (long)&st, 0, 0, 0, 0) < 0)
		return false;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	return true;
}

/*
 * The lowest descriptors belong to the program, which may rely on their order. Another thread may close all descriptors
 * meanwhile and open its own files: then the low number is not ours any more.
 */
static bool open_high(struct file *file)
{
	long count = numbers(), high;

	file->fd = (int)ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (!identify(file))
		return false;
	high = ptt_raw_syscall(SYS_fcntl, file->fd, F_DUPFD_CLOEXEC, count - count / (long)SHARE, 0, 0, 0);
	if (is_ours(file))
		ptt_raw_syscall(SYS_close, file->fd, 0, 0, 0, 0, 0);
	file->fd = (int)high;
	return high >= 0 && is_ours(file);
}

/* Does the rate of openings allow another file now? If so, the file counts. */
static bool is_due(bool old)
{
	static uint64_t due_ms[2]; /* time of the next opening, if openings were spread evenly */
	uint64_t interval = paces[old].interval_ms, now_ms, due, begin;
	struct timespec now;

	ptt_raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, (long)&now, 0, 0, 0, 0);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	/* relaxed: a count */
	due = __atomic_load_n(&due_ms[old], __ATOMIC_RELAXED);
	do {
		begin = due > now_ms ? due : now_ms;
		if (begin - now_ms >= paces[old].at_once * interval)
			return false;
	} while (!__atomic_compare_exchange_n(&due_ms[old], &due, begin + interval, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

static __thread uint64_t born __attribute__((tls_model("initial-exec"))); /* time of the thread's first event */
/* The thread has lost the processor in a wait or with a lock held. */
static __thread bool has_lost __attribute__((tls_model("initial-exec")));

/* From glibc 2.32 on: no other thread exists, and none has existed for a while. */
extern char __libc_single_threaded __attribute__((weak));

static bool may_open(void)
{
	if (&__libc_single_threaded && __libc_single_threaded)
		return true;
	return has_lost && is_due(ptt_clock(ptt_ring.clock) - born >= AGE_MIN);
}

static void open_own_file(void)
{
	uint64_t before = ptt_hold_signals();
	int number = own_file ? REFUSED : claim_file();

	if (number > 0 && !open_high(&files[number - 1])) {
		give_back(&files[number - 1]);
		number = REFUSED;
	}
	if (!own_file)
		own_file = number;
	ptt_let_signals(before);
}

/* "RAN READY SLICES\n", in decimal digits; RAN is as old as the last tick of the scheduler. */
static bool parse(const char *text, struct ptt_run_times *r)
{
	uint64_t number[3];

	for (int i = 0; i < 3; i++) {
		if (*text < '0' || *text > '9')
			return false;
		for (number[i] = 0; *text >= '0' && *text <= '9'; text++)
			number[i] = number[i] * 10 + (uint64_t)(*text - '0');
		if (*text++ != (i < 2 ? ' ' : '\n'))
			return false;
	}
	r->ready = number[1];
	r->slices = number[2];
	return *text == '\0';
}

bool ptt_schedstat_read(struct ptt_run_times *r)
{
	char text[80];
	long n;

	if (own_file == NOT_TRIED && may_open())
		open_own_file();
	if (own_file <= 0)
		return false;
	n = ptt_raw_syscall(SYS_pread64, files[own_file - 1].fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	if (n < 0)
		n = 0;
	text[n] = '\0';
	if (!parse(text, r)) {
		/* the program has closed the file; whatever has its number now is not ours */
		give_back(&files[own_file - 1]);
		own_file = REFUSED;
		return false;
	}
	return true;
}

bool ptt_schedstat_is_refused(void)
{
	return own_file == REFUSED;
}

void ptt_schedstat_note_loss(void)
{
	has_lost = true;
}

void ptt_schedstat_begin_thread(void)
{
	born = ptt_clock(ptt_ring.clock);
	has_lost = false;
	/* an earlier thread may have left the word in the same memory */
	if (ptt_ring.section && *ptt_rseq_word() == ptt_ring.section)
		*ptt_rseq_word() = 0;
}

void ptt_schedstat_end_thread(void)
{
	/* a thread that sends events after this has no file */
	if (own_file > 0 && !ptt_is_confined())
		give_back(&files[own_file - 1]);
	own_file = REFUSED;
}

void ptt_schedstat_forget_parent(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		if (files[i].used && !ptt_is_confined())
			give_back(&files[i]);
	own_file = NOT_TRIED;
	ptt_schedstat_begin_thread();
}
