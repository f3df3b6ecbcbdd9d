/* SPDX-License-Identifier: MIT */
/* pttcheck.h - facts about what threads did: cycles of waits, orders of locks, missed signals, misuse. */
/*
 * Model. Events are fed in the order of time, as the reader's cursors deliver them; facts come as they show, each with
 * the few steps that prove it. A cycle of waits comes at once and is dropped at the end if one of the waits has ended
 * after all. A fact that is only true when no event is missing is dropped if events are missing. A fact is neutral:
 * src/nptltrace/findings decides which facts are findings, how severe they are, and in which words.
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
 * Functions return 0 or negated errno values; a check belongs to one thread at a time.
 */
#ifndef PTTCHECK_H
#define PTTCHECK_H

#include <stdint.h>

struct ptt_columns;
struct ptt_check;

#define PTT_CHECK_VERSION 11
#define PTT_CHECK_API __attribute__((visibility("default")))

/* What a fact is about. New ones come last: Python knows them by their numbers. */
enum ptt_fact_kind {
	PTT_FACT_WAIT_CYCLE,	   /* each waits for what the next one has */
	PTT_FACT_WAIT_FOR_SELF,
	PTT_FACT_ORDER_CYCLE,	   /* locks, each asked for with the one before it held */
	PTT_FACT_SIGNAL_MISSED,	   /* a wait to the end for what was signalled before it, or to another one */
	PTT_FACT_RELEASE_OF_OTHERS, /* a lock that another thread holds */
	PTT_FACT_RELEASE_OF_FREE,  /* a lock that no thread holds */
	PTT_FACT_DESTROY_IN_USE,
	PTT_FACT_USE_OF_DESTROYED,
	PTT_FACT_COND_MUTEX_NOT_HELD,
	PTT_FACT_COND_TWO_MUTEXES, /* at the same time */
	PTT_FACT_END_WITH_HOLD,	   /* of a thread */
	PTT_FACT_END_UNJOINED,	   /* of a thread that was not detached either */
	PTT_FACT_BARRIER_INCOMPLETE, /* and nobody else will come */
	PTT_FACT_LONG_HOLD,
	PTT_FACT_WAIT_FOR_LOWER,   /* a long one, for a thread of lower priority */
	PTT_FACT_ALL_BLOCKED,	   /* all threads of a process */
	PTT_FACT_WAIT_WITH_HOLD,   /* for no lock, while others waited long for a lock that the thread held */
	PTT_FACT_ORDER_CYCLE_PREVENTED, /* a cycle that cannot close; value: why, a bit (1 << PTT_PREVENTED_…) each */
	PTT_FACT_HOLD_PREEMPTED,   /* in the midst of a hold, while others waited for the lock: it could have run */
	PTT_FACT_HOLD_ASLEEP,	   /* likewise: it slept, in a system call or nobody knows where, and in no wait */
	PTT_FACT_CONVOY,	   /* a lock is handed from waiter to waiter, and is free for longer than it is held */
	PTT_FACT_JOIN_REFUSED,	   /* of a thread that is detached, or joined by another one */
	PTT_FACT_INIT_IN_USE,	   /* a lock is initialized while a thread has it */
	PTT_FACT_LIMIT_OF_OTHER_CLOCK, /* of a wait: years ahead by its clock; value: ns ahead by the other one */
	PTT_FACT_LIMIT_OVER,	   /* long before the wait began; value: ns ahead by the other clock, 0 if it is not near */
	PTT_FACT_TRIES_REFUSED,	   /* tries in a row to take a lock that others have; value: so many */
	PTT_FACT_EXTRA_POST,	   /* of a semaphore that is used as a lock: two threads had it at the same time */
	PTT_FACT_WRITER_OVERTAKEN, /* of a read-write lock: readers took it meanwhile; value: so often */
	PTT_FACT_KINDS,
};

/* What a thread did in a step of a fact. `object` is what it did it to. */
enum ptt_check_what {
	PTT_STEP_TOOK,	 /* a lock; value: it is shared */
	PTT_STEP_WAITS,	 /* for a lock; value: for reading; other: its holder */
	PTT_STEP_ASKED,	 /* for a lock while it held others; value: for reading */
	PTT_STEP_COND,	 /* waits for a condition; value: address of the mutex */
	PTT_STEP_JOINS,	 /* waits for the end of other */
	PTT_STEP_BARRIER, /* waits at a barrier; value: how many it takes */
	PTT_STEP_RELEASED,
	PTT_STEP_UNLOCKS, /* what it does not hold */
	PTT_STEP_REFUSED, /* a call failed; value: errno */
	PTT_STEP_INIT,
	PTT_STEP_DESTROYED,
	PTT_STEP_USED,
	PTT_STEP_SIGNALLED,
	PTT_STEP_BROADCAST,
	PTT_STEP_ENDED,	 /* the thread */
	PTT_STEP_CREATED, /* other */
	PTT_STEP_PRIORITY, /* has priority value, 0 for an ordinary one */
	PTT_STEP_FORKED, /* the process, while other had a lock */
	PTT_STEP_SLEPT,	 /* in a system call, for value ns */
	PTT_STEP_PASSED, /* a lock, the last of value times in a row, to a thread that had waited for it */
	PTT_STEP_FREE,	 /* took it: nobody had it for value ns in all of that time */
	PTT_STEP_TRIED,	 /* to take a lock, value times in a row, and was refused */
	PTT_STEP_POSTED, /* a semaphore that it had not taken */
};

#define PTT_FLAG_CLOSED 1u  /* waits that close a cycle: stands only while none of them ends */
#define PTT_FLAG_WHOLE 2u   /* stands only if no event is missing */
#define PTT_FLAG_SUSPECT 4u /* memory of a lock may have been used again for another */
#define PTT_FLAG_DROPPED 8u /* did not stand */
#define PTT_FLAG_REFUSED 16u /* the library refused, and the program knows */
#define PTT_FLAG_UNLESS_HANDLER 32u /* stands unless a signal handler posts a semaphore */

struct ptt_check_fact {
	int64_t ts;
	int64_t value;	/* ns of a hold or of a wait; threads that will not come, or are blocked */
	int64_t total;	/* of what has a size: of all that were seen */
	uint64_t count; /* how often the same was seen */
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
	uint64_t wait; /* number of a wait */
	uint32_t thread;
	uint32_t other; /* another thread */
	uint32_t process;
	uint16_t kind; /* of the object: a domain of the catalogue */
	uint16_t what;
	uint32_t call; /* of a sleeper: its number in the catalogue */
	uint32_t reserved;
};

/* Thread 0 is nobody. The same kernel thread id may stand for several. */
struct ptt_check_thread_row {
	int64_t first_ns; /* INT64_MAX without events */
	int64_t last_ns;
	int64_t end_ns;
	uint32_t process;
	uint32_t tid;
	uint32_t number; /* the reader's; UINT32_MAX for one without events */
	uint32_t generation;
	uint32_t creator;
	uint32_t flags;
	uint32_t held;
	uint32_t holds;
	uint32_t waits; /* the innermost wait in which it is, or 0 */
	uint32_t process_next;
	uint64_t silent_ns; /* without any event, for PTT_SILENT_NS or more at a time, in no wait and no call, up to its last event */
	uint32_t call;	    /* the system call in which it is, or 0 */
	uint32_t library_wait; /* 1: it waits for a lock of the C library's own */
};

struct ptt_check_table {
	const void *items;
	uint64_t count;
	uint64_t stride;
};

enum ptt_check_table_id { PTT_CHECK_FACTS, PTT_CHECK_STEPS, PTT_CHECK_THREADS };

PTT_CHECK_API int ptt_check_version(void);
/*
 * ptt_check_create - a check that has seen nothing yet
 *
 * @long_hold: ns from which on a hold is a fact; @long_wait: ns from which on a wait is one
 */
PTT_CHECK_API struct ptt_check *ptt_check_create(int64_t long_hold, int64_t long_wait);
PTT_CHECK_API void ptt_check_destroy(struct ptt_check *check);
/* ptt_check_stack - declares that nothing lies behind this address but the stack of the first thread. */
PTT_CHECK_API int ptt_check_stack(struct ptt_check *check, uint32_t process, uint64_t from);
/* ptt_check_memory - declares memory in which objects stay the same, such as the memory of global variables. */
PTT_CHECK_API int ptt_check_memory(struct ptt_check *check, uint32_t process, uint64_t from, uint64_t to);
/* ptt_check_clocks - what the clocks of a process showed at time 0, in ns; 0: that is not known. */
PTT_CHECK_API int ptt_check_clocks(struct ptt_check *check, uint32_t process, int64_t realtime, int64_t monotonic);
/* ptt_check_feed - follows the next n events; all columns must be there but the processors. 0 or a negative error number. */
PTT_CHECK_API int ptt_check_feed(struct ptt_check *check, const struct ptt_columns *columns, int64_t n);

/* What an interpreter uses a semaphore for. */
enum ptt_semaphore_use {
	PTT_USED_ANYHOW,	/* or nobody knows */
	PTT_USED_FOR_WORK,	/* whoever waits there has nothing to do */
	PTT_USED_FOR_EVENT,	/* that somebody sets; for the first thread a signal handler of the interpreter may */
	PTT_USED_FOR_CONDITION, /* of the program */
	PTT_USED_FOR_RESULT,	/* another thread owes it: a result, room in a queue, its arrival at a barrier */
	PTT_USED_FOR_END,	/* of a thread */
};

/*
 * ptt_check_semaphore - what semaphores are used for that a process initializes, or waits for, with a stack
 *
 * @units: whether those are meant that begin with units, or those without
 * @use: one of enum ptt_semaphore_use
 * @origin: the same number, above 0, for stacks of one line of the program; 0: not known
 */
PTT_CHECK_API int ptt_check_semaphore(struct ptt_check *check, uint32_t process, uint32_t stack, uint32_t units, uint32_t use,
				      uint32_t origin);
/* ptt_check_has_limited_waits - whether a thread of a process waits for a condition, with a time limit, to the end. */
PTT_CHECK_API int ptt_check_has_limited_waits(const struct ptt_check *check, uint32_t process);
/*
 * ptt_check_gil - declares where a process has a lock of its interpreter; before ptt_check_finish(), if no event is missing
 *
 * @condition: on which those wait that want it, again and again; @hand_over: on which a thread waits that has given it up
 */
PTT_CHECK_API int ptt_check_gil(struct ptt_check *check, uint32_t process, uint64_t condition, uint64_t hand_over);
/* ptt_check_waits_for_posts - whether a thread of a process waits for a semaphore to the end. */
PTT_CHECK_API int ptt_check_waits_for_posts(const struct ptt_check *check, uint32_t process);
/*
 * ptt_check_no_handlers - declares that nobody but threads of a process that it created posts a semaphore, or, where @may is
 * not 0, at most a signal handler besides; before ptt_check_finish().
 */
PTT_CHECK_API int ptt_check_no_handlers(struct ptt_check *check, uint32_t process, uint32_t may);

#define PTT_CHECK_INCOMPLETE 1u /* events are missing */
#define PTT_CHECK_RUNNING 2u	/* the trace goes on: nothing is over */
#define PTT_CHECK_RAGGED 4u	/* the oldest events were given up, of each thread others */

/*
 * ptt_check_finish - what shows at the end only
 *
 * @ends: when each process ended as far as is known otherwise, INT64_MIN where it is not
 */
PTT_CHECK_API int ptt_check_finish(struct ptt_check *check, const int64_t *ends, uint32_t count, uint32_t flags);
PTT_CHECK_API int ptt_check_table(const struct ptt_check *check, uint32_t which, struct ptt_check_table *out);
/* ptt_check_lost - events that the trace itself says were lost. */
PTT_CHECK_API uint64_t ptt_check_lost(const struct ptt_check *check);
/* ptt_check_crowded - how often a lock was asked for by a thread that held too many others to keep the orders. */
PTT_CHECK_API uint64_t ptt_check_crowded(const struct ptt_check *check);
/*
 * ptt_check_nested_semaphores - how often threads of a process took a semaphore that is used as a lock while they had another one:
 * in which orders is not judged.
 */
PTT_CHECK_API uint64_t ptt_check_nested_semaphores(const struct ptt_check *check, uint32_t process);
/* ptt_check_futex_waits - waits by system call, for locks that are not the thread library's: they are not judged. */
PTT_CHECK_API uint64_t ptt_check_futex_waits(const struct ptt_check *check);

#endif
