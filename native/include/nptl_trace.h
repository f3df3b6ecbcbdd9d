/* SPDX-License-Identifier: MIT */
/*
 * nptl_trace.h - the NPTL trace interface: the functions of a trace handler, and events that a program adds itself.
 *
 * A tracer inside the thread library, or preloaded in front of it, reports each event to one handler, a shared object
 * chosen by the environment:
 *
 *     PTHREAD_NPTL_TRACE=handler[:arg,arg,...][:verbosity][:tracing_arg]
 *
 * The handler is a path (it contains a '/'), or a name. The tracer searches a name as libNAME.so among its own handlers,
 * and then asks the dynamic linker. Empty fields keep their defaults.
 *
 * A handler exports nptl_trace_handler_getevent(). It may also export nptl_trace_init() and nptl_trace_fini(). This
 * command builds it:
 *
 *     cc -shared -fPIC -o libmy_handler.so my_handler.c
 *
 * To add its own events, a program includes this header and calls nptl_trace_send_user_event(), or nptl_trace_say() with
 * a text. The program links to nothing. Without a tracer, the call does nothing.
 */
#ifndef NPTL_TRACE_H
#define NPTL_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The thread that made the event. */
enum nptl_trace_source {
	NPTL_TRACE_SOURCE_NPTL = 0,
	NPTL_TRACE_SOURCE_HANDLER = 1,
	NPTL_TRACE_SOURCE_PROGRAM = 2
};

/*
 * An event. It carries no time: a handler that needs the time reads a clock in the call. The tracer reports a release
 * before the lock is free, and an acquisition after the thread has the lock.
 *
 * For an NPTL event, param points to the parameter struct of <nptl_trace_events.h>. This struct starts with the object
 * and the call site (struct nptl_trace_param), and param_size is at least the size of these two. For an event of the
 * program, param and param_size are the arguments of the program; NULL and 0 are allowed.
 */
struct nptl_trace_event {
	char source; /* enum nptl_trace_source */
	char domain; /* enum nptl_trace_domain; the program's choice in its own events */
	char event;  /* number within the domain */
	size_t param_size;
	void *param;
};

/*
 * The exports of a handler. getevent and fini can run in any thread.
 *
 * nptl_trace_init(args)
 *     The tracer calls it once, before the first event, in the first thread. args is the list of the handler's arguments,
 *     ended by NULL, and valid until fini returns. init may block and allocate. The tracer also calls it in the child of
 *     a fork, with the same list.
 * nptl_trace_handler_getevent(event)
 *     The tracer calls it at each event, in the thread of the event, in the middle of a POSIX thread function. It must
 *     not block (except if it runs out of room), must not be a cancellation point, should make no system call, and must
 *     keep errno. It also runs in signal handlers, which may post semaphores. The tracer may free param after it returns.
 * nptl_trace_fini()
 *     The tracer calls it at the end of the process. Late events of other threads may still arrive during and after it.
 *
 * The tracer does not trace the work of a handler inside these functions. It blocks signals while
 * nptl_trace_handler_getevent() runs. A handler that calls no hooked function needs neither. It exports
 *
 *     const int nptl_trace_handler_reentrant = 1;
 *
 * and the tracer then calls it directly, also from signal handlers that interrupt it. It can also export
 *
 *     void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event);
 *
 * Most NPTL events have no fields. The tracer passes such an event to getplain in registers, in place of getevent and
 * under the same rules. But it may call either function with such an event.
 *
 * A handler that keeps data by the address of a call site can export
 *
 *     void nptl_trace_handler_module(const struct nptl_trace_module *module);
 *
 * The tracer calls it before the first event from a module that is new, or that was loaded again. The call is in the
 * thread of the event, under the rules of getevent. But it may make system calls, unless the program gave them up. A call
 * with NULL means that a module is about to be closed, or has been closed: other code may lie at its addresses from now on.
 *
 * If a handler cannot work, its init prints the reason to standard error and clears __nptl_trace_enabled. The program
 * then runs untraced.
 */
struct nptl_trace_module {
	const void *start;
	const void *end;
	uintptr_t bias;	  /* to add to the addresses of the module's symbol table */
	const char *path; /* from the dynamic linker: empty for the program itself */
	const void *build_id;
	size_t build_id_size; /* 0 without a build-id */
};

void nptl_trace_init(char **args);
void nptl_trace_handler_getevent(struct nptl_trace_event event);
void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event);
void nptl_trace_fini(void);
void nptl_trace_handler_module(const struct nptl_trace_module *module);

/*
 * State of the tracer, for code that generates events: whether there is a handler, and the present highest detail level
 * of any domain. Both may change at any time.
 */
extern int __nptl_trace_enabled;
extern int __nptl_trace_detail_level;

/*
 * nptl_trace_send_user_event - add an event of the program to the trace
 *
 * Safe in signal handlers, and keeps errno. It blocks only if the trace buffers are full and the user asked not to lose
 * events. It copies the data before it returns.
 */
extern void nptl_trace_send_user_event(struct nptl_trace_event event)
#ifndef NPTL_TRACE_IMPLEMENTATION
	__attribute__((weak))
#endif
	;

/*
 * nptl_trace_send_posix_event - add a user event of <trace.h> to the trace: for libposixtrace
 *
 * As nptl_trace_send_user_event(). @type is the event type's id in this process, @site the place of the program's call.
 */
extern void nptl_trace_send_posix_event(unsigned int type, const void *data, size_t size, void *site)
#ifndef NPTL_TRACE_IMPLEMENTATION
	__attribute__((weak))
#endif
	;

#ifndef NPTL_TRACE_IMPLEMENTATION
/* The weak reference is null without a tracer; the call then does nothing. */
#define nptl_trace_send_user_event(...) \
	(nptl_trace_send_user_event ? nptl_trace_send_user_event(__VA_ARGS__) : (void)0)

/* nptl_trace_say - add a line of text to the trace, as event 0 of domain 0 of the program; the call site is the caller. */
static inline __attribute__((__always_inline__)) void nptl_trace_say(const char *text)
{
	struct nptl_trace_event event;

	event.source = NPTL_TRACE_SOURCE_PROGRAM;
	event.domain = 0;
	event.event = 0;
	event.param_size = __builtin_strlen(text);
	event.param = (void *)text;
	nptl_trace_send_user_event(event);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
