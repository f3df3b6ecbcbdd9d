/* SPDX-License-Identifier: MIT */
/* pttcheck.h - facts about threads: cycles of waits, lock orders, missed signals, misuse. */
/*
 * Model. Feed the events in the order of time, as the cursors of the reader deliver them. A check adds a fact when it finds the
 * fact, with the few steps that prove it. A cycle of waits is added at once, and dropped at the end if a wait of the cycle has
 * ended after all. A fact that is true only with all events is dropped if events are missing. A fact is neutral:
 * src/nptltrace/findings decides which facts are findings, how severe they are, and how to word them.
 *
 *     check = ptt_check_create(long_hold, long_wait);
 *     ptt_tracker_thread((struct tracker *)check, …);            (every thread of the reader)
 *     ptt_tracker_child((struct tracker *)check, …);
 *     ptt_check_memory(check, process, from, to);              (static data)
 *     while ((n = ptt_cursor_read(cursor, &columns, max)) > 0)
 *             ptt_check_feed(check, &columns, n);
 *     ptt_check_finish(check, ends, count, flags);
 *     ptt_check_table(check, PTT_CHECK_FACTS, &table); …
 *
 * Functions return 0 or negated errno values. They may allocate. A check belongs to one thread at a time.
 */
#ifndef PTTCHECK_H
#define PTTCHECK_H

#include <stdint.h>

struct ptt_columns;
struct ptt_check;

#define PTT_CHECK_VERSION 11
#define PTT_CHECK_API __attribute__((visibility("default")))

/* Kinds of facts. Add new kinds at the end: Python knows them by their numbers. */
enum ptt_fact_kind {
	PTT_FACT_WAIT_CYCLE,	   /* each thread waits for something that the next thread has */
	PTT_FACT_WAIT_FOR_SELF,
	PTT_FACT_ORDER_CYCLE,	   /* threads asked for each lock while they held the lock before it */
	PTT_FACT_SIGNAL_MISSED,	   /* a wait to the end: the signal came before it, or went to another thread */
	PTT_FACT_RELEASE_OF_OTHERS, /* release of a lock that another thread holds */
	PTT_FACT_RELEASE_OF_FREE,  /* release of a lock that no thread holds */
	PTT_FACT_DESTROY_IN_USE,
	PTT_FACT_USE_OF_DESTROYED,
	PTT_FACT_COND_MUTEX_NOT_HELD,
	PTT_FACT_COND_TWO_MUTEXES, /* waits at the same time with different mutexes */
	PTT_FACT_END_WITH_HOLD,	   /* a thread ended with a lock */
	PTT_FACT_END_UNJOINED,	   /* a thread ended, and was neither joined nor detached */
	PTT_FACT_BARRIER_INCOMPLETE, /* and no more threads will come; value: number of missing threads */
	PTT_FACT_LONG_HOLD,	   /* value: ns */
	PTT_FACT_WAIT_FOR_LOWER,   /* a long wait for a thread of lower priority; value: ns */
	PTT_FACT_ALL_BLOCKED,	   /* all threads of a process; value: number of threads */
	PTT_FACT_WAIT_WITH_HOLD,   /* a wait for no lock, while other threads waited long for a lock of the thread; value: ns */
	PTT_FACT_ORDER_CYCLE_PREVENTED, /* a cycle that cannot close; value: the reasons, a bit (1 << PTT_PREVENTED_…) each */
	PTT_FACT_HOLD_PREEMPTED,   /* a holder could have run but had no processor, while other threads waited; value: ns */
	PTT_FACT_HOLD_ASLEEP,	   /* likewise: the holder slept outside of waits, in a system call or elsewhere */
	PTT_FACT_CONVOY,	   /* a lock goes from waiter to waiter, and is free for longer than it is held; value: ns */
	PTT_FACT_JOIN_REFUSED,	   /* of a thread that is detached, or that another thread joins */
	PTT_FACT_INIT_IN_USE,	   /* a lock is initialized while a thread has it */
	PTT_FACT_LIMIT_OF_OTHER_CLOCK, /* a time limit years ahead by the clock of the wait; value: ns ahead by the other clock */
	PTT_FACT_LIMIT_OVER,	   /* long before the wait began; value: ns ahead by the other clock; 0: not near */
	PTT_FACT_TRIES_REFUSED,	   /* tries in a row to take a lock of other threads; value: number of tries */
	PTT_FACT_EXTRA_POST,	   /* of a semaphore used as a lock: two threads had it at the same time */
	PTT_FACT_WRITER_OVERTAKEN, /* of a read-write lock: readers took it during the wait; value: how often */
	PTT_FACT_KINDS,
};

/* Actions in the steps of facts. `object` is the object of the action. */
enum ptt_check_what {
	PTT_STEP_TOOK,	 /* took a lock; value: 1 if shared */
	PTT_STEP_WAITS,	 /* waits for a lock; value: 1 to read, or the kind of a futex; other: its holder */
	PTT_STEP_ASKED,	 /* asked for a lock while it held other locks; value: 1 to read */
	PTT_STEP_COND,	 /* waits for a condition; value: address of the mutex */
	PTT_STEP_JOINS,	 /* waits for the end of other; value: 1 if other was joined before */
	PTT_STEP_BARRIER, /* waits at a barrier; value: number of threads of a round */
	PTT_STEP_RELEASED,
	PTT_STEP_UNLOCKS, /* releases a lock that it does not hold */
	PTT_STEP_REFUSED, /* a call failed; value: errno */
	PTT_STEP_INIT,
	PTT_STEP_DESTROYED,
	PTT_STEP_USED,
	PTT_STEP_SIGNALLED,
	PTT_STEP_BROADCAST,
	PTT_STEP_ENDED,	 /* the thread ended */
	PTT_STEP_CREATED, /* created other */
	PTT_STEP_PRIORITY, /* has the priority value; 0: an ordinary priority */
	PTT_STEP_FORKED, /* forked the process, while other had a lock */
	PTT_STEP_SLEPT,	 /* slept in a system call, for value ns */
	PTT_STEP_PASSED, /* released a lock to a thread that had waited for it, the last of value times in a row */
	PTT_STEP_FREE,	 /* took the lock, which was free for value ns during all that time */
	PTT_STEP_TRIED,	 /* tried to take a lock, value times in a row, and was refused */
	PTT_STEP_POSTED, /* posted a semaphore that it had not taken */
};

#define PTT_FLAG_CLOSED 1u  /* valid only while none of its waits ends */
#define PTT_FLAG_WHOLE 2u   /* valid only if no event is missing */
#define PTT_FLAG_SUSPECT 4u /* the memory of a lock may have been reused for another lock */
#define PTT_FLAG_DROPPED 8u /* not valid */
#define PTT_FLAG_REFUSED 16u /* the library refused, and the program knows */
#define PTT_FLAG_UNLESS_HANDLER 32u /* valid unless a signal handler posts a semaphore */

struct ptt_check_fact {
	int64_t ts;	/* ns since the start of the traceset */
	int64_t value;	/* see enum ptt_fact_kind */
	int64_t total;	/* of facts with a size: the sum of `value` over all equal facts */
	uint64_t count; /* how often the fact was found */
	uint32_t kind;
	uint32_t flags;
	uint32_t process;
	uint32_t first_step;
	uint32_t steps;
	uint32_t reserved;
};

struct ptt_check_step {
	int64_t ts;
	uint64_t object; /* address */
	uint64_t site;
	int64_t value;
	uint64_t wait; /* number of a wait, or 0 */
	uint32_t thread;
	uint32_t other; /* another thread */
	uint32_t process;
	uint16_t kind; /* of the object: a domain of the catalogue */
	uint16_t what; /* enum ptt_check_what */
	uint32_t call; /* of a sleeper: number of the system call in the catalogue */
	uint32_t reserved;
};

/* Row 0 is no thread. Several rows may have the same kernel thread id. */
struct ptt_check_thread_row {
	int64_t first_ns; /* INT64_MAX without events */
	int64_t last_ns;
	int64_t end_ns;
	uint32_t process;
	uint32_t tid;
	uint32_t number; /* in the reader; UINT32_MAX without events */
	uint32_t generation;
	uint32_t creator;
	uint32_t flags;
	uint32_t held;
	uint32_t holds;
	uint32_t waits; /* its innermost wait, or 0 */
	uint32_t process_next;
	uint64_t silent_ns; /* stretches of PTT_SILENT_NS or longer without events, outside of waits and calls, up to its last event */
	uint32_t call;	    /* its present system call, or 0 */
	uint32_t library_wait; /* 1: it waits for an internal lock of the C library */
};

struct ptt_check_table {
	const void *items;
	uint64_t count;
	uint64_t stride;
};

enum ptt_check_table_id { PTT_CHECK_FACTS, PTT_CHECK_STEPS, PTT_CHECK_THREADS };

PTT_CHECK_API int ptt_check_version(void);
/*
 * ptt_check_create - creates a check without events; NULL: there is no memory
 *
 * @long_hold: shortest hold that is a fact, in ns; @long_wait: shortest wait that is a fact, in ns
 */
PTT_CHECK_API struct ptt_check *ptt_check_create(int64_t long_hold, int64_t long_wait);
PTT_CHECK_API void ptt_check_destroy(struct ptt_check *check);
/* ptt_check_stack - declares that only the stack of the first thread lies at addresses from @from on. */
PTT_CHECK_API int ptt_check_stack(struct ptt_check *check, uint32_t process, uint64_t from);
/* ptt_check_memory - declares that memory [from, to) is never reused, such as the memory of global variables. */
PTT_CHECK_API int ptt_check_memory(struct ptt_check *check, uint32_t process, uint64_t from, uint64_t to);
/* ptt_check_clocks - declares the values of the clocks of a process at time 0, in ns; 0: unknown. */
PTT_CHECK_API int ptt_check_clocks(struct ptt_check *check, uint32_t process, int64_t realtime, int64_t monotonic);
/* ptt_check_feed - follows the next @n events. Only the column of processors is optional. 0 or -errno. */
PTT_CHECK_API int ptt_check_feed(struct ptt_check *check, const struct ptt_columns *columns, int64_t n);

/* Uses of a semaphore by an interpreter. */
enum ptt_semaphore_use {
	PTT_USED_ANYHOW,	/* unknown, or any other use */
	PTT_USED_FOR_WORK,	/* its waiters have nothing to do */
	PTT_USED_FOR_EVENT,	/* a thread sets an event; for the first thread, also a signal handler of the interpreter */
	PTT_USED_FOR_CONDITION, /* a condition of the program */
	PTT_USED_FOR_RESULT,	/* another thread must deliver: a result, room in a queue, its arrival at a barrier */
	PTT_USED_FOR_END,	/* the end of a thread */
};

/*
 * ptt_check_semaphore - declares the use of the semaphores that a process initializes, or waits for, with a stack
 *
 * @stack: number of the stack in the process
 * @units: 1: semaphores that begin with units; 0: semaphores without
 * @use: enum ptt_semaphore_use
 * @origin: a number above 0 that is equal for all stacks of a line of the program; 0: unknown
 */
PTT_CHECK_API int ptt_check_semaphore(struct ptt_check *check, uint32_t process, uint32_t stack, uint32_t units, uint32_t use,
				      uint32_t origin);
/* ptt_check_has_limited_waits - whether a thread of a process is in a condition wait with a time limit at the end. */
PTT_CHECK_API int ptt_check_has_limited_waits(const struct ptt_check *check, uint32_t process);
/*
 * ptt_check_gil - declares the addresses of the lock of an interpreter; call it before ptt_check_finish(), if no event is missing
 *
 * @condition: threads that want the lock wait there, again and again; @hand_over: a thread that gave up the lock waits there
 */
PTT_CHECK_API int ptt_check_gil(struct ptt_check *check, uint32_t process, uint64_t condition, uint64_t hand_over);
/* ptt_check_waits_for_posts - whether a thread of a process waits for a semaphore at the end. */
PTT_CHECK_API int ptt_check_waits_for_posts(const struct ptt_check *check, uint32_t process);
/*
 * ptt_check_no_handlers - declares that only threads which a process created post its semaphores; call it before ptt_check_finish()
 *
 * @may: not 0: signal handlers may post, too
 */
PTT_CHECK_API int ptt_check_no_handlers(struct ptt_check *check, uint32_t process, uint32_t may);

#define PTT_CHECK_INCOMPLETE 1u /* events are missing */
#define PTT_CHECK_RUNNING 2u	/* the trace goes on, so no wait is final */
#define PTT_CHECK_RAGGED 4u	/* the oldest events of each thread were overwritten, up to different times */

/*
 * ptt_check_finish - adds the facts that show only at the end
 *
 * @ends: when each process ended by other evidence than its events, @count times; INT64_MIN: unknown
 * @flags: PTT_CHECK_INCOMPLETE, PTT_CHECK_RUNNING, PTT_CHECK_RAGGED
 */
PTT_CHECK_API int ptt_check_finish(struct ptt_check *check, const int64_t *ends, uint32_t count, uint32_t flags);
/* ptt_check_table - a table, valid until the next events. @which: enum ptt_check_table_id. 0 or -EINVAL. */
PTT_CHECK_API int ptt_check_table(const struct ptt_check *check, uint32_t which, struct ptt_check_table *out);
/* ptt_check_lost - number of events that the trace reports as lost. */
PTT_CHECK_API uint64_t ptt_check_lost(const struct ptt_check *check);
/* ptt_check_crowded - number of requests for locks by threads that held too many locks to keep their orders. */
PTT_CHECK_API uint64_t ptt_check_crowded(const struct ptt_check *check);
/*
 * ptt_check_nested_semaphores - how often threads of a process took a semaphore used as a lock while they had another such
 * semaphore. The orders of these semaphores are not judged.
 */
PTT_CHECK_API uint64_t ptt_check_nested_semaphores(const struct ptt_check *check, uint32_t process);
/* ptt_check_futex_waits - number of waits by system call for locks outside of the thread library, which are not judged. */
PTT_CHECK_API uint64_t ptt_check_futex_waits(const struct ptt_check *check);

#endif
