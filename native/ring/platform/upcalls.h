/* SPDX-License-Identifier: MIT */
/* upcalls.h - the functions of the tracer that the ring calls, although the tracer stands above the ring. */
/*
 * A library that contains the ring starts with functions that do nothing. The tracer fills in its own functions when it
 * loads a trace handler, before it calls nptl_trace_init(). All threads have the same functions until the process ends.
 */
#ifndef PTT_UPCALLS_H
#define PTT_UPCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptt_stack_wanted;

enum ptt_other_lock {
	PTT_OTHER_NONE,	   /* a lock of the thread library */
	PTT_OTHER_PRIVATE, /* a lock of another library, which only threads of one process can use */
	PTT_OTHER_UNKNOWN, /* a lock with a known address and nothing else */
};

/*
 * A function of a handler that the tracer calls before it tries to take a lock. Runs in any thread, also in signal
 * handlers; keeps errno.
 */
typedef void ptt_before_lock_t(const void *object, void *site);

/* Every function is async-signal-safe, keeps errno and takes no lock. No pointer is NULL. */
struct ptt_upcalls {
	/* Is not 0 if the program has given up system calls. */
	const int *confined;

	/*
	 * The low half counts the threads that close a module now. The high half counts how often such a closing began or
	 * ended. A result kept by address is valid only if the low half was 0 before the look-up and the word is unchanged
	 * after the result was kept.
	 */
	const uint64_t *closing;

	/* true if the tracer found a Python interpreter when the program began. */
	const bool *python;

	/*
	 * Functions that a handler asks the tracer to call; NULL: none. The tracer calls before_lock from the hook that
	 * will send the event of the lock, with the same object and site. It calls before_exit before the process ends by
	 * _exit(). It calls before_rseq before the program's own system call rseq, in any thread.
	 */
	ptt_before_lock_t **before_lock;
	void (**before_exit)(void);
	void (**before_rseq)(void);

	/*
	 * outer_site - the program's call that led to @site, if @site is in a wrapper of thread functions such as
	 * std::mutex::lock()
	 * Call it in the thread and at the time of the event, from a function with a small frame. It reads the file of a
	 * module when it first meets the module.
	 * Return: NULL if @site is in no wrapper; @site if the call cannot be found this time; PTT_NO_SITE if @site tells
	 * nothing, for example a site in a library that runs calls named by a script.
	 */
	void *(*outer_site)(void *site);

	/*
	 * stack - the number of the calling thread's stack from @site outwards. Call it under the same conditions as
	 * outer_site().
	 * Return: 0 if the call was not found on the stack, or the stack has no number.
	 */
	uint32_t (*stack)(void *site, const struct ptt_stack_wanted *wanted);

	/* is_of_other_thread - does the current report of the calling thread belong to a call of another thread? */
	bool (*is_of_other_thread)(void);

	/* user_site - the call site of the program's own event that the calling thread sends now; meaningless at other times. */
	void *(*user_site)(void);

	/*
	 * other_lock - the library that owns the mutex or read-write lock @object, in the thread that reports an event of
	 * the lock. May name another library for a mutex at the address of a former lock of that library.
	 */
	enum ptt_other_lock (*other_lock)(uint64_t object);

	/*
	 * thread_enters - the calling thread sends its first event: report the beginning of the thread, if the tracer does
	 * not know the thread yet.
	 */
	void (*thread_enters)(void);

	/*
	 * held - how many locks the calling thread holds, by the events that it has sent or is sending now. The number is
	 * wrong if another thread releases a lock, or if levels change.
	 */
	int32_t (*held)(void);
};

extern struct ptt_upcalls ptt_upcalls __attribute__((visibility("hidden")));

/* A handler that contains the ring exports this function. @size is the size of the tracer's struct. */
typedef void ptt_take_upcalls_t(const struct ptt_upcalls *upcalls, size_t size);
#define PTT_TAKE_UPCALLS "__nptl_trace_take_upcalls"

#endif
