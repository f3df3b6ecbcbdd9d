/* SPDX-License-Identifier: MIT */
/* globals.c - data for all parts of the tracer: is it on, the process and thread ids, the receivers of events and modules. */
#include "platform/confined.h"
#include "tracer.h"

EXPORT int __nptl_trace_enabled;
EXPORT int __nptl_trace_confined;

pid_t ptt_pid;
__thread int32_t ptt_held;
bool ptt_handler_reentrant;
void (*ptt_handler_module)(const struct nptl_trace_module *module);
void (*ptt_before_lock_is_tried)(const void *object, void *site);
void (*ptt_before_rseq_is_called)(void);
void (*ptt_before_exit)(void);

void ptt_ignore_event(struct nptl_trace_event event)
{
	(void)event;
}

static void plain_as_event(void *object, void *site, unsigned int domain, unsigned int event)
{
	struct nptl_trace_param param = {.object = object, .site = site};

	ptt_call_getevent((char)domain, (char)event, &param, sizeof(param));
}

struct ptt_receiver ptt_receiver = {.getevent = ptt_ignore_event, .getplain = plain_as_event};

void ptt_receive(ptt_getevent_t *getevent, ptt_getplain_t *getplain)
{
	/* release: a thread that calls the new function sees its data, such as the function behind it */
	__atomic_store_n(&ptt_receiver.getevent, getevent, __ATOMIC_RELEASE);
	__atomic_store_n(&ptt_receiver.getplain, getplain ? getplain : plain_as_event, __ATOMIC_RELEASE);
}

static __thread uint32_t tid INITIAL_EXEC;

uint32_t ptt_tid(void)
{
	if (!tid)
		tid = ptt_own_tid();
	return tid;
}

void ptt_forget_tid(void)
{
	tid = 0;
}
