/* SPDX-License-Identifier: MIT */
/* java_stack.h - the Java stack of a wait. Only the agent in the machine knows it; a walk would not find it. */
#ifndef PTT_JAVA_STACK_H
#define PTT_JAVA_STACK_H

#include "origin/call_site.h"
#include "origin/java.h"
#include "tracer.h"

/* The wait of the calling thread that is being reported, or NULL. */
extern __thread const struct ptt_java_wait *ptt_java_now INITIAL_EXEC HIDDEN;

/* ptt_java_stack - the number of the wait's stack, from the agent's call outwards. Return: 0 if the wait has no stack. */
uint32_t ptt_java_stack(const struct ptt_stack_wanted *wanted) HIDDEN;

#endif
