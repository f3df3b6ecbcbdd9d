/* SPDX-License-Identifier: MIT */
/* registers.h - a walk up the stack with all preserved registers, for frames that a rule cannot express. */
/*
 * The usual walk keeps only stack and frame pointer: nearly all code computes its CFA from these. Hand-written code
 * may compute it from another register. Then a second walk begins with the present registers, and keeps all of them.
 * At the next such frame it continues where it stopped, so it walks a stack only once.
 */
#ifndef PTT_REGISTERS_H
#define PTT_REGISTERS_H

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "reach.h"
#include "unwind.h"

/* The frame of the signal trampoline: offset of the registers from the stack pointer, and indexes of some registers. */
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
	uint32_t known; /* a bit for each register; 0: the walk has not begun */
};

/*
 * ptt_registers_leave - walk to the frame with program counter @pc and stack pointer @sp, and step to its caller
 *
 * Slow: reads the unwind tables again for each frame. Safe in signal handlers, takes no lock.
 * Return: false if the walk does not reach the frame, or cannot leave it.
 */
bool ptt_registers_leave(struct ptt_registers *all, struct ptt_reach *reach, uintptr_t pc, uintptr_t sp)
	__attribute__((visibility("hidden"), cold, noinline));

#endif
