/* SPDX-License-Identifier: MIT */
/* tracer.h - what the hooks share: levels, the handler's entry point, the real functions, waits. */
/*
 * A hook is transparent: it returns what the real function returns, keeps errno, adds no cancellation point and no
 * system call. Hooks know nothing of storage; the handler's entry point is all they see of it.
 */
#ifndef PTT_TRACER_H
#define PTT_TRACER_H

#define NPTL_TRACE_IMPLEMENTATION
#include <errno.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "layout/ptt_abi.h"
#include "platform/page.h"

struct termios;
struct winsize;

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#define COLD __attribute__((cold, noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* ThreadSanitizer, where the tracer is built with it, calls such a function before it can watch anything. */
#define UNWATCHED __attribute__((no_sanitize_thread))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* ------------------------------------------------------------ levels */

/* A page of its own: where somebody may change levels from outside, a shared page is mapped over it. */
union ptt_control_page {
	struct ptt_control control;
	char page[PTT_PAGE_MAX];
};
extern union ptt_control_page ptt_control HIDDEN;

/* ptt_level - detail level of a domain now; 0 while there is no handler. */
static inline uint32_t ptt_level(enum nptl_trace_domain domain)
{
#ifdef ENABLE_NPTL_TRACE
	/* relaxed: a change is seen soon, and nothing else hangs on it */
	return __atomic_load_n(&ptt_control.control.level[domain], __ATOMIC_RELAXED);
#else
	(void)domain;
	return 0;
#endif
}

/* The single test in front of each event. */
#define must_trace(domain, event) unlikely(ptt_level(NPTL_DOMAIN_##domain) >= NPTL_LEVEL_##event)

/* ------------------------------------------------------------ events */

typedef void ptt_getevent_t(struct nptl_trace_event event);
typedef void ptt_getplain_t(void *object, void *site, unsigned int domain, unsigned int event);

/*
 * What takes events: the handler, what stands before it (a wrapper that keeps the handler from being traced, a filter), or
 * nobody. Events without fields go to getplain, which is the handler's own where nothing stands before it.
 */
struct ptt_receiver {
	ptt_getevent_t *getevent;
	ptt_getplain_t *getplain;
};
extern struct ptt_receiver ptt_receiver HIDDEN;

/* ptt_receive - events go to @getevent from now on; those without fields to @getplain, or, if that is NULL, to @getevent too. */
void ptt_receive(ptt_getevent_t *getevent, ptt_getplain_t *getplain) HIDDEN;
void ptt_ignore_event(struct nptl_trace_event event) HIDDEN; /* where there is no handler (any more) */

/*
 * ptt_filter - let some types of events only come to a handler
 * @spec: "mutex=3f,cond=18": of these domains, the events whose numbers have a bit in the hexadecimal number
 * @next: the handler
 * Return: what to call instead of @next.
 */
ptt_getevent_t *ptt_filter(const char *spec, ptt_getevent_t *next) HIDDEN;

/*
 * struct nptl_trace_event as the words it consists of. A compiler that fills the bytes one by one and then copies the
 * struct to the stack stalls on its own stores, which costs more than the time stamp; so it is given whole words.
 */
struct ptt_event_words {
	uint64_t kind;
	uint64_t param_size;
	void *param;
};
_Static_assert(sizeof(struct ptt_event_words) == sizeof(struct nptl_trace_event), "same words");
_Static_assert(offsetof(struct nptl_trace_event, domain) == 1, "kind");
_Static_assert(offsetof(struct nptl_trace_event, event) == 2, "kind");
_Static_assert(offsetof(struct nptl_trace_event, param_size) == 8, "param_size");
_Static_assert(offsetof(struct nptl_trace_event, param) == 16, "param");

/* The handler calls nothing of the C library that could come back to the tracer. */
extern bool ptt_handler_reentrant HIDDEN;

/*
 * How many locks the calling thread has, by the events that it has sent: wrong where another thread releases them, or where
 * levels change. It decides about events that may as well be there or not.
 */
extern __thread int32_t ptt_held INITIAL_EXEC HIDDEN;

/* Costs nothing where domain and event are no constants. They are constants for acquisitions and releases. */
static inline __attribute__((always_inline)) void ptt_count_held(char domain, char event)
{
	if (!__builtin_constant_p(domain) || !__builtin_constant_p(event))
		return;
	switch (domain << 6 | event) {
	case NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_TAKEN:
	case NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_TAKEN_WAITED:
	case NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_TAKEN_TRIED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_READ:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_READ_WAITED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_READ_TRIED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_WRITE:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_WRITE_WAITED:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_WRITE_TRIED:
	case NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_TAKEN:
	case NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_TAKEN_WAITED:
	case NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_TAKEN_TRIED:
		ptt_held++;
		break;
	case NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_FREE:
	case NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_FREE:
	case NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_FREE:
		ptt_held--;
		break;
	}
}

/* Both structs are passed in memory, so a function that takes one can be called with the other. */
static inline __attribute__((always_inline)) void ptt_call_getevent(char domain, char event, void *param, size_t size)
{
	struct ptt_event_words e = {
		.kind = NPTL_TRACE_SOURCE_NPTL | (uint64_t)(uint8_t)domain << 8 | (uint64_t)(uint8_t)event << 16,
		.param_size = size,
		.param = param,
	};
	((void (*)(struct ptt_event_words))(void (*)(void))ptt_receiver.getevent)(e);
}

static inline __attribute__((always_inline)) void ptt_send(char domain, char event, void *param, size_t size)
{
	ptt_count_held(domain, event);
	ptt_call_getevent(domain, event, param, size);
}

static inline __attribute__((always_inline)) void ptt_emit_plain(char domain, char event, const void *object, void *site)
{
	ptt_count_held(domain, event);
	ptt_receiver.getplain((void *)object, site, (uint8_t)domain, (uint8_t)event);
}

/* Functions of the handler, or NULL: see platform/upcalls.h. */
extern void (*ptt_before_lock_is_tried)(const void *object, void *site) HIDDEN;
extern void (*ptt_before_exit)(void) HIDDEN;
extern void (*ptt_before_rseq_is_called)(void) HIDDEN;

/* ptt_before_rseq - the program registers an area of its own for restartable sequences, or ends the C library's area. */
static inline void ptt_before_rseq(void)
{
	/* relaxed: set when the handler begins */
	void (*before)(void) = __atomic_load_n(&ptt_before_rseq_is_called, __ATOMIC_RELAXED);

	if (before)
		before();
}

/*
 * ptt_before_lock - a lock is about to be tried: what takes time and is wanted of its holder is done before it has it. To be called
 * where the event of the acquisition will be sent, from the same hook and with the same @site.
 */
static inline __attribute__((always_inline)) void ptt_before_lock(const void *object, void *site)
{
	/* relaxed: set once, to a function that is there for good */
	void (*before)(const void *, void *) = __atomic_load_n(&ptt_before_lock_is_tried, __ATOMIC_RELAXED);

	if (unlikely(before))
		before(object, site);
}

/* EMIT(MUTEX, MUTEX_FREE, mutex, site): an event without fields. */
#define EMIT(domain, name, object, site) \
	ptt_emit_plain(NPTL_DOMAIN_##domain, NPTL_EV_##name, (const void *)(object), site)

/* EMIT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, mutex, site, .owner = 7): an event with fields. */
#define EMIT_WITH(domain, name, type, object, site, ...) \
	EMIT_PARAM(NPTL_DOMAIN_##domain, NPTL_EV_##name, type, object, site, __VA_ARGS__)

#define EMIT_PARAM(domain, event, type, object_, site_, ...)                                         \
	do {                                                                                         \
		struct nptl_trace_##type param_ = {                                                  \
			.object = (void *)(object_), .site = (site_), __VA_ARGS__};                  \
		ptt_send(domain, event, &param_, sizeof(param_));                                    \
	} while (0)

/*
 * The same, where the level of the domain is not known to be high enough for the event. The names are pasted here, since
 * system headers have macros of some of them.
 */
#define REPORT(domain, name, object, site)                                                \
	do {                                                                              \
		if (unlikely(ptt_level(NPTL_DOMAIN_##domain) >= NPTL_LEVEL_##name))       \
			ptt_emit_plain(NPTL_DOMAIN_##domain, NPTL_EV_##name,              \
				       (const void *)(object), site);                     \
	} while (0)
#define REPORT_WITH(domain, name, type, object, site, ...)                                                \
	do {                                                                                              \
		if (unlikely(ptt_level(NPTL_DOMAIN_##domain) >= NPTL_LEVEL_##name))                       \
			EMIT_PARAM(NPTL_DOMAIN_##domain, NPTL_EV_##name, type, object, site, __VA_ARGS__); \
	} while (0)

/* The two events that most routines have, with the same fields in all domains: a failure, and the _OUT of a full call. */
#define REPORT_ERROR(domain, object, routine_, result_, site)                                    \
	REPORT_WITH(domain, domain##_ERROR, mutex_error, object, site, .routine = (routine_), .result = (result_))
#define REPORT_RESULT(domain, name, object, result_, site) \
	REPORT_WITH(domain, name, mutex_lock_out, object, site, .result = (result_))

/* The call that brought the program into a hook. */
#define CALL_SITE __builtin_extract_return_addr(__builtin_return_address(0))

static inline struct nptl_trace_ptr48 ptt_ptr48(const void *pointer)
{
	uint64_t v = (uint64_t)(uintptr_t)pointer;

	return (struct nptl_trace_ptr48){(uint16_t)v, (uint16_t)(v >> 16), (uint16_t)(v >> 32)};
}

static inline uint64_t ptt_ns(const struct timespec *t)
{
	/* declared never to be NULL where it comes from, but some programs pass it, and some routines take it */
	__asm__("" : "+r"(t));
	return t ? (uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_nsec : 0;
}

/* ptt_now_ns - for durations of waits; the vDSO's clock, no system call where the kernel offers one. */
static inline uint64_t ptt_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ptt_ns(&now);
}

/*
 * Where handlers begin and end, and files are written, the C library's cancellation points are called. The functions of the
 * program that come to this are none: a request for cancellation stays pending meanwhile. Safe in signal handlers.
 */
static inline int ptt_hold_cancellation(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ptt_allow_cancellation(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* Kernel id of the calling thread, cached per thread. */
uint32_t ptt_tid(void) HIDDEN;
void ptt_forget_tid(void) HIDDEN; /* in the child of a fork */

/*
 * The thread is in a function of another library's lock, which is reported as a whole: see locks/. The waits inside are a
 * part of it, and no other; what the library takes and releases there is reported. Counts.
 */
extern __thread uint32_t ptt_in_lock INITIAL_EXEC HIDDEN;
void ptt_forget_lock_types(void) HIDDEN; /* in the child of a fork */

/* A text as the variable last field of an event (name or data), zero-padded. */
#define PTT_NAME_MAX 255
#define PTT_PIECES(size) (((size) + 13) / 14)

/* ------------------------------------------------------------ real functions */

#define HOOK(type, name, params, args) type(*name) params;
#define VERSIONED(type, name, version, params, args) HOOK(type, name, params, args)
struct ptt_real {
#include "hooks.def"
};
#undef HOOK
#undef VERSIONED

/* Filled before main; an earlier call of any of them fills it first. */
extern struct ptt_real ptt_real HIDDEN;

void ptt_resolve(void) HIDDEN;

/*
 * The older of two functions of one name: pthread_kill (changed in glibc 2.34), posix_spawn (2.15), conditions (2.3.2).
 * Filled like ptt_real. Where there is one function only, or another library stands before the C library, which then has
 * one for all versions, it is the same as in ptt_real.
 */
#define HOOK(type, name, params, args)
#define VERSIONED(type, name, version, params, args)
#define OLD(type, name, params, args) type(*name) params;
struct ptt_old {
#include "hooks.def"
};
#undef HOOK
#undef VERSIONED
extern struct ptt_old ptt_old HIDDEN;

/*
 * VERSION(hook, name, "@@GLIBC_2.34"): export a hook under a name that glibc has in two versions. VERSION_X86 is for names that have
 * two versions on x86-64 only. A program built with a sanitizer names no version, for the sanitizer's functions have none. The dynamic
 * linker then takes the oldest version that we have.
 */
#if defined(__x86_64__)
#define PTT_OLD_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define PTT_OLD_VERSION "GLIBC_2.17"
#elif defined(__riscv)
#define PTT_OLD_VERSION "GLIBC_2.27"
#endif
#ifdef PTT_OLD_VERSION
#define VERSION(hook, name, version) __asm__(".symver " #hook ", " #name version)
#else
#define VERSION(hook, name, version) ALIAS(name, hook)
#endif
#if defined(__x86_64__)
#define VERSION_X86(hook, name, version) VERSION(hook, name, version)
#else
#define VERSION_X86(hook, name, version) ALIAS(name, hook)
#endif

/* ALIAS(__fork, fork): export a hook of this file under another name, which the C library has too. */
#define ALIAS(name, hook) __asm__(".globl " #name "\n.set " #name ", " #hook)

/* HOOK_AS(int, hook, (int a), body(a, CALL_SITE)): a hook that VERSION exports under the name of the real function. */
#define HOOK_AS(type, hook, params, call) \
	EXPORT type hook params;          \
	EXPORT type hook params           \
	{                                 \
		return call;              \
	}

/* ------------------------------------------------------------ parts */

/* The program has given up system calls (confine.c); handlers look at it too. */
extern int __nptl_trace_confined __attribute__((visibility("default")));

void ptt_suspend(void) HIDDEN; /* handler.c: trace nothing more in this process, and do not look at the clock */
void ptt_resume(void) HIDDEN;  /* after all, as before; pairs with ptt_suspend(), by the same thread */
void ptt_report_own_priority(void) HIDDEN;     /* sched.c: unless it is the ordinary one */
void ptt_start_threads(void) HIDDEN;	       /* thread.c: the first thread */
void ptt_start_threads_attached(void) HIDDEN;  /* thread.c: any number of them, in a process that was not traced before */
void ptt_set_levels(const char *verbosity, const char *tracing_arg) HIDDEN; /* levels.c */
int ptt_domain(const char *name, size_t length) HIDDEN; /* its number, or 0 if there is none of that name */
void ptt_map_control(const char *directory) HIDDEN;
#if PTT_UNWINDS
/*
 * call_site.c: the kind of lock that waits for a futex where a call comes from, by the functions on the stack: a place in
 * catalog/futexes.toml, or 0. Safe in signal handlers, takes no lock.
 */
uint16_t ptt_site_futex(const void *site) HIDDEN;
void *ptt_find_outer_site(void *site) HIDDEN;	     /* call_site.c: see outer_site() in platform/upcalls.h */
struct ptt_stack_wanted;
EXPORT uint32_t __nptl_trace_stack(void *site, const struct ptt_stack_wanted *wanted); /* call_site.c: see stack() there */
void ptt_reach_begin(size_t room) HIDDEN;	     /* reach.c: the calling thread begins, and was given so much stack */
void ptt_python_start(void) HIDDEN;		     /* python.c: look for an interpreter */
/*
 * python.c: the name that the calling thread, which is about to create one, gave to it as threading.Thread: in UTF-8, without
 * an end. The interpreter is asked, which the thread may use as it is in a function of Python that starts the thread. Return:
 * how many bytes; 0 for a thread that is no such one, or that is named by itself, as from 3.14 on.
 */
size_t ptt_python_thread_name(char *name, size_t room) HIDDEN;
void ptt_begin_closing(void) HIDDEN;		     /* modules.c: around dlclose() */
void ptt_end_closing(const void *library) HIDDEN;
void ptt_closing_in_child(void) HIDDEN;		     /* modules.c: other threads that closed a module are not there */
void ptt_modules_anew(void) HIDDEN;		     /* modules.c: another recording has heard of none of them */
#else
static inline uint16_t ptt_site_futex(const void *site)
{
	(void)site;
	return 0;
}

static inline void ptt_reach_begin(size_t room)
{
	(void)room;
}

static inline void ptt_python_start(void)
{
}

static inline size_t ptt_python_thread_name(char *name, size_t room)
{
	(void)name;
	(void)room;
	return 0;
}

static inline void ptt_begin_closing(void)
{
}

static inline void ptt_end_closing(const void *library)
{
	(void)library;
}

static inline void ptt_closing_in_child(void)
{
}

static inline void ptt_modules_anew(void)
{
}
#endif
struct nptl_trace_module;
/* handler.c: the handler's, or NULL; see nptl_trace_handler_module() */
extern void (*ptt_handler_module)(const struct nptl_trace_module *module) HIDDEN;
void ptt_drop_control(void) HIDDEN;
void ptt_keep_levels(void) HIDDEN;     /* in the parent, just before a fork */
void ptt_clear_levels(void) HIDDEN;    /* for good */
void ptt_suspend_levels(void) HIDDEN;  /* they are 0 until they are resumed */
void ptt_resume_levels(void) HIDDEN;
bool ptt_leave_control(void) HIDDEN;   /* in the child: levels 0, on a page that is not the parent's */
void ptt_inherit_levels(void) HIDDEN;  /* in the child, once it is ready */
bool ptt_restart_handler(void) HIDDEN; /* handler.c: in the child of a fork. Return: whether the child is traced. */
void *ptt_user_site(void) HIDDEN;      /* user.c: see platform/upcalls.h */
extern pid_t ptt_pid HIDDEN;	       /* globals.c: the process that is traced */

#endif
