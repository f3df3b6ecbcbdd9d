/* SPDX-License-Identifier: MIT */
/* readings.c - readings of a thread's time on and without a processor, each time the thread has lost its processor. */
#include "readings.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../platform/clock.h"
#include "../platform/confined.h"
#include "../platform/signals.h"
#include "session.h"

/* The kernel looks for this signature, which the C library registered, in front of a section's abort handler. */
#if defined(__x86_64__)
#define SIGNATURE ".long 0x53053053"
#elif defined(__aarch64__)
#define SIGNATURE ".inst 0xd428bc00"
#elif defined(__riscv)
#define SIGNATURE ".4byte 0xf1401073"
#endif

/* struct rseq_cs: a section that nobody enters, so the kernel never aborts it. */
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

/* Ids of events in the domain `handler` of the catalogue. */
#define READING (13u << 6 | 3u)
#define SWITCHED (13u << 6 | 4u)
#define UNKNOWN (13u << 6 | 5u)
#define RAN (13u << 6 | 10u)
#define KEPT (13u << 6 | 11u)
#define PARTIAL (13u << 6 | 12u)

bool ptt_readings_are_partial;

static void turn_off(void)
{
	/* relaxed, both: see ptt_processor_kept() */
	__atomic_store_n(&ptt_ring.section, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ptt_ring.section_offset, ptt_ring_no_section_offset(), __ATOMIC_RELAXED);
}

/* For tests of PTT: what the kernel tells, whatever it is. */
#define TESTED "PTT_TEST_READINGS"

static bool is_tested_as_partial(void)
{
	const char *tested = getenv(TESTED);

	return tested && strcmp(tested, "partial") == 0;
}

/* Linux before 6.19 also clears the word when the thread gives the processor up in a call. */
static bool sleeping_clears_it(void)
{
	struct timespec moment = {.tv_nsec = 1};
	uint64_t before = ptt_hold_signals();
	volatile uint64_t *word = ptt_rseq_word();
	bool cleared = false;

	/* On a busy machine the pause may be over before the thread has given the processor up. */
	for (int i = 0; i < 4 && !cleared; i++, moment.tv_nsec *= 100) {
		*word = ptt_ring.section;
		ptt_raw_syscall(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
		cleared = *word == 0;
	}
	*word = 0;
	ptt_let_signals(before);
	return cleared && !is_tested_as_partial();
}

/* From now on nothing is known. The kernel must not look at the calling thread's word again, whatever the word means. */
static void give_up(void)
{
	volatile uint64_t *word = ptt_rseq_word();

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
	if (*ptt_rseq_word() != 0) {
		turn_off();
		return;
	}
	ptt_readings_are_partial = !sleeping_clears_it();
	__atomic_store_n(ptt_upcalls.before_rseq, before_rseq, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ readings */

static bool read_ran(struct ptt_run_times *r)
{
	struct timespec ran;

	if (ptt_raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&ran, 0, 0, 0, 0) < 0)
		return false;
	r->ran = (uint64_t)ran.tv_sec * UINT64_C(1000000000) + (uint64_t)ran.tv_nsec;
	return true;
}

/*
 * A reading may take longer than a short request of a server. So a thread that often loses its processor reads the file at
 * most once in an interval on average. An interval is about a millisecond. A thread that was gone for an interval always reads
 * the file.
 */
#define INTERVAL (UINT64_C(1) << 21) /* ticks of the processor's counter, or ns */
#define READ_AT_ONCE 64u

static bool is_due(enum ptt_reading_need need)
{
	static __thread uint64_t due __attribute__((tls_model("initial-exec"))); /* time of the next reading, if readings were spread evenly */
	uint64_t now = ptt_clock(ptt_ring.clock), begin = due > now ? due : now;

	if (need == PTT_READING_WHOLE)
		return true;
	/* readings after waits for locks leave room for readings at other times */
	if (begin - now >= (need == PTT_READING_SPARING ? READ_AT_ONCE / 2 : READ_AT_ONCE) * INTERVAL)
		return false;
	due = begin + INTERVAL;
	return true;
}

static void put_reading(const struct ptt_run_times *r, bool kept)
{
	const struct ptt_slot rest[2] = {
		{.w0 = PTT_ID_MORE | 1u << PTT_ID_BITS | r->slices << 32, .w1 = r->ran},
		{.w0 = PTT_ID_MORE, .w1 = r->ready},
	};

	ptt_ring_put_slow(kept ? KEPT : READING, 0, rest, 2, true);
}

__thread bool ptt_reading_is_owed __attribute__((tls_model("initial-exec")));

/* A reading that asks the kernel nothing. */
static void put_switched(void)
{
	ptt_ring_put1(ptt_ring_self, ptt_readings_are_partial ? PARTIAL : SWITCHED, 0, true);
}

void ptt_reading_put(enum ptt_reading_need need)
{
	/* Counts readings: a reading in a signal handler sets the word again, so the word does not show that reading. */
	static __thread volatile uint32_t count __attribute__((tls_model("initial-exec")));
	/* relaxed: see ptt_processor_kept() */
	uint64_t section = __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED), current;
	volatile uint64_t *word = ptt_rseq_word();
	struct ptt_run_times reading = {0};
	bool whole, read, has_ran, kept;
	uint32_t number;
	int tries = 0;

	if (!section || ptt_ring_is_nowhere(ptt_ring_self))
		return;
	current = *word;
	/* the kernel removes the number of the processor when the area is not registered any more */
	if ((current && current != section) || (int32_t)ptt_ring_cpu() < 0) {
		give_up();
		return;
	}
	count++;
	kept = current != 0;
	if (!kept && (need == PTT_READING_WHOLE || need == PTT_READING_HELD))
		ptt_schedstat_note_loss();
	has_ran = !ptt_is_confined();
	whole = has_ran && is_due(need);
	if (!has_ran || (!whole && need == PTT_READING_LIMITED)) {
		*word = section;
		ptt_reading_is_owed = has_ran;
		put_switched();
		return;
	}
	whole = whole && !ptt_schedstat_is_refused();
	/* Figures from before a time without the processor must not get a time stamp from after it. */
	do {
		/* set the word first, so that it shows every loss from now on */
		if (!kept)
			*word = section;
		number = count;
		read = whole && ptt_schedstat_read(&reading);
		has_ran = read_ran(&reading);
		kept = kept && *word && number == count;
	} while (has_ran && (*word == 0 || number != count) && ++tries < PTT_READING_TRIES);
	kept = kept && !ptt_readings_are_partial;
	ptt_reading_is_owed = has_ran && !whole && !ptt_schedstat_is_refused();
	if (!has_ran || ptt_readings_are_partial)
		put_switched();
	if (read && has_ran)
		put_reading(&reading, kept);
	else if (has_ran)
		ptt_ring_put_slow(RAN, 0, &(const struct ptt_slot){.w0 = PTT_ID_MORE, .w1 = reading.ran}, 1, true);
}
