/* SPDX-License-Identifier: MIT */
/* syscall.c - syscall(): passes the traced system calls (futexes, processes, scheduling) on to their files. */
/*
 * Some system calls return twice, or on another stack. So the tracer must leave nothing on the stack while the real
 * function runs. The entry point is written in assembly: it checks the number, and jumps. Only traced calls reach C.
 */
#include "syscall_numbers.h"

/* The entry point jumps through the first word of ptt_real. */
_Static_assert(offsetof(struct ptt_real, syscall) == 0, "syscall comes first in hooks.def");

/* The numbers for ptt_syscall_is_ours(). SYS_futex is not among them: the entry point checks it itself. */
const unsigned char ptt_syscall_looks[512] HIDDEN = {
	[SYS_prctl] = 1, [SYS_seccomp] = 1, [SYS_clone] = 1, [SYS_clone3] = 1, [SYS_execve] = 1, [SYS_execveat] = 1,
	[SYS_sched_setscheduler] = 1, [SYS_sched_setparam] = 1, [SYS_sched_setattr] = 1,
	[SYS_futex_waitv] = 1, [SYS_futex_wake] = 1, [SYS_futex_wait] = 1, [SYS_futex_requeue] = 1,
	[SYS_rseq] = 1,
#if defined(__x86_64__)
	[SYS_unshare] = 1, [SYS_setns] = 1,
#endif
#ifdef SYS_fork
	[SYS_fork] = 1,
#endif
};

/* Called from the entry point. Return: false if the entry point shall jump to the real function. */
int ptt_syscall_is_ours(long number, long a, long b) HIDDEN;
int ptt_syscall_is_ours(long number, long a, long b)
{
#if defined(__x86_64__)
	if (number == SYS_unshare || number == SYS_setns)
		return true;
#endif
	if (!__nptl_trace_enabled)
		return false;
	switch (number) {
	case SYS_prctl:
		return ptt_prctl_is_ours(a);
	case SYS_rseq:
		ptt_before_rseq();
		return false;
	case SYS_futex_waitv:
	case SYS_futex_wake:
	case SYS_futex_wait:
	case SYS_futex_requeue:
		return ptt_level(NPTL_DOMAIN_FUTEX) != 0 && !ptt_in_lock;
	case SYS_seccomp:
	case SYS_execve:
	case SYS_execveat:
	case SYS_sched_setscheduler:
	case SYS_sched_setparam:
	case SYS_sched_setattr:
		return true;
	}
	return ptt_syscall_forks(number, a, b);
}

/* The entry point jumps here, with all arguments. */
long ptt_syscall_traced(long number, long a, long b, long c, long d, long e, long f) HIDDEN;
long ptt_syscall_traced(long number, long a, long b, long c, long d, long e, long f)
{
	const long arg[] = {a, b, c, d, e, f};
	void *site = CALL_SITE;

	switch (number) {
	case SYS_prctl:
	case SYS_seccomp:
		return ptt_syscall_confine(number, arg, site);
	case SYS_execve:
	case SYS_execveat:
		return ptt_syscall_exec(number, arg, site);
#if defined(__x86_64__)
	case SYS_unshare:
	case SYS_setns:
		return ptt_syscall_alone(number, arg);
#endif
	case SYS_sched_setscheduler:
	case SYS_sched_setparam:
	case SYS_sched_setattr:
		return ptt_syscall_sched(number, arg, site);
	case SYS_futex_waitv:
	case SYS_futex_wake:
	case SYS_futex_wait:
	case SYS_futex_requeue:
		return ptt_syscall_futex2(number, arg, site);
	}
	return ptt_syscall_fork(number, arg, site);
}

#if defined(__x86_64__)
_Static_assert(SYS_futex == 202, "number below");
__asm__(".text\n"
	"	.globl	syscall\n"
	"	.type	syscall, @function\n"
	"	.p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq	$202, %rdi\n" /* futex */
	"	je	ptt_syscall_futex\n"
	"	cmpq	$511, %rdi\n"
	"	ja	2f\n"
	"	leaq	ptt_syscall_looks(%rip), %rax\n"
	"	cmpb	$0, (%rax,%rdi)\n"
	"	jne	1f\n"
	"2:	jmp	*ptt_real(%rip)\n"
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
	"	jne	ptt_syscall_traced\n"
	"	jmp	*ptt_real(%rip)\n"
	"	.cfi_endproc\n"
	"	.size	syscall, . - syscall\n");
#elif defined(__aarch64__)
_Static_assert(SYS_futex == 98, "number below");
__asm__(".text\n"
	"	.globl	syscall\n"
	"	.type	syscall, %function\n"
	"	.p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n" /* bti c */
	"	cmp	x0, #98\n" /* futex */
	"	b.eq	ptt_syscall_futex\n"
	"	cmp	x0, #511\n"
	"	b.hi	2f\n"
	"	adrp	x16, ptt_syscall_looks\n"
	"	add	x16, x16, #:lo12:ptt_syscall_looks\n"
	"	ldrb	w16, [x16, x0]\n"
	"	cbnz	w16, 1f\n"
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
	"	cbnz	w17, ptt_syscall_traced\n"
	"	b	2b\n"
	"	.cfi_endproc\n"
	"	.size	syscall, . - syscall\n");
#elif defined(__riscv)
_Static_assert(SYS_futex == 98, "number below");
__asm__(".text\n"
	"	.globl	syscall\n"
	"	.type	syscall, @function\n"
	"	.p2align 2\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	li	t0, 98\n" /* futex */
	"	beq	a0, t0, 3f\n"
	"	li	t0, 511\n"
	"	bgtu	a0, t0, 2f\n"
	"	lla	t0, ptt_syscall_looks\n"
	"	add	t0, t0, a0\n"
	"	lbu	t0, 0(t0)\n"
	"	bnez	t0, 1f\n"
	"2:	lla	t0, ptt_real\n"
	"	ld	t0, 0(t0)\n"
	"	jr	t0\n"
	"3:	tail	ptt_syscall_futex\n"
	"1:	addi	sp, sp, -64\n"
	"	.cfi_adjust_cfa_offset 64\n"
	"	sd	ra, 56(sp)\n"
	"	.cfi_offset 1, -8\n"
	"	sd	a0, 0(sp)\n"
	"	sd	a1, 8(sp)\n"
	"	sd	a2, 16(sp)\n"
	"	sd	a3, 24(sp)\n"
	"	sd	a4, 32(sp)\n"
	"	sd	a5, 40(sp)\n"
	"	sd	a6, 48(sp)\n"
	"	call	ptt_syscall_is_ours\n"
	"	mv	t0, a0\n"
	"	ld	a0, 0(sp)\n"
	"	ld	a1, 8(sp)\n"
	"	ld	a2, 16(sp)\n"
	"	ld	a3, 24(sp)\n"
	"	ld	a4, 32(sp)\n"
	"	ld	a5, 40(sp)\n"
	"	ld	a6, 48(sp)\n"
	"	ld	ra, 56(sp)\n"
	"	.cfi_restore 1\n"
	"	addi	sp, sp, 64\n"
	"	.cfi_adjust_cfa_offset -64\n"
	"	beqz	t0, 2b\n"
	"	tail	ptt_syscall_traced\n"
	"	.cfi_endproc\n"
	"	.size	syscall, . - syscall\n");
#else
#error "this processor needs its syscall() here"
#endif
