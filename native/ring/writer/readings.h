/* SPDX-License-Identifier: MIT */
/* readings.h - has the calling thread kept its processor since its previous event, and if not, how long has it run so far? */
/*
 * The kernel clears rseq_cs, a word in the rseq area that the C library registers for each thread, when the thread loses the
 * processor or gets a signal outside of the section of code that the word describes. So a word that describes a section in
 * which nothing ever runs says, as long as it stands, that the thread has run ever since it was put there. An event that
 * finds it cleared is preceded by a SCHED_READING: what the kernel says of the thread's life so far, so that differences
 * between two of them say what became of the time between. That takes longer than to ask for how long the thread has run
 * alone, which is a SCHED_RAN. It is that behind brief waits for locks, and at most of the times at which a thread loses the
 * processor outside of waits where that is often. The rest is owed: if the thread keeps its processor until there is time for it, a
 * SCHED_KEPT says it. Where the rest cannot be had it is SCHED_RAN always; where the program has given up system calls, SCHED_SWITCHED.
 *
 * A program may use rseq itself, and then has words of its own there, or a registration of its own: the kernel compares the
 * abort handler of the section with the signature that was registered, and kills the process if they differ. As soon as the
 * program calls rseq by syscall(), or one of both is seen, SCHED_UNKNOWN says that nothing more is known of the process.
 */
#ifndef PTT_READINGS_H
#define PTT_READINGS_H

#include "session.h"
#include "writer.h"

/* So often, one time after the other, a reading is made anew because the thread has lost the processor meanwhile. */
#define PTT_READING_TRIES 4

/* ptt_readings_choose - once the segment is known: whether all this works here. Makes system calls, and sleeps for a moment. */
void ptt_readings_choose(const struct ptt_segment *segment) __attribute__((visibility("hidden")));

/* ptt_processor_kept - has the calling thread kept its processor since ptt_reading_put()? True where that is not asked. */
static inline bool ptt_processor_kept(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool same;

	__asm__ volatile("cmpq %2, %%fs:(%1)" : "=@cce"(same) : "r"(ptt_ring.section_offset), "r"(ptt_ring.section));
	return same;
#else
	/* relaxed, all: the thread that turns it off changes both, and one without the other only leads to a look that finds that out */
	ptrdiff_t offset = __atomic_load_n(&ptt_ring.section_offset, __ATOMIC_RELAXED);

	return *(volatile uint64_t *)((char *)ptt_thread_pointer() + offset) ==
	       __atomic_load_n(&ptt_ring.section, __ATOMIC_RELAXED);
#endif
}

/* The calling thread's last reading was a SCHED_RAN, and could have been a SCHED_READING. */
extern __thread bool ptt_reading_is_owed __attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * How often a reading may be whole: always, not too often, or so that it can be at other times too. HELD is as LIMITED, before a
 * release.
 */
enum ptt_reading_need { PTT_READING_WHOLE, PTT_READING_LIMITED, PTT_READING_HELD, PTT_READING_SPARING };

/*
 * ptt_reading_put - record a reading, and ask from now on
 *
 * Safe in signal handlers, no cancellation point, keeps errno; makes system calls unless the program has given them up.
 */
void ptt_reading_put(enum ptt_reading_need need) __attribute__((cold, noinline, visibility("hidden")));

#endif
