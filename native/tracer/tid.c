/* SPDX-License-Identifier: MIT */
/* tid.c - the kernel's id of the calling thread. */
#include "platform/confined.h"
#include "tracer.h"

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
