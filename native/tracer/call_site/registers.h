/* SPDX-License-Identifier: MIT */
/* registers.h - the way up the stack with all registers that calls preserve, for frames that a rule is too small for. */
/*
 * A walk keeps stack and frame pointer, which nearly all code counts from. Where a frame counts from another register, as
 * hand-written code may, the value is found by another walk that begins with the registers of now and keeps all of them. It
 * goes on from where it was at the next such frame, so that a stack costs it no more than once.
 */
#ifndef PTT_REGISTERS_H
#define PTT_REGISTERS_H

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "reach.h"
#include "unwind.h"

/* Of the frame that a signal handler returns to: where the registers lie, from the stack pointer on; some by their place there. */
#if defined(__aarch64__)
#define PTT_SIGNAL_REGISTERS (sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs))
#define PTT_SIGNAL_FP 29u
#define PTT_SIGNAL_SP 31u
#define PTT_SIGNAL_PC 32u
_Static_assert(offsetof(mcontext_t, pc) == offsetof(mcontext_t, regs) + PTT_SIGNAL_PC * 8, "registers in a row");
#else
#define PTT_SIGNAL_REGISTERS offsetof(ucontext_t, uc_mcontext.gregs)
#define PTT_SIGNAL_FP ((unsigned int)REG_RBP)
#define PTT_SIGNAL_SP ((unsigned int)REG_RSP)
#define PTT_SIGNAL_PC ((unsigned int)REG_RIP)
#endif

struct ptt_registers {
	uintptr_t value[PTT_REG_COUNT];
	uint32_t known; /* a bit each; none: the walk has not begun */
};

/*
 * ptt_registers_leave - go up to the frame that returns to @pc, with its stack pointer at @sp, and on to its caller's
 *
 * Reads the unwind tables anew for each frame: slow. Safe in signal handlers, takes no lock.
 * Return: false if the way does not lead there, or not further.
 */
bool ptt_registers_leave(struct ptt_registers *all, struct ptt_reach *reach, uintptr_t pc, uintptr_t sp)
	__attribute__((visibility("hidden"), cold, noinline));

#endif
