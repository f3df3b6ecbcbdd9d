/* SPDX-License-Identifier: MIT */
/* java_stack.h - the stack of a wait of Java, which the machine's agent knows and no walk would find. */
#ifndef PTT_JAVA_STACK_H
#define PTT_JAVA_STACK_H

#include "origin/call_site.h"
#include "origin/java.h"
#include "tracer.h"

/* The wait of the calling thread that is being reported, or NULL. */
extern __thread const struct ptt_java_wait *ptt_java_now INITIAL_EXEC HIDDEN;

/* ptt_java_stack - the number of its stack, from the agent's call on outwards. Return: 0 if it has none. */
uint32_t ptt_java_stack(const struct ptt_stack_wanted *wanted) HIDDEN;

#endif
