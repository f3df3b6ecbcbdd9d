/* SPDX-License-Identifier: MIT */
/* upcalls.h - what the ring asks of the tracer, which stands above it. */
/*
 * A library that has the ring in it starts with functions that say nothing. The tracer fills in its own functions when it loads a trace
 * handler, before it calls nptl_trace_init(). All threads have the same functions until the process ends.
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
	PTT_OTHER_UNKNOWN, /* a lock of which only the address is known */
};

/* What a handler has called before the tracer tries to take a lock. Called in any thread, also in signal handlers; keeps errno. */
typedef void ptt_before_lock_t(const void *object, void *site);

/* Every function is async-signal-safe, keeps errno and takes no lock. No pointer is NULL. */
struct ptt_upcalls {
	/* The program has given up system calls. */
	const int *confined;

	/*
	 * How many threads are closing a module, in the low half, and how often a closing began or ended. What is kept by address holds
	 * only if nothing was being closed before the address was looked up, and the word is the same after the result was kept.
	 */
	const uint64_t *closing;

	/* An interpreter of Python was found when the program began. */
	const bool *python;

	/*
	 * Where a handler puts a function for the tracer to call; NULL: none. The tracer calls before_lock from the hook that will send the
	 * event of the lock, with the same object and site; before_exit before the process ends by _exit(); before_rseq before the program's
	 * system call rseq, in any thread.
	 */
	ptt_before_lock_t **before_lock;
	void (**before_exit)(void);
	void (**before_rseq)(void);

	/*
	 * outer_site - where the call lies that led to @site, if @site is in a wrapper of thread functions such as std::mutex::lock().
	 * Call it in the thread and at the time of the event, from a function with a small frame. It reads the file of a module when it first
	 * meets the module.
	 * Return: NULL if @site is in no wrapper, @site if the call cannot be found this time, PTT_NO_SITE if @site says nothing, such as
	 * a site in a library that calls what a script names.
	 */
	void *(*outer_site)(void *site);

	/*
	 * stack - the number of the stack that the calling thread has from @site on outwards. Call it as outer_site().
	 * Return: 0 if the call was not found on the stack, or the stack has no number.
	 */
	uint32_t (*stack)(void *site, const struct ptt_stack_wanted *wanted);

	/* is_of_other_thread - what the calling thread reports now belongs to a call of another thread. */
	bool (*is_of_other_thread)(void);

	/* user_site - where the program sends the event of its own that the calling thread is at; else it means nothing. */
	void *(*user_site)(void);

	/*
	 * other_lock - which library has the mutex or read-write lock @object, of which the calling thread reports an event? May name another
	 * library for a mutex that lies where a lock of that library was.
	 */
	enum ptt_other_lock (*other_lock)(uint64_t object);

	/* thread_enters - the calling thread sends its first event: report that it has begun, if the tracer does not know the thread yet. */
	void (*thread_enters)(void);
};

extern struct ptt_upcalls ptt_upcalls __attribute__((visibility("hidden")));

/* A handler that has the ring in it exports this function; @size is the size of the tracer's struct. */
typedef void ptt_take_upcalls_t(const struct ptt_upcalls *upcalls, size_t size);
#define PTT_TAKE_UPCALLS "__nptl_trace_take_upcalls"

#endif
