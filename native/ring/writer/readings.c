/* SPDX-License-Identifier: MIT */
/* readings.c - readings of how long a thread has run and been ready, whenever it has lost its processor. */
#include "readings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../platform/clock.h"
#include "../platform/confined.h"
#include "../platform/signals.h"

/* What the kernel looks for in front of a section's abort handler, as the C library set it. */
#if defined(__x86_64__)
#define SIGNATURE ".long 0x53053053"
#elif defined(__aarch64__)
#define SIGNATURE ".inst 0xd428bc00"
#elif defined(__riscv)
#define SIGNATURE ".4byte 0xf1401073"
#endif

/* struct rseq_cs: a section that nobody enters, so it is never aborted. */
struct section {
	uint32_t version;
	uint32_t flags;
	const char *start;
	uint64_t length;
	const char *abort;
} __attribute__((aligned(32)));
_Static_assert(sizeof(struct section) == 32, "struct rseq_cs");

extern const char ptt_section_start[] __attribute__((visibility("hidden")));
extern const char ptt_section_abort[] __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
	".hidden ptt_section_start\n"
	".globl ptt_section_start\n"
	".hidden ptt_section_abort\n"
	".globl ptt_section_abort\n"
	".balign 16\n"
	"ptt_section_start: nop\n"
	".balign 16\n" SIGNATURE "\n"
	"ptt_section_abort: nop\n"
	".popsection\n");

static struct section nothing = {.start = ptt_section_start, .length = 1, .abort = ptt_section_abort};

#define SECTION_IN_RSEQ 8 /* struct rseq: cpu_id_start, cpu_id, rseq_cs */

/*
 * Readings go through a file that stays open. Of the program's descriptors few are used, and from the end: one in so many,
 * and no more than FILES.
 */
#define FILES 32u
#define SHARE 32u
#define HIGHEST 1024u /* a higher number would make the kernel's table larger than it is for most programs */

/*
 * The kernel gives a file the lowest number that is free, for the moment until it has got a high one, and another thread could
 * meet with that. It also makes, and removes at the thread's end, a directory in /proc for it, which takes longer than to create
 * the thread. So a file is opened only for a thread that has lost the processor in a wait, or with a lock held. Of
 * threads that have lived for a while a process opens one in a millisecond, beyond the first ones. Threads that come and go would
 * do it all the time: of these it opens only a few. In a process of one thread nobody meets with it.
 */
#define AGE_MIN (UINT64_C(1) << 25) /* ticks: of a processor's counter or nanoseconds; 10 to 30 ms */
static const struct pace {
	uint32_t at_once, interval_ms;
} paces[2] = {{8, 250}, {64, 1}}; /* of young threads, and of others */

/* A program may close a descriptor, and have another file of that number: it is ours as long as it is the same file. */
struct file {
	uint32_t used;
	int fd; /* -1: not opened yet */
	uint64_t device;
	uint64_t inode;
};

static struct file files[FILES];

enum { NOT_TRIED = 0, REFUSED = -1 }; /* else the number of the file plus 1 */
static __thread int own_file __attribute__((tls_model("initial-exec")));

/* Events of the domain `handler`, as they stand in the catalogue. */
#define READING (13u << 6 | 3u)
#define SWITCHED (13u << 6 | 4u)
#define UNKNOWN (13u << 6 | 5u)
#define RAN (13u << 6 | 10u)
#define KEPT (13u << 6 | 11u)

static volatile uint64_t *own_word(void)
{
	return (volatile uint64_t *)((char *)ptt_thread_pointer() + __atomic_load_n(&ptt_ring.section_offset, __ATOMIC_RELAXED));
}

static void turn_off(void)
{
	/* relaxed, both: see ptt_processor_kept() */
	__atomic_store_n(&ptt_ring.section, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ptt_ring.section_offset, ptt_ring_no_section_offset(), __ATOMIC_RELAXED);
}

/* A kernel may clear the word where it takes the processor away, and leave it where a thread gives it up in a call. */
static bool sleeping_clears_it(void)
{
	struct timespec moment = {.tv_nsec = 1};
	uint64_t before = ptt_hold_signals();
	volatile uint64_t *word = own_word();
	bool cleared = false;

	/* On a busy machine the moment may be over before the thread has given the processor up. */
	for (int i = 0; i < 4 && !cleared; i++, moment.tv_nsec *= 100) {
		*word = ptt_ring.section;
		ptt_raw_syscall(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
		cleared = *word == 0;
	}
	*word = 0;
	ptt_let_signals(before);
	return cleared;
}

/* Nothing is known any more. Whatever the calling thread's word is about: the kernel is not to look at it again. */
static void give_up(void)
{
	volatile uint64_t *word = own_word();

	if (*word && *word == __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED))
		*word = 0;
	turn_off();
	ptt_ring_put_slow(UNKNOWN, 0, NULL, 0, true);
}

static void before_rseq(void)
{
	/* relaxed: see ptt_processor_kept() */
	if (__atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED))
		give_up();
}

void ptt_readings_choose(const struct ptt_segment *segment)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	turn_off();
	if (!segment->sched || !offset || !size || !*size || ptt_is_confined())
		return;
	ptt_ring.section_offset = *offset + SECTION_IN_RSEQ;
	ptt_ring.section = (uint64_t)(uintptr_t)&nothing;
	if (*own_word() != 0 || !sleeping_clears_it())
		turn_off();
	else
		__atomic_store_n(ptt_upcalls.before_rseq, before_rseq, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ the thread's file */

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

/* How many numbers the process may use, as far as they are of interest here. */
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
 * The lowest descriptors are the program's, which may count on the order in which it gets them. Another thread may close all
 * descriptors meanwhile, and open its own: then the low number is not ours any more.
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

/* May a file be opened now, as far as their rate goes? Then it counts. */
static bool is_due(bool old)
{
	static uint64_t due_ms[2]; /* when the next one is, were they opened evenly */
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

static __thread uint64_t born __attribute__((tls_model("initial-exec"))); /* when the thread's first event came */
/* Of the processor, in a wait or with a lock held. */
static __thread bool has_lost __attribute__((tls_model("initial-exec")));

/* The C library's, from glibc 2.32 on: there is no other thread, and has been none for a while. */
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

/* ------------------------------------------------------------ readings */

struct reading {
	uint64_t ran;
	uint64_t ready;
	uint64_t slices;
};

/* "RAN READY SLICES\n", in decimal digits; what it says of having run is as old as the last tick. */
static bool parse(const char *text, struct reading *r)
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

static bool read_ran(struct reading *r)
{
	struct timespec ran;

	if (ptt_raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&ran, 0, 0, 0, 0) < 0)
		return false;
	r->ran = (uint64_t)ran.tv_sec * UINT64_C(1000000000) + (uint64_t)ran.tv_nsec;
	return true;
}

/* All but for how long the thread has run. */
static bool read_file(struct reading *r)
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
		/* the program has closed it; whatever has the number now is not ours */
		give_back(&files[own_file - 1]);
		own_file = REFUSED;
		return false;
	}
	return true;
}

/*
 * The file takes more than half of the time. So it is read as often as the thread loses the processor only as long as that is not
 * more often than once in an interval, of the order of a millisecond, for some time: of a thread that was gone for an interval
 * it is always read.
 */
#define INTERVAL (UINT64_C(1) << 21) /* ticks: of a processor's counter or nanoseconds */
#define READ_AT_ONCE 64u

static bool may_read_file(enum ptt_reading_need need)
{
	static __thread uint64_t due __attribute__((tls_model("initial-exec"))); /* when the next one is, were they read evenly */
	uint64_t now = ptt_clock(ptt_ring.clock), begin = due > now ? due : now;

	if (need == PTT_READING_WHOLE)
		return true;
	/* what comes behind waits for locks leaves something for what comes at other times */
	if (begin - now >= (need == PTT_READING_SPARING ? READ_AT_ONCE / 2 : READ_AT_ONCE) * INTERVAL)
		return false;
	due = begin + INTERVAL;
	return true;
}

static void put_reading(const struct reading *r, bool kept)
{
	const struct ptt_slot rest[2] = {
		{.w0 = PTT_ID_MORE | 1u << PTT_ID_BITS | r->slices << 32, .w1 = r->ran},
		{.w0 = PTT_ID_MORE, .w1 = r->ready},
	};

	ptt_ring_put_slow(kept ? KEPT : READING, 0, rest, 2, true);
}

static void put_ran(uint64_t ran)
{
	const struct ptt_slot rest = {.w0 = PTT_ID_MORE, .w1 = ran};

	ptt_ring_put_slow(RAN, 0, &rest, 1, true);
}

__thread bool ptt_reading_is_owed __attribute__((tls_model("initial-exec")));

void ptt_reading_put(enum ptt_reading_need need)
{
	/* A signal handler's readings set the word again, so it does not say that there were none. */
	static __thread volatile uint32_t count __attribute__((tls_model("initial-exec")));
	/* relaxed: see ptt_processor_kept() */
	uint64_t section = __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED), found;
	volatile uint64_t *word = own_word();
	struct reading reading = {0};
	bool whole, read, has_ran, kept;
	uint32_t number;
	int tries = 0;

	if (!section || ptt_ring_is_nowhere(ptt_ring_self))
		return;
	found = *word;
	/* the kernel takes the number of the processor away when the area is not registered any more */
	if ((found && found != section) || (int32_t)ptt_ring_cpu() < 0) {
		give_up();
		return;
	}
	count++;
	kept = found != 0;
	has_lost |= !kept && (need == PTT_READING_WHOLE || need == PTT_READING_HELD);
	has_ran = !ptt_is_confined();
	whole = has_ran && own_file != REFUSED && may_read_file(need);
	/* Numbers from before a time without the processor must not get a time stamp from after it. */
	do {
		/* first of all, so that nothing is missed that happens from now on */
		if (!kept)
			*word = section;
		number = count;
		read = whole && read_file(&reading);
		has_ran = has_ran && read_ran(&reading);
		kept = kept && *word && number == count;
	} while (has_ran && (*word == 0 || number != count) && ++tries < PTT_READING_TRIES);
	ptt_reading_is_owed = has_ran && !whole && own_file != REFUSED;
	if (read && has_ran)
		put_reading(&reading, kept);
	else if (has_ran)
		put_ran(reading.ran);
	else
		ptt_ring_put_slow(SWITCHED, 0, NULL, 0, true);
}

void ptt_readings_begin_thread(void)
{
	born = ptt_clock(ptt_ring.clock);
	has_lost = false;
	/* an earlier thread may have had the same memory */
	if (ptt_ring.section && *own_word() == ptt_ring.section)
		*own_word() = 0;
}

void ptt_readings_end_thread(void)
{
	/* one that has events after this goes without */
	if (own_file > 0 && !ptt_is_confined())
		give_back(&files[own_file - 1]);
	own_file = REFUSED;
}

void ptt_readings_forget_parent(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		if (files[i].used && !ptt_is_confined())
			give_back(&files[i]);
	own_file = NOT_TRIED;
	ptt_readings_begin_thread();
}
