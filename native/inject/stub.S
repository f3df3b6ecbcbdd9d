/* SPDX-License-Identifier: MIT */
/* stub.S - the instructions that run in the process. They are copied there, so they call by pointers and use no address of theirs. */
/* r15 points to struct ptt_stub. The stack is the end of the same memory. */
	.section .rodata
	.globl ptt_stub_begin
	.hidden ptt_stub_begin
	.globl ptt_stub_end
	.hidden ptt_stub_end
	.balign 16

/* The thread that slept in a system call. */
ptt_stub_begin:
	cld
	/* mprotect(2): the first page becomes read-only code, the rest becomes data, unless they already are */
	movl	$10, %eax
	movq	48(%r15), %rdi
	movl	$4096, %esi
	movl	$5, %edx
	syscall
	movl	$10, %eax
	movq	%r15, %rdi
	movq	56(%r15), %rsi
	subq	$4096, %rsi
	movl	$3, %edx
	syscall
	movl	64(%r15), %eax
	movl	68(%r15), %edx
	xsave64	9408(%r15)
	/* rt_sigreturn(2) sets the alternate signal stack: have it set the present one */
	movl	$131, %eax
	xorl	%edi, %edi
	leaq	9056+16(%r15), %rsi
	syscall
	leaq	80(%r15), %rdi
	xorl	%esi, %esi
	leaq	1f(%rip), %rdx
	movq	%r15, %rcx
	call	*0(%r15)
	movl	%eax, 92(%r15)
	/* the new thread may have set a later status already */
	xorl	%eax, %eax
	movl	$1, %ecx
	lock cmpxchgl %ecx, 88(%r15)
	leaq	9056(%r15), %rsp
	movl	$15, %eax
	syscall
	ud2

/* The new thread. Its argument is struct ptt_stub. */
	.balign 16
1:	pushq	%rbx
	movq	%rdi, %rbx
	movl	$14, %eax
	movl	$2, %edi
	leaq	72(%rbx), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	syscall
	movq	%fs:16, %rdi
	call	*8(%rbx)
	/* RTLD_NOW | RTLD_GLOBAL: handlers use functions of the tracer; lookups still find the C library before the hooks */
	leaq	96(%rbx), %rdi
	movl	$0x102, %esi
	call	*16(%rbx)
	testq	%rax, %rax
	jz	3f
	movq	%rax, %rdi
	leaq	4192(%rbx), %rsi
	call	*24(%rbx)
	testq	%rax, %rax
	jz	3f
	movl	$2, 88(%rbx)
	leaq	4704(%rbx), %rdi
	call	*%rax
	testl	%eax, %eax
	movl	$4, 88(%rbx)
	jz	2f
	movq	48(%rbx), %rdi
	movq	56(%rbx), %rsi
	movq	40(%rbx), %rax
	popq	%rbx
	/* munmap() returns to the C library, which started this thread */
	jmp	*%rax
2:	xorl	%eax, %eax
	popq	%rbx
	ret

/* The library cannot be loaded: copy the text of dlerror(). */
3:	call	*32(%rbx)
	testq	%rax, %rax
	jz	5f
	leaq	8800(%rbx), %rdi
	xorl	%ecx, %ecx
4:	movb	(%rax,%rcx), %dl
	movb	%dl, (%rdi,%rcx)
	incl	%ecx
	cmpl	$255, %ecx
	je	5f
	testb	%dl, %dl
	jnz	4b
5:	movl	$3, 88(%rbx)
	jmp	2b
ptt_stub_end:

	.section .note.GNU-stack, "", @progbits
