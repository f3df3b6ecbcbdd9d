/* SPDX-License-Identifier: MIT */
/* java.h - functions of the tracer for the agent in a Java virtual machine: waits that only the machine knows. */
/*
 * The agent calls these functions in the thread that waits, at the beginning and at the end of the wait. Objects have
 * numbers, because the garbage collector moves them. The tracer does not see a lock that a thread takes without a wait, or
 * releases while no thread waits.
 */
#ifndef PTT_JAVA_H
#define PTT_JAVA_H

#include <stdbool.h>
#include <stdint.h>

#define PTT_JAVA_FRAMES 64

/* A method; its address is valid as long as the process lives. */
struct ptt_java_method {
	const char *name; /* class and method */
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
	PTT_JAVA_LOCK,	  /* for a lock of java.util.concurrent that another thread has; the thread may still not have the lock after the wait */
	PTT_JAVA_SYNC,	  /* for an object without an owner: a semaphore, a latch, a lock that readers hold */
	PTT_JAVA_PARK,	  /* for anything else, mostly for work */
	PTT_JAVA_VIRTUAL, /* for a monitor that a virtual thread may have */
};

struct ptt_java_wait {
	enum ptt_java_kind kind;
	bool fresh;	     /* the first wait of this kind for the object */
	bool whole;	     /* the last frame is the first frame of the thread */
	uint32_t owner;	     /* tid of the thread that has the monitor; 0: not known */
	uint64_t timeout_ns; /* the wait ends by itself after this time; 0: no limit */
	uint64_t object;     /* number of the object, from 1 */
	const char *type;    /* class of the object, or NULL; valid as long as the process lives */
	uint32_t count;
	struct ptt_java_frame frame[PTT_JAVA_FRAMES]; /* the innermost first */
	/* For the tracer only. */
	uint64_t began;
	void *site;
};

/* The functions of the tracer for the agent. A call is the call site of an event, so it must not be a tail call. */
struct ptt_java_tracer {
	/* wait - the calling thread begins to wait. @wait must stay valid until waited(), which the same thread calls. */
	void (*wait)(struct ptt_java_wait *wait);
	/* waited - the wait is over. @result: 0, ETIMEDOUT, or ECANCELED: unknown */
	void (*waited)(const struct ptt_java_wait *wait, int result);
	/* wake - the calling thread is about to wake a thread. @wait: kind and object of that thread's wait, frames of the caller */
	void (*wake)(struct ptt_java_wait *wait);
	/* name - reports the name of the calling thread in Java; its name in the kernel has 15 bytes at most. */
	void (*name)(const char *name);
};

/* The agent looks the struct up by this name. It is missing in a process without the tracer. */
#define PTT_JAVA_TRACER "__nptl_trace_java"
extern const struct ptt_java_tracer __nptl_trace_java;

#endif
