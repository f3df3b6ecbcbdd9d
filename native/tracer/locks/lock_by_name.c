/* SPDX-License-Identifier: MIT */
/* lock_by_name.c - lock functions of the user's file that the program looks up by dlsym(). */
/*
 * The shared object of the user's functions has its own dlsym(), which jumps here. A program may call the result of
 * dlsym() from any module, so the calling module does not tell the real function. So each of these functions has a
 * second stub, which leads to the first function that dlsym() found. For a function of the same name in another
 * library, dlsym() returns the function itself.
 */
#include <dlfcn.h>
#include <string.h>

#include "real_lock.h"

typedef void *dlsym_fn(void *handle, const char *name);

static void *asked[PTT_LOCK_GIVEN]; /* functions that dlsym() found, by index in the table; release and acquire */

static COLD dlsym_fn *real_dlsym(void)
{
	void *function = dlvsym(RTLD_NEXT, "dlsym", PTT_OLD_VERSION);

	__asm__ volatile("" : "+r"(function)); /* no tail call: dlvsym() depends on its caller */
	return *(dlsym_fn **)&function;
}

void *ptt_dlsym(void *handle, const char *name)
{
	void *function = __nptl_trace_locks ? real_dlsym()(handle, name) : dlsym(handle, name);

	__asm__ volatile("" : "+r"(function)); /* as above */
	return function;
}

const void *ptt_linked_module(const void *address, struct link_map **map)
{
	Dl_info about;

	return dladdr1(address, &about, (void **)map, RTLD_DL_LINKMAP) ? about.dli_fbase : NULL;
}

bool ptt_lock_is_stub(const void *function)
{
	struct link_map *map;
	const void *module = ptt_linked_module(function, &map);

	return module && (module == ptt_linked_module(&ptt_real, &map) || module == ptt_linked_module(__nptl_trace_locks, &map));
}

ptt_lock_fn *ptt_asked_lock(uint32_t number)
{
	void *function = __atomic_load_n(&asked[number % PTT_LOCK_GIVEN], __ATOMIC_ACQUIRE);

	return *(ptt_lock_fn **)&function;
}

void ptt_forget_asked_locks(void)
{
	Dl_info about;

	for (uint32_t i = 0; i < PTT_LOCK_GIVEN; i++) {
		void *function = __atomic_load_n(&asked[i], __ATOMIC_ACQUIRE);

		if (function && !dladdr(function, &about))
			__atomic_store_n(&asked[i], NULL, __ATOMIC_RELEASE);
	}
}

/* Look up all functions of a library at once: the stub of a lock function also needs the try function. */
static void ask_for_all(void *handle)
{
	for (uint32_t i = 0; __nptl_trace_locks[i].name; i++) {
		void *none = NULL, *function = ptt_dlsym(handle, __nptl_trace_locks[i].name);

		/* release: pairs with the acquires; relaxed: on failure the value is not used */
		if (function && !ptt_lock_is_stub(function))
			__atomic_compare_exchange_n(&asked[i], &none, function, false, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED);
	}
}

static const struct ptt_lock_function *function_of_user(const char *name)
{
	for (const struct ptt_lock_function *f = __nptl_trace_locks; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* @stub: the result of dlsym(); NULL: the entry jumps to the C library's dlsym(), as if the program had called it. */
struct answer {
	const void *stub;
	dlsym_fn *real;
};

/* Called from the entry below. */
struct answer ptt_lock_by_name(void *handle, const char *name) HIDDEN;
struct answer ptt_lock_by_name(void *handle, const char *name)
{
	struct answer answer = {.real = real_dlsym()};
	const struct ptt_lock_function *function;
	void *real;

	/* with RTLD_DEFAULT the program finds the stubs anyway; the result for RTLD_NEXT depends on the caller */
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT)
		return answer;
	function = function_of_user(name);
	real = function ? answer.real(handle, name) : NULL;
	if (!real || ptt_lock_is_stub(real))
		return answer;
	ask_for_all(handle);
	if (__atomic_load_n(&asked[function - __nptl_trace_locks], __ATOMIC_ACQUIRE) == real)
		answer.stub = function->stub;
	return answer;
}

/* The C library's dlsym() needs the program's return address: it tells the calling module. */
#if defined(__x86_64__)
__asm__(".text\n"
	"	.globl	__nptl_trace_dlsym\n"
	"	.type	__nptl_trace_dlsym, @function\n"
	"	.p2align 4\n"
	"__nptl_trace_dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq	%rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq	%rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	ptt_lock_by_name\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq	%rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq	%rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq	%rax, %rax\n"
	"	jne	1f\n"
	"	jmp	*%rdx\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	"	.size	__nptl_trace_dlsym, . - __nptl_trace_dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	"	.globl	__nptl_trace_dlsym\n"
	"	.type	__nptl_trace_dlsym, %function\n"
	"	.p2align 4\n"
	"__nptl_trace_dlsym:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n" /* bti c */
	"	stp	x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	mov	x29, sp\n"
	"	stp	x0, x1, [sp, #16]\n"
	"	bl	ptt_lock_by_name\n"
	"	mov	x17, x0\n"
	"	mov	x16, x1\n"
	"	ldp	x0, x1, [sp, #16]\n"
	"	ldp	x29, x30, [sp], #32\n"
	"	.cfi_restore 30\n"
	"	.cfi_restore 29\n"
	"	.cfi_def_cfa_offset 0\n"
	"	cbnz	x17, 1f\n"
	"	br	x16\n"
	"1:	mov	x0, x17\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	__nptl_trace_dlsym, . - __nptl_trace_dlsym\n");
#elif defined(__riscv)
__asm__(".text\n"
	"	.globl	__nptl_trace_dlsym\n"
	"	.type	__nptl_trace_dlsym, @function\n"
	"	.p2align 2\n"
	"__nptl_trace_dlsym:\n"
	"	.cfi_startproc\n"
	"	addi	sp, sp, -32\n"
	"	.cfi_def_cfa_offset 32\n"
	"	sd	ra, 24(sp)\n"
	"	.cfi_offset 1, -8\n"
	"	sd	a0, 0(sp)\n"
	"	sd	a1, 8(sp)\n"
	"	call	ptt_lock_by_name\n"
	"	mv	t0, a0\n"
	"	mv	t1, a1\n"
	"	ld	a0, 0(sp)\n"
	"	ld	a1, 8(sp)\n"
	"	ld	ra, 24(sp)\n"
	"	.cfi_restore 1\n"
	"	addi	sp, sp, 32\n"
	"	.cfi_def_cfa_offset 0\n"
	"	bnez	t0, 1f\n"
	"	jr	t1\n"
	"1:	mv	a0, t0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	__nptl_trace_dlsym, . - __nptl_trace_dlsym\n");
#endif
