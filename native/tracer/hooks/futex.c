/* SPDX-License-Identifier: MIT */
/* futex.c - syscall(): futex calls, through which the locks of Rust and C++20 go, and calls that make processes. */
/*
 * syscall() passes its arguments on to numbers that return twice, or on another stack, so nothing of ours may be left on
 * the stack while the real one runs: the entry point is written in assembly, looks at the number, and jumps. Only what
 * is traced goes to C: futex calls, fork and exec (process.c), and clone where it is a fork.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/missing.h"
#include "process.h"
#include "wait.h"

/* The entry point jumps through the first word of ptt_real. */
_Static_assert(offsetof(struct ptt_real, syscall) == 0, "syscall comes first in hooks.def");

long ptt_syscall_futex(long number, long word, long op, long value, long timeout, long word2, long value3) HIDDEN;

#if defined(__x86_64__)
_Static_assert(SYS_futex == 202 && SYS_clone == 56 && SYS_execve == 59 && SYS_execveat == 322 && SYS_clone3 == 435 &&
		       SYS_prctl == 157 && SYS_seccomp == 317,
	       "numbers below");
__asm__(".text\n"
	"	.globl	syscall\n"
	"	.type	syscall, @function\n"
	"	.p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq	$202, %rdi\n" /* futex */
	"	je	ptt_syscall_futex\n"
	"	leaq	-56(%rdi), %rax\n" /* clone, fork, vfork, execve */
	"	cmpq	$3, %rax\n"
	"	jbe	1f\n"
	"	cmpq	$322, %rdi\n" /* execveat */
	"	je	1f\n"
	"	cmpq	$435, %rdi\n" /* clone3 */
	"	je	1f\n"
	"	cmpq	$157, %rdi\n" /* prctl */
	"	je	1f\n"
	"	cmpq	$317, %rdi\n" /* seccomp */
	"	je	1f\n"
	"	jmp	*ptt_real(%rip)\n"
	"1:	pushq	%rdi\n"
	"	pushq	%rsi\n"
	"	pushq	%rdx\n"
	"	pushq	%rcx\n"
	"	pushq	%r8\n"
	"	pushq	%r9\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 56\n"
	"	call	ptt_syscall_is_ours\n"
	"	addq	$8, %rsp\n"
	"	popq	%r9\n"
	"	popq	%r8\n"
	"	popq	%rcx\n"
	"	popq	%rdx\n"
	"	popq	%rsi\n"
	"	popq	%rdi\n"
	"	.cfi_adjust_cfa_offset -56\n"
	"	testl	%eax, %eax\n"
	"	jne	ptt_syscall_process\n"
	"	jmp	*ptt_real(%rip)\n"
	"	.cfi_endproc\n"
	"	.size	syscall, . - syscall\n");
#elif defined(__aarch64__)
_Static_assert(SYS_futex == 98 && SYS_clone == 220 && SYS_execve == 221 && SYS_execveat == 281 && SYS_clone3 == 435 &&
		       SYS_prctl == 167 && SYS_seccomp == 277,
	       "numbers below");
__asm__(".text\n"
	"	.globl	syscall\n"
	"	.type	syscall, %function\n"
	"	.p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n" /* bti c */
	"	cmp	x0, #98\n" /* futex */
	"	b.eq	ptt_syscall_futex\n"
	"	cmp	x0, #220\n" /* clone */
	"	b.eq	1f\n"
	"	cmp	x0, #221\n" /* execve */
	"	b.eq	1f\n"
	"	cmp	x0, #281\n" /* execveat */
	"	b.eq	1f\n"
	"	cmp	x0, #435\n" /* clone3 */
	"	b.eq	1f\n"
	"	cmp	x0, #167\n" /* prctl */
	"	b.eq	1f\n"
	"	cmp	x0, #277\n" /* seccomp */
	"	b.eq	1f\n"
	"2:	adrp	x16, ptt_real\n"
	"	ldr	x16, [x16, #:lo12:ptt_real]\n"
	"	br	x16\n"
	"1:	stp	x29, x30, [sp, #-80]!\n"
	"	.cfi_adjust_cfa_offset 80\n"
	"	.cfi_offset 30, -72\n"
	"	stp	x0, x1, [sp, #16]\n"
	"	stp	x2, x3, [sp, #32]\n"
	"	stp	x4, x5, [sp, #48]\n"
	"	str	x6, [sp, #64]\n"
	"	bl	ptt_syscall_is_ours\n"
	"	mov	w17, w0\n"
	"	ldp	x0, x1, [sp, #16]\n"
	"	ldp	x2, x3, [sp, #32]\n"
	"	ldp	x4, x5, [sp, #48]\n"
	"	ldr	x6, [sp, #64]\n"
	"	ldp	x29, x30, [sp], #80\n"
	"	.cfi_adjust_cfa_offset -80\n"
	"	.cfi_restore 30\n"
	"	cbnz	w17, ptt_syscall_process\n"
	"	b	2b\n"
	"	.cfi_endproc\n"
	"	.size	syscall, . - syscall\n");
#else
#error "this processor needs its syscall() here"
#endif

/* ------------------------------------------------------------ futex */

/* A pointer below the first page is left to the kernel, which says EFAULT. */
static int64_t timeout_of(long timeout)
{
	return timeout >= 4096 ? (int64_t)ptt_ns((const struct timespec *)timeout) : -1;
}

static bool waits(int command)
{
	switch (command) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case 13: /* FUTEX_LOCK_PI2 */
		return true;
	}
	return false;
}

static bool wakes(int command)
{
	switch (command) {
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_WAKE_OP:
	case FUTEX_UNLOCK_PI:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
		return true;
	}
	return false;
}

/* errno is the kernel's answer where there is one, and what it was before otherwise, as syscall() has it. */
long ptt_syscall_futex(long number, long word, long op, long value, long timeout, long word2, long value3)
{
	void *site = CALL_SITE, *object = (void *)word;
	int command = (int)op & FUTEX_CMD_MASK;
	long result;

	if (!ptt_level(NPTL_DOMAIN_FUTEX))
		return ptt_real.syscall(number, word, op, value, timeout, word2, value3);
	if (waits(command)) {
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_FUTEX, NPTL_EV_FUTEX_WAIT_OUT, object, site);

		EMIT_WITH(FUTEX, FUTEX_WAIT_IN, futex_wait_in, object, site, .op = (uint16_t)op,
			  .expected = (uint32_t)value, .timeout_ns = timeout_of(timeout));
		result = ptt_real.syscall(number, word, op, value, timeout, word2, value3);
		wait.result = result < 0 ? errno : 0;
		return result;
	}
	REPORT_WITH(FUTEX, FUTEX_CALL_IN, futex_call_in, object, site, .op = (uint16_t)op,
		    .value = (uint32_t)value, .value2 = (uint64_t)timeout);
	/* before the wake-up that it causes */
	if (wakes(command))
		REPORT_WITH(FUTEX, FUTEX_WAKE, futex_wake, object, site, .op = (uint16_t)op,
			    .count = command == FUTEX_UNLOCK_PI ? 1 : (int32_t)value);
	result = ptt_real.syscall(number, word, op, value, timeout, word2, value3);
	REPORT_WITH(FUTEX, FUTEX_CALL_OUT, futex_call_out, object, site, .result = result < 0 ? -errno : result);
	return result;
}
