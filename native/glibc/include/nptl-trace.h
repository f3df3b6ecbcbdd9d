/* SPDX-License-Identifier: MIT */
/*
 * nptl-trace.h - a trace point inside libc.so: a look at the level, and the call behind it.
 *
 * include/libc-symbols.h includes this file, so that every file of the C library sees it. Without ENABLE_NPTL_TRACE, and
 * anywhere but in the shared libc itself, all of it is empty. With it a point reads the level that the tracer keeps and,
 * if that is high enough, calls the tracer. Nothing here locks, allocates or can fail: with no tracer loaded, before the
 * tracer's constructor and after its destructor the level is 0.
 *
 * The names of the points, NPTL_POINT_x, come with the headers that a file with points includes anyway: sys/sdt.h,
 * nptl-trace-lll.h, nptl-trace-futex.h.
 *
 * What libc refers to and a tracer defines:
 *	int __nptl_trace_detail_level;	the highest level that anything is traced at now, 0 = off
 *	void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b, const void *site);
 */
#ifndef NPTL_TRACE_LIBC_H
#define NPTL_TRACE_LIBC_H

#if defined ENABLE_NPTL_TRACE && defined SHARED && !defined __ASSEMBLER__
#if IS_IN(libc)
#define NPTL_TRACE_HERE 1
#endif
#endif

#ifdef NPTL_TRACE_HERE

/* Where the level is kept: in the tracer, or in a zero of libc's own. Set once, before any constructor runs. */
extern const int *__nptl_trace_level_at __attribute__((visibility("hidden")));

/* Points that level 1 wants; all others are internal events. */
#define NPTL_TRACE_LEVEL_OF(point) ((point) == NPTL_POINT_pthread_start || (point) == NPTL_POINT_thread_dead ? 1 : 4)

/* Relaxed: a change of the level is seen soon, and nothing else hangs on it. */
#ifdef __x86_64__
/* An atomic load would keep the compiler from comparing with memory, and cost an instruction on every fast path. */
#define NPTL_TRACE_REACHES(level)                                                                                 \
	__builtin_expect(__extension__({                                                                          \
				 _Bool nptl_trace_reaches_;                                                       \
				 __asm__("cmpl %2, %1"                                                            \
					 : "=@ccge"(nptl_trace_reaches_)                                          \
					 : "m"(*__nptl_trace_level_at), "i"(level));                              \
				 nptl_trace_reaches_;                                                             \
			 }),                                                                                      \
			 0)
#else
#define NPTL_TRACE_REACHES(level) \
	__builtin_expect(__atomic_load_n(__nptl_trace_level_at, __ATOMIC_RELAXED) >= (level), 0)
#endif

/* Are there points in this piece of code? The parameter of that name, in a body that is made into two routines, says so. */
enum { nptl_trace_on_ = 1 };

#define NPTL_TRACE_WANTED(point) (nptl_trace_on_ && NPTL_TRACE_REACHES(NPTL_TRACE_LEVEL_OF(point)))

#define NPTL_TRACE_SITE __builtin_extract_return_addr(__builtin_return_address(0))

#ifdef __x86_64__
/*
 * Saves every register, so that the code around a point stays as good as it was: an ordinary call would make the compiler
 * save registers on the fast path. Needs -mno-red-zone.
 */
static inline __attribute__((always_inline)) void nptl_trace_call(unsigned long point, const void *object, unsigned long a,
								  unsigned long b, const void *site)
{
	register const void *fifth __asm__("r8") = site;

	__asm__ volatile("call __nptl_trace_call" : : "D"(point), "S"(object), "d"(a), "c"(b), "r"(fifth) : "memory");
}
#else
extern void __nptl_trace_point(unsigned int point, const void *object, unsigned long a, unsigned long b,
			       const void *site) __attribute__((weak));
#define nptl_trace_call(point, object, a, b, site) __nptl_trace_point(point, object, a, b, site)
#endif

#define NPTL_TRACE_SAY(point, object, a, b)                                                                       \
	do {                                                                                                      \
		if (NPTL_TRACE_WANTED(point))                                                                     \
			nptl_trace_call(point, (const void *)(object), (unsigned long)(a), (unsigned long)(b),    \
					NPTL_TRACE_SITE);                                                         \
	} while (0)

/*
 * A name that the list of points does not have makes no code: NPTL_HAS_POINT_x expands to 1, or to itself. The third
 * argument is looked at only after that has been decided.
 */
#define NPTL_TRACE_KNOWN_1 ,
#define NPTL_TRACE_SECOND(a, b, ...) b
#define NPTL_TRACE_PICK(...) NPTL_TRACE_SECOND(__VA_ARGS__)
#define NPTL_TRACE_PASTE(has) NPTL_TRACE_PASTE_(has)
#define NPTL_TRACE_PASTE_(has) NPTL_TRACE_KNOWN_##has
#define NPTL_TRACE_SAY_KNOWN(name, object, a, b) NPTL_TRACE_SAY(NPTL_POINT_##name, object, a, b)
#define NPTL_TRACE_SAY_UNKNOWN(name, object, a, b) ((void)0)

/* nptl_trace_point (mutex_free, mutex, 0, 0): a statement. */
#define nptl_trace_point(name, object, a, b)                                                                      \
	NPTL_TRACE_PICK(NPTL_TRACE_PASTE(NPTL_HAS_POINT_##name) NPTL_TRACE_SAY_KNOWN, NPTL_TRACE_SAY_UNKNOWN, ~) \
	(name, object, a, b)

/*
 * A routine whose points must cost next to nothing while they are closed is made twice of one body, without points and with
 * them, and looks at the level once, at its beginning:
 *
 *	nptl_trace_body int nptl_trace_body_of (unlock) (lock_t *lock nptl_trace_points_on) { ... }
 *	nptl_trace_twice (unlock, (lock_t *lock), lock)
 *
 * Other routines of the same file have it inline, which saves about as many instructions as the look at the level costs.
 */
#define nptl_trace_body static inline __attribute__((always_inline))
#define nptl_trace_body_of(routine) NPTL_TRACE_NAME(nptl_trace_body_of_, routine)
#define nptl_trace_points_on , const int nptl_trace_on_
#define NPTL_TRACE_NAME(prefix, routine) NPTL_TRACE_NAME_(prefix, routine)
#define NPTL_TRACE_NAME_(prefix, routine) prefix##routine
#define nptl_trace_twice(routine, parameters, ...)                                                            \
	static __attribute__((noinline, cold)) int NPTL_TRACE_NAME(nptl_traced_, routine) parameters          \
	{                                                                                                     \
		return nptl_trace_body_of(routine)(__VA_ARGS__, 1);                                           \
	}                                                                                                     \
	__attribute__((always_inline)) inline int routine parameters                                          \
	{                                                                                                     \
		if (NPTL_TRACE_REACHES(4))                                                                    \
			return NPTL_TRACE_NAME(nptl_traced_, routine)(__VA_ARGS__);                           \
		return nptl_trace_body_of(routine)(__VA_ARGS__, 0);                                           \
	}

/* Defined in lowlevellock.c. */
#ifdef __x86_64__
#define NPTL_TRACE_THUNK                                                                                          \
	__asm__(".pushsection .text.nptl_trace,\"ax\",@progbits\n"                                                \
		".weak __nptl_trace_point\n"                                                                      \
		".globl __nptl_trace_call\n"                                                                      \
		".hidden __nptl_trace_call\n"                                                                     \
		".type __nptl_trace_call,@function\n"                                                             \
		"__nptl_trace_call:\n"                                                                            \
		".cfi_startproc\n"                                                                                \
		"push %rbp\n"                                                                                     \
		".cfi_adjust_cfa_offset 8\n"                                                                      \
		".cfi_rel_offset rbp, 0\n"                                                                        \
		"mov %rsp, %rbp\n"                                                                                \
		".cfi_def_cfa_register rbp\n"                                                                     \
		"and $-16, %rsp\n"                                                                                \
		"sub $336, %rsp\n"                                                                                \
		"mov %rax, (%rsp)\n mov %rcx, 8(%rsp)\n mov %rdx, 16(%rsp)\n mov %rsi, 24(%rsp)\n"                \
		"mov %rdi, 32(%rsp)\n mov %r8, 40(%rsp)\n mov %r9, 48(%rsp)\n mov %r10, 56(%rsp)\n"               \
		"mov %r11, 64(%rsp)\n"                                                                            \
		"movaps %xmm0, 80(%rsp)\n movaps %xmm1, 96(%rsp)\n movaps %xmm2, 112(%rsp)\n"                     \
		"movaps %xmm3, 128(%rsp)\n movaps %xmm4, 144(%rsp)\n movaps %xmm5, 160(%rsp)\n"                   \
		"movaps %xmm6, 176(%rsp)\n movaps %xmm7, 192(%rsp)\n movaps %xmm8, 208(%rsp)\n"                   \
		"movaps %xmm9, 224(%rsp)\n movaps %xmm10, 240(%rsp)\n movaps %xmm11, 256(%rsp)\n"                 \
		"movaps %xmm12, 272(%rsp)\n movaps %xmm13, 288(%rsp)\n movaps %xmm14, 304(%rsp)\n"                \
		"movaps %xmm15, 320(%rsp)\n"                                                                      \
		"call *__nptl_trace_point@GOTPCREL(%rip)\n"                                                       \
		"movaps 320(%rsp), %xmm15\n movaps 304(%rsp), %xmm14\n movaps 288(%rsp), %xmm13\n"                \
		"movaps 272(%rsp), %xmm12\n movaps 256(%rsp), %xmm11\n movaps 240(%rsp), %xmm10\n"                \
		"movaps 224(%rsp), %xmm9\n movaps 208(%rsp), %xmm8\n movaps 192(%rsp), %xmm7\n"                   \
		"movaps 176(%rsp), %xmm6\n movaps 160(%rsp), %xmm5\n movaps 144(%rsp), %xmm4\n"                   \
		"movaps 128(%rsp), %xmm3\n movaps 112(%rsp), %xmm2\n movaps 96(%rsp), %xmm1\n"                    \
		"movaps 80(%rsp), %xmm0\n"                                                                        \
		"mov 64(%rsp), %r11\n mov 56(%rsp), %r10\n mov 48(%rsp), %r9\n mov 40(%rsp), %r8\n"               \
		"mov 32(%rsp), %rdi\n mov 24(%rsp), %rsi\n mov 16(%rsp), %rdx\n mov 8(%rsp), %rcx\n"              \
		"mov (%rsp), %rax\n"                                                                              \
		"leave\n"                                                                                         \
		".cfi_def_cfa rsp, 8\n"                                                                           \
		"ret\n"                                                                                           \
		".cfi_endproc\n"                                                                                  \
		".size __nptl_trace_call, . - __nptl_trace_call\n"                                                \
		".popsection\n");
#else
#define NPTL_TRACE_THUNK
#endif

#define NPTL_TRACE_DEFINITIONS                                                                                    \
	static const int __nptl_trace_off;                                                                        \
	const int *__nptl_trace_level_at = &__nptl_trace_off;                                                     \
	NPTL_TRACE_THUNK

#define nptl_trace_attach()                                                                                       \
	do {                                                                                                      \
		extern int __nptl_trace_detail_level __attribute__((weak));                                       \
		extern void __nptl_trace_point(unsigned int, const void *, unsigned long, unsigned long,          \
					       const void *) __attribute__((weak));                               \
		if (&__nptl_trace_detail_level && __nptl_trace_point)                                             \
			__nptl_trace_level_at = &__nptl_trace_detail_level;                                       \
	} while (0)

#else /* nothing is traced here */

#define nptl_trace_point(name, object, a, b) ((void)0)
#define nptl_trace_attach() ((void)0)
#define nptl_trace_body
#define nptl_trace_body_of(routine) routine
#define nptl_trace_points_on
#define nptl_trace_twice(routine, parameters, ...)
#define NPTL_TRACE_DEFINITIONS

#endif

#ifndef __ASSEMBLER__

/* The same as an operand of && that is always true. */
#define nptl_trace_and(name, object, a, b)                \
	__extension__({                                   \
		nptl_trace_point(name, object, a, b);     \
		1;                                        \
	})

/* The value of a call, said if it is 0. */
#ifdef NPTL_TRACE_HERE
#define nptl_trace_success(name, object, a, call)                          \
	__extension__({                                                    \
		__typeof__(call) nptl_trace_result_ = (call);              \
		if (nptl_trace_result_ == 0)                               \
			nptl_trace_point(name, object, a, 0);              \
		nptl_trace_result_;                                        \
	})
#else
#define nptl_trace_success(name, object, a, call) (call)
#endif

#endif

#endif
