/* SPDX-License-Identifier: MIT */
/* java.h - what the tracer offers to the agent in a Java virtual machine: waits that only the machine knows of. */
/*
 * The agent calls these in the thread that waits, at the beginning and at the end of the wait. An object is known by a number, since
 * the collector of garbage moves it; a lock that is taken without a wait, or given back while nobody waits, is not seen. Weak: where no
 * tracer is loaded they are null.
 */
#ifndef PTT_JAVA_H
#define PTT_JAVA_H

#include <stdbool.h>
#include <stdint.h>

#define PTT_JAVA_FRAMES 64

/* A method; it stays where it is as long as the process lives. */
struct ptt_java_method {
	const char *name; /* with the class */
	const char *file;
	const uint16_t *lines; /* pairs in any order: the first bytecode of a line, and the line */
	uint32_t line_count;   /* pairs */
};

struct ptt_java_frame {
	const struct ptt_java_method *method;
	uint32_t at; /* bytecode */
};

enum ptt_java_kind {
	PTT_JAVA_MONITOR, /* for a monitor that another thread has */
	PTT_JAVA_NOTIFY,  /* Object.wait(): for a notification */
	PTT_JAVA_LOCK,	  /* for a lock of java.util.concurrent that another thread has; it may not get it then either */
	PTT_JAVA_SYNC,	  /* for an object without an owner: a semaphore, a latch, a lock that readers have */
	PTT_JAVA_PARK,	  /* for anything else: work, mostly */
	PTT_JAVA_VIRTUAL, /* for a monitor that a virtual thread may have */
};

struct ptt_java_wait {
	enum ptt_java_kind kind;
	bool fresh;	     /* the first wait of this kind for the object */
	bool whole;	     /* the last frame is the thread's first */
	uint32_t owner;	     /* thread that has the monitor; 0: not known */
	uint64_t timeout_ns; /* after which it ends by itself; 0: it does not */
	uint64_t object;     /* its number, from 1 */
	const char *type;    /* its class, or NULL; stays where it is */
	uint32_t count;
	struct ptt_java_frame frame[PTT_JAVA_FRAMES]; /* the innermost first */
	/* The tracer's own. */
	uint64_t began;
	void *site;
};

extern void __nptl_trace_java_wait(struct ptt_java_wait *wait) __attribute__((weak));

/* @result: 0, ETIMEDOUT, or ECANCELED where nobody knows how it ended */
extern void __nptl_trace_java_waited(const struct ptt_java_wait *wait, int result) __attribute__((weak));

/*
 * The calling thread is about to wake a waiting thread. Kind, object and frames of @wait say what it waits for, and from where it is
 * woken.
 */
extern void __nptl_trace_java_wake(struct ptt_java_wait *wait) __attribute__((weak));

/* The name that Java has for the calling thread; the kernel's has 15 bytes at most. */
extern void __nptl_trace_java_name(const char *name) __attribute__((weak));

#endif
