/* SPDX-License-Identifier: MIT */
/*
 * nptl_trace.h - the NPTL trace interface: what a trace handler implements, and how a program adds events of its own.
 *
 * A tracer inside the thread library, or preloaded in front of it, reports each event to one handler, a shared object
 * chosen by the environment:
 *
 *     PTHREAD_NPTL_TRACE=handler[:arg,arg,...][:verbosity][:tracing_arg]
 *
 * The handler is a path (it contains a '/'), or a name: libNAME.so among the handlers that came with the tracer, else
 * one that the dynamic linker finds. Empty fields keep their defaults.
 *
 * A handler exports nptl_trace_handler_getevent(), and, if it likes, nptl_trace_init() and nptl_trace_fini(). One
 * command builds it:
 *
 *     cc -shared -fPIC -o libmy_handler.so my_handler.c
 *
 * A program that wants its own events in the stream includes this header and calls nptl_trace_send_user_event(), or
 * nptl_trace_say() with a text. It links to nothing; where no tracer is loaded the call does nothing.
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
 * One event. It carries no time: a handler that wants one takes it when it is called, and the tracer sees to it that a
 * release is reported before, and an acquisition after, the thing itself.
 *
 * Of an NPTL event, param points to the parameter struct of <nptl_trace_events.h>, which starts with the object and the
 * call site (struct nptl_trace_param); param_size is at least that of those two. Of a program's event, param and
 * param_size are what the program gave, NULL and 0 allowed.
 */
struct nptl_trace_event {
	char source; /* enum nptl_trace_source */
	char domain; /* enum nptl_trace_domain; the program's choice in its own events */
	char event;  /* number within the domain */
	size_t param_size;
	void *param;
};

/*
 * What a handler exports. getevent and fini can run in any thread.
 *
 * nptl_trace_init(args)
 *     Once, before the first event, in the first thread. args is the list of the handler's arguments, ended by NULL,
 *     valid until fini returns. It may block and allocate. Also called in the child of a fork, with the same list.
 * nptl_trace_handler_getevent(event)
 *     At each event, in the thread that it happens in, in the middle of a POSIX thread function. It must not block
 *     (short of running out of room), must not be a cancellation point, should make no system call, and must keep
 *     errno. It runs in signal handlers, too: one may use semaphores. param may be freed when it returns.
 * nptl_trace_fini()
 *     At the end of the process. Late events of other threads may still arrive while and after it runs.
 *
 * The tracer does not trace what a handler does between the call of one of these and its return, and blocks signals while
 * nptl_trace_handler_getevent() runs. A handler that calls nothing the tracer hooks can do without: it exports
 *
 *     const int nptl_trace_handler_reentrant = 1;
 *
 * and is then called directly, also by signal handlers that interrupt it. It can export
 *
 *     void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event);
 *
 * as well, which then gets, in registers, NPTL events that have no fields, as most have, in place of getevent and under
 * the same rules. Either may be called with such an event.
 *
 * One that keeps anything by the address of a call site can export
 *
 *     void nptl_trace_handler_module(const struct nptl_trace_module *module);
 *
 * It is called before the first event whose call lies in a module that was not there before, or was loaded anew; in the
 * thread of that event, under the same rules as getevent, but may make system calls unless the program gave them up. With
 * NULL it means that a module is about to be closed, or has been: what lay at an address may be something else from now on.
 *
 * A handler that cannot work says why on standard error in its init and clears __nptl_trace_enabled; the program then
 * runs untraced.
 */
struct nptl_trace_module {
	const void *start;
	const void *end;
	uintptr_t bias;	  /* what to add to addresses of its own symbol table */
	const char *path; /* as the dynamic linker has it: empty for the program itself */
	const void *build_id;
	size_t build_id_size; /* 0 if it has none */
};

void nptl_trace_init(char **args);
void nptl_trace_handler_getevent(struct nptl_trace_event event);
void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event);
void nptl_trace_fini(void);
void nptl_trace_handler_module(const struct nptl_trace_module *module);

/*
 * State of the tracer, for code that generates events: whether there is a handler, and the highest detail level of any
 * domain now. Both may change at any time.
 */
extern int __nptl_trace_enabled;
extern int __nptl_trace_detail_level;

/*
 * nptl_trace_send_user_event - add an event of the program to the trace
 *
 * Safe in signal handlers, keeps errno, never blocks but where the trace buffers are full and the user asked not to lose
 * events. The data is copied before it returns.
 */
extern void nptl_trace_send_user_event(struct nptl_trace_event event)
#ifndef NPTL_TRACE_IMPLEMENTATION
	__attribute__((weak))
#endif
	;

/*
 * nptl_trace_send_posix_event - add a user event of <trace.h> to the trace: for libposixtrace
 *
 * As nptl_trace_send_user_event(). @type is the event type's id in that process, @site where the program called.
 */
extern void nptl_trace_send_posix_event(unsigned int type, const void *data, size_t size, void *site)
#ifndef NPTL_TRACE_IMPLEMENTATION
	__attribute__((weak))
#endif
	;

#ifndef NPTL_TRACE_IMPLEMENTATION
/* The weak reference is null where no tracer is loaded; the call then does nothing. */
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
