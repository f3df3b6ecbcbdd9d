/* SPDX-License-Identifier: MIT */
/* readings.h - has the calling thread kept its processor since its previous event? If not, how long has it run so far? */
/*
 * The C library registers an rseq area for each thread. The area has a word, rseq_cs, that describes a section of code. The
 * kernel clears the word when the thread loses the processor, or gets a signal, outside of that section. So a word that
 * describes a section that no thread ever runs tells something: while it stands, the thread has kept its processor.
 *
 * If an event finds the word cleared, a SCHED_READING precedes the event: the kernel's figures of the thread's life so far.
 * The difference between two readings divides the time between them. A reading takes longer than the time that the thread
 * has run alone, which is a SCHED_RAN. A SCHED_RAN stands behind brief waits for locks, and where a thread with a lock often
 * loses its processor. Where a thread without a lock often loses its processor, a SCHED_SWITCHED asks the kernel nothing:
 * the next reading has the sum. The rest of a reading is then owed: if the thread keeps its processor until there is time,
 * a SCHED_KEPT has the rest. If the rest cannot be read, all readings are SCHED_RAN. If the program has given up system
 * calls, they are SCHED_SWITCHED.
 *
 * A program may use rseq itself, with its own words or its own registration. The kernel compares the abort handler of the
 * section with the registered signature, and kills the process if they differ. As soon as the program calls rseq by
 * syscall(), or such a word or registration is seen, SCHED_UNKNOWN says that nothing more is known of the process.
 */
#ifndef PTT_READINGS_H
#define PTT_READINGS_H

#include "session.h"
#include "writer.h"

/*
 * Linux 6.19 and newer clear the word when they interrupt the thread, and no longer when the thread sleeps in a call. Then
 * the readings are partial: each begins with a SCHED_PARTIAL, which says that the thread may also have slept at any time
 * before. The handler asks for a reading wherever a wait begins or ends, or a lock is released that others wait for, and
 * clears the word itself in a wait. So figures between two readings hold whether the word tells much or little.
 */
extern bool ptt_readings_are_partial __attribute__((visibility("hidden")));

/* A reading is repeated up to this often if the thread lost the processor meanwhile. */
#define PTT_READING_TRIES 4

/* ptt_readings_choose - find out whether readings work here, once the segment is known. Makes system calls, sleeps briefly. */
void ptt_readings_choose(const struct ptt_segment *segment) __attribute__((visibility("hidden")));

/* ptt_processor_kept - has the calling thread kept its processor since ptt_reading_put()? True if readings are off. */
static inline bool ptt_processor_kept(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool same;

	__asm__ volatile("cmpq %2, %%fs:(%1)" : "=@cce"(same) : "r"(ptt_ring.section_offset), "r"(ptt_ring.section));
	return same;
#else
	/* relaxed, all: turning readings off changes both words; a mixture of old and new only leads to a look that finds that out */
	ptrdiff_t offset = __atomic_load_n(&ptt_ring.section_offset, __ATOMIC_RELAXED);

	return *(volatile uint64_t *)((char *)ptt_thread_pointer() + offset) ==
	       __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED);
#endif
}

/* ptt_processor_lose - in partial readings: the next event of the calling thread needs a reading. */
static inline void ptt_processor_lose(void)
{
	volatile uint64_t *word = ptt_rseq_word();

	/* relaxed: see ptt_processor_kept(); the program's own words stay */
	if (*word && *word == __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED))
		*word = 0;
}

/* The calling thread's last reading left something out that the kernel knows. */
extern __thread bool ptt_reading_is_owed __attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * How often a reading may be whole: WHOLE: always; LIMITED: not too often, and otherwise it asks the kernel nothing; HELD:
 * not too often, the thread holds a lock; SPARING: even less often, so that readings at other times can be whole.
 */
enum ptt_reading_need { PTT_READING_WHOLE, PTT_READING_LIMITED, PTT_READING_HELD, PTT_READING_SPARING };

/*
 * ptt_reading_put - record a reading, and watch the processor from now on
 * Safe in signal handlers, no cancellation point, keeps errno. Makes system calls unless the program has given them up.
 */
void ptt_reading_put(enum ptt_reading_need need) __attribute__((cold, noinline, visibility("hidden")));

#endif
