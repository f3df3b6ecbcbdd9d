/* SPDX-License-Identifier: MIT */
/* tracer.h - shared by all hooks: levels, sending events to the handler, the real functions. */
/*
 * A hook is transparent: it returns the result of the real function, keeps errno, and adds no cancellation point and
 * no system call. Hooks know nothing of storage: they only call the handler's entry point.
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
/* For functions that ThreadSanitizer calls before it is ready, in a tracer built with it. */
#define UNWATCHED __attribute__((no_sanitize_thread))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* ------------------------------------------------------------ levels */

/* On its own page: if levels may be changed from outside, a shared page is mapped over it. */
union ptt_control_page {
	struct ptt_control control;
	char page[PTT_PAGE_MAX];
};
extern union ptt_control_page ptt_control HIDDEN;

/* ptt_level - present detail level of a domain; 0 while there is no handler. */
static inline uint32_t ptt_level(enum nptl_trace_domain domain)
{
#ifdef ENABLE_NPTL_TRACE
	/* relaxed: no other data depends on it, and a change is seen soon */
	return __atomic_load_n(&ptt_control.control.level[domain], __ATOMIC_RELAXED);
#else
	(void)domain;
	return 0;
#endif
}

/* The single test before each event. */
#define must_trace(domain, event) unlikely(ptt_level(NPTL_DOMAIN_##domain) >= NPTL_LEVEL_##event)

/* ------------------------------------------------------------ events */

typedef void ptt_getevent_t(struct nptl_trace_event event);
typedef void ptt_getplain_t(void *object, void *site, unsigned int domain, unsigned int event);

/*
 * The functions that receive events. getevent is the handler's function, or a function before it: guard (handler.c),
 * filter, shared storage. Or it ignores events. getplain receives events without fields; it is the handler's own
 * function if no function stands before it.
 */
struct ptt_receiver {
	ptt_getevent_t *getevent;
	ptt_getplain_t *getplain;
};
extern struct ptt_receiver ptt_receiver HIDDEN;

/*
 * ptt_receive - send events to @getevent from now on, and events without fields to @getplain, or, if that is NULL, to
 * @getevent.
 */
void ptt_receive(ptt_getevent_t *getevent, ptt_getplain_t *getplain) HIDDEN;
void ptt_ignore_event(struct nptl_trace_event event) HIDDEN; /* while there is no handler */

/*
 * ptt_filter - pass only some types of events to a handler
 * @spec: "mutex=3f,cond=18": domains, each with a hexadecimal mask of event numbers
 * @next: the handler's function
 * Return: the function to call instead of @next.
 */
ptt_getevent_t *ptt_filter(const char *spec, ptt_getevent_t *next) HIDDEN;

/*
 * struct nptl_trace_event, as words. If the compiler fills the struct byte by byte and then copies it to the stack,
 * the copy stalls on the stores. That costs more than the time stamp, so the tracer fills whole words.
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

/* The handler calls no traced function of the C library. */
extern bool ptt_handler_reentrant HIDDEN;

/*
 * The number of locks that the calling thread holds, by its events. The number is wrong if another thread releases a
 * lock, or if levels change. So it decides only about events that are optional.
 */
extern __thread int32_t ptt_held INITIAL_EXEC HIDDEN;

/* No code unless domain and event are constants, as they are for acquisitions and releases. */
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

/* The calling convention passes both structs in memory, so the cast of the function is right. */
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

/* Functions of the handler, or NULL. See platform/upcalls.h. */
extern void (*ptt_before_lock_is_tried)(const void *object, void *site) HIDDEN;
extern void (*ptt_before_exit)(void) HIDDEN;
extern void (*ptt_before_rseq_is_called)(void) HIDDEN;

/*
 * ptt_before_rseq - the program is about to register its own area for restartable sequences (rseq(2)), or to
 * unregister the C library's.
 */
static inline void ptt_before_rseq(void)
{
	/* relaxed: set when the handler begins */
	void (*before)(void) = __atomic_load_n(&ptt_before_rseq_is_called, __ATOMIC_RELAXED);

	if (before)
		before();
}

/*
 * ptt_before_lock - a lock is about to be tried: the handler prepares the event of the acquisition, such as its
 * stack, before the thread holds the lock. Call it from the hook that sends the event, with the same @site.
 */
static inline __attribute__((always_inline)) void ptt_before_lock(const void *object, void *site)
{
	/* relaxed: set once, to a function that is never unloaded */
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
 * The same, if the level of the domain is high enough for the event. The names are pasted here, because system
 * headers define some of them as macros.
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

/* Two events that most routines have, with the same fields in all domains: an error, and the _OUT event. */
#define REPORT_ERROR(domain, object, routine_, result_, site)                                    \
	REPORT_WITH(domain, domain##_ERROR, mutex_error, object, site, .routine = (routine_), .result = (result_))
#define REPORT_RESULT(domain, name, object, result_, site) \
	REPORT_WITH(domain, name, mutex_lock_out, object, site, .result = (result_))

/* The return address of a hook: the program's call. */
#define CALL_SITE __builtin_extract_return_addr(__builtin_return_address(0))

static inline struct nptl_trace_ptr48 ptt_ptr48(const void *pointer)
{
	uint64_t v = (uint64_t)(uintptr_t)pointer;

	return (struct nptl_trace_ptr48){(uint16_t)v, (uint16_t)(v >> 16), (uint16_t)(v >> 32)};
}

static inline uint64_t ptt_ns(const struct timespec *t)
{
	/* declared nonnull, but some programs pass NULL, and some routines accept it */
	__asm__("" : "+r"(t));
	return t ? (uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_nsec : 0;
}

/* ptt_now_ns - a clock for durations of waits. Uses the vDSO: no system call. */
static inline uint64_t ptt_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ptt_ns(&now);
}

/*
 * Around code that calls cancellation points of the C library: begin and end of handlers, writing of files. The
 * hooked functions are no cancellation points, so a request for cancellation stays pending meanwhile. Safe in signal
 * handlers.
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
 * Not 0: the thread is in a lock function of another library (locks/). Waits inside are a part of that call and are
 * not reported. Locks that the library takes and releases inside are reported. A count of nested calls.
 */
extern __thread uint32_t ptt_in_lock INITIAL_EXEC HIDDEN;
void ptt_forget_lock_types(void) HIDDEN; /* in the child of a fork */

/* A text as the variable last field of an event (name or data), padded with zeros to pieces of 14 bytes. */
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

/* Filled before main(), or by the first call of any of these functions. */
extern struct ptt_real ptt_real HIDDEN;

void ptt_resolve(void) HIDDEN;

/* ptt_module_base - resolve.c: start of the module at an address, or NULL. Takes the dynamic linker's lock. */
const void *ptt_module_base(const void *address) HIDDEN;

/*
 * The older of two functions with one name: pthread_kill (changed in glibc 2.34), posix_spawn (2.15), conditions
 * (2.3.2). Filled like ptt_real. The same as in ptt_real if there is only one function. That is also so if another
 * library stands before the C library, since it has one function for all versions.
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
 * VERSION(hook, name, "@@GLIBC_2.34"): export a hook under a name with two versions in glibc. VERSION_X86: for names
 * with two versions only on x86-64. A program built with a sanitizer requests no version, because the sanitizer's
 * functions have none. Then the dynamic linker takes the tracer's oldest version.
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

/* ALIAS(__fork, fork): export a hook of this file under a second name that the C library has. */
#define ALIAS(name, hook) __asm__(".globl " #name "\n.set " #name ", " #hook)

/* HOOK_AS(int, hook, (int a), body(a, CALL_SITE)): a hook that VERSION exports under the name of the real function. */
#define HOOK_AS(type, hook, params, call) \
	EXPORT type hook params;          \
	EXPORT type hook params           \
	{                                 \
		return call;              \
	}

/* ------------------------------------------------------------ parts */

/* Not 0: the program has given up system calls (confine.c). Handlers read it, too. */
extern int __nptl_trace_confined __attribute__((visibility("default")));

void ptt_suspend(void) HIDDEN; /* handler.c: stop tracing in this process, and do not read the clock */
void ptt_resume(void) HIDDEN;  /* undo ptt_suspend(), in the same thread */
void ptt_report_own_priority(void) HIDDEN;     /* sched.c: unless the policy is SCHED_OTHER */
void ptt_start_threads(void) HIDDEN;	       /* thread.c: in the first thread */
void ptt_start_threads_attached(void) HIDDEN;  /* thread.c: in an attached process, with any number of threads */
void ptt_set_levels(const char *verbosity, const char *tracing_arg) HIDDEN; /* levels.c */
int ptt_domain(const char *name, size_t length) HIDDEN; /* the number of a domain; 0: unknown name */
void ptt_map_control(const char *directory) HIDDEN;
#if PTT_UNWINDS
/*
 * call_site.c: the kind of lock that makes a futex call, by the functions on the stack: an index in
 * catalog/futexes.toml, or 0. Safe in signal handlers, takes no lock.
 */
uint16_t ptt_site_futex(const void *site) HIDDEN;
void *ptt_find_outer_site(void *site) HIDDEN;	     /* call_site.c: see outer_site() in platform/upcalls.h */
/*
 * call_site.c: does the call that led to @site come from a signal handler? False if the stack shows none, or cannot be
 * walked to the handler. Safe in signal handlers, takes no lock.
 */
bool ptt_is_in_signal_handler(const void *site) HIDDEN;
/*
 * ptt_python_place - a number for the place in the program of Python that called, the same in each run of the same files; 0: none
 *
 * It follows from the innermost function of Python outside of threading.py: file name, function, first line and instruction.
 * nptltrace/confirm/python_places.py finds the same number in a trace. Safe in signal handlers, takes no lock.
 */
uint32_t ptt_python_place(void *site) HIDDEN;
/*
 * python.c: ptt_python_let_run - let other threads of the interpreter run, if the calling thread keeps them from it. Only for a
 * wait in a call that may wait: other threads run functions of Python meanwhile. Return: for ptt_python_go_on(), which waits until
 * the thread may run again; NULL: nothing to do.
 */
void *ptt_python_let_run(void) HIDDEN;
void ptt_python_go_on(void *state) HIDDEN;
struct ptt_stack_wanted;
EXPORT uint32_t __nptl_trace_stack(void *site, const struct ptt_stack_wanted *wanted); /* call_site.c: see stack() there */
void ptt_reach_begin(size_t room) HIDDEN;	     /* reach.c: in a new thread. @room: bytes of its stack */
void ptt_python_start(void) HIDDEN;		     /* python.c: find the interpreter */
/*
 * python.c: the name of the threading.Thread that the calling thread is about to create, in UTF-8 without a final
 * zero. Calls the interpreter, which the thread may use inside Thread.start(). Return: the number of bytes; 0 for
 * other threads, and from 3.14 on, where a thread names itself.
 */
size_t ptt_python_thread_name(char *name, size_t room) HIDDEN;
void ptt_begin_closing(void) HIDDEN;		     /* modules.c: before dlclose(), and after it */
void ptt_end_closing(const void *library) HIDDEN;
void ptt_closing_in_child(void) HIDDEN;		     /* modules.c: in the child of a fork: dlclose() in other threads does not continue */
void ptt_modules_anew(void) HIDDEN;		     /* modules.c: report all modules again, to another recording */
#else
/* On other processors the tracer has no stacks. */
static inline uint16_t ptt_site_futex(const void *site) { (void)site; return 0; }
static inline void ptt_reach_begin(size_t room) { (void)room; }
static inline void ptt_python_start(void) { }
static inline size_t ptt_python_thread_name(char *name, size_t room) { (void)name; (void)room; return 0; }
static inline void ptt_begin_closing(void) { }
static inline void ptt_end_closing(const void *library) { (void)library; }
static inline void ptt_closing_in_child(void) { }
static inline void ptt_modules_anew(void) { }
#endif
struct nptl_trace_module;
/* nptl_trace_handler_module() of the handler, or NULL */
extern void (*ptt_handler_module)(const struct nptl_trace_module *module) HIDDEN;
void ptt_drop_control(void) HIDDEN;
void ptt_keep_levels(void) HIDDEN;     /* in the parent, just before a fork */
void ptt_clear_levels(void) HIDDEN;    /* for ever */
void ptt_suspend_levels(void) HIDDEN;  /* the levels are 0 until ptt_resume_levels() */
void ptt_resume_levels(void) HIDDEN;
bool ptt_leave_control(void) HIDDEN;   /* in the child: levels 0, on a private page */
void ptt_inherit_levels(void) HIDDEN;  /* in the child, when it is ready */
bool ptt_restart_handler(void) HIDDEN; /* handler.c: in the child of a fork. Return: is the child traced? */
void *ptt_user_site(void) HIDDEN;      /* user.c: see platform/upcalls.h */
extern pid_t ptt_pid HIDDEN;	       /* globals.c: the traced process */

#endif
