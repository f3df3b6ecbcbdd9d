/* SPDX-License-Identifier: MIT */
/* lock_call.c - calls of lock functions of other libraries, reported as calls of the thread library's functions. */
/*
 * To readers of a trace, a lock of GLib is a mutex with a type. An event reports the type at the first use. Calls
 * inside the library, such as a wait for a futex, are not reported.
 */
#include "lock_hook.h"
#include "team.h"
#include "wait.h"

/* A call of a lock function. */
struct call {
	const struct ptt_lock_function *function;
	uint32_t number;
	struct ptt_lock_arguments *with;
	ptt_lock_fn *real;
	void *site;
};

static inline long argument(const struct ptt_lock_arguments *with, uint32_t number)
{
	return with->at[number];
}

static inline long call_plainly(const struct call *call)
{
	const struct ptt_lock_arguments *with = call->with;

	return call->real(with->at[0], with->at[1], with->at[2], with->at[3], with->at[4], with->at[5]);
}

/* Call the real function; its own waits are a part of the call. */
static inline long call_real(const struct call *call)
{
	IN_LOCK;

	return call_plainly(call);
}

static inline const void *object_of(const struct call *call)
{
	if (call->function->only)
		return call->function->only;
	return (const void *)argument(call->with, call->function->object);
}

static inline struct ptt_lock_used used_in(const struct call *call)
{
	return (struct ptt_lock_used){
		.function = call->function,
		.object = object_of(call),
		.site = call->site,
		.shared = ptt_lock_is_for_reading(call->function),
	};
}

/* ------------------------------------------------------------ take and release */

/* A wait for a lock. Its end is reported however the call is left. */
struct lock_wait {
	struct ptt_lock_used lock;
	uint64_t began;
	int result;
};

static void end_lock_wait(struct lock_wait *wait)
{
	ptt_report_lock_wait_end(&wait->lock, wait->result, ptt_now_ns() - wait->began);
}

static COLD long wait_for_lock(const struct call *call, const struct ptt_lock_used *lock)
{
	struct lock_wait wait __attribute__((cleanup(end_lock_wait))) = {.lock = *lock, .result = ECANCELED};
	long result;

	ptt_report_lock_wait(lock);
	wait.began = ptt_now_ns();
	result = call_real(call);
	wait.result = ptt_lock_has_done(call->function, result) ? 0 : EBUSY;
	return result;
}

/* Take a lock without a try function. If another thread takes a mutex after the guess, the wait is not reported. */
static long acquire_untried(const struct call *call, const struct ptt_lock_used *lock)
{
	long result;

	if (!ptt_lock_is_rwlock(lock) && ptt_lock_seems_held(lock->object))
		return wait_for_lock(call, lock);
	result = call_real(call);
	if (ptt_lock_has_done(call->function, result))
		ptt_report_lock_taken(lock);
	return result;
}

static COLD long try_at_once(const struct call *call, uint32_t limit, ptt_lock_fn *try_real)
{
	struct ptt_lock_arguments with = *call->with;

	with.at[limit] = 0;
	return try_real(with.at[0], with.at[1], with.at[2], with.at[3], with.at[4], with.at[5]);
}

/*
 * Call the try function with the same arguments. The arguments are not copied: a copy of two words at a time would
 * stall on the entry's stores of one word.
 */
static inline bool take_if_free(const struct call *call, uint32_t number, ptt_lock_fn *try_real)
{
	const struct ptt_lock_function *try_with = ptt_lock_function(number);
	const struct ptt_lock_arguments *with = call->with;
	long result;

	if (unlikely(try_with->limit != PTT_LOCK_NONE))
		result = try_at_once(call, try_with->limit, try_real);
	else
		result = try_real(with->at[0], with->at[1], with->at[2], with->at[3], with->at[4], with->at[5]);
	return ptt_lock_has_done(try_with, result);
}

static long acquire_tried(const struct call *call, const struct ptt_lock_used *lock, uint32_t number,
			  ptt_lock_fn *try_real)
{
	if (unlikely(!take_if_free(call, number, try_real)))
		return wait_for_lock(call, lock);
	ptt_report_lock_taken(lock);
	return 0;
}

static long acquire(const struct call *call)
{
	struct ptt_lock_used lock = used_in(call);
	ptt_lock_fn *try_real = NULL;
	uint32_t number = 0;
	bool tried = call->function->try_with != PTT_LOCK_NONE;
	long result;

	ptt_tell_lock_type(&lock);
	if (tried) {
		number = ptt_lock_beside(call->number, call->function->try_with);
		try_real = ptt_real_lock(number, call->site);
	}
	if (ptt_lock_is_rwlock(&lock) ? must_trace(RWLOCK, RWLOCK_TAKEN_READ) : must_trace(MUTEX, MUTEX_TAKEN))
		ptt_before_lock(lock.object, lock.site);
	result = try_real ? acquire_tried(call, &lock, number, try_real) : acquire_untried(call, &lock);
	if (!tried || ptt_lock_is_rwlock(&lock))
		ptt_lock_note_held(&lock);
	return result;
}

static long try_to_acquire(const struct call *call)
{
	struct ptt_lock_used lock = used_in(call);
	long result;

	ptt_tell_lock_type(&lock);
	result = call_real(call);
	if (!ptt_lock_has_done(call->function, result))
		return result;
	ptt_report_lock_tried(&lock);
	if (ptt_lock_is_rwlock(&lock))
		ptt_lock_note_held(&lock);
	return result;
}

/* Stamped before the release, so that the next holder's time is later. */
static long release(const struct call *call)
{
	struct ptt_lock_used lock = used_in(call);

	ptt_report_lock_free(&lock);
	ptt_lock_note_free(lock.object);
	return call_real(call);
}

/* ------------------------------------------------------------ init and destroy */

static long initialize(const struct call *call)
{
	struct ptt_lock_used lock = used_in(call);
	long result = call_real(call);

	if (!ptt_lock_has_done(call->function, result))
		return result;
	ptt_report_lock_init(&lock);
	/* a new object, even if the type of an earlier object at this address was reported */
	ptt_report_type_anew(&lock);
	return result;
}

static long destroy(const struct call *call)
{
	struct ptt_lock_used lock = used_in(call);

	ptt_report_lock_destroy(&lock);
	ptt_forget_lock_type(lock.object);
	return call_real(call);
}

/* ------------------------------------------------------------ conditions */

/*
 * PTT_LOCK_WAIT_APART: the wait for the pthread condition is reported by its own hook; here only the release and the
 * taking of the lock.
 */
static void end_wait_apart(const struct ptt_lock_used *lock)
{
	ptt_report_lock_taken(lock);
	if (ptt_lock_is_rwlock(lock))
		ptt_lock_note_held(lock);
}

static long wait_apart(const struct call *call)
{
	const void *object = (const void *)argument(call->with, call->function->mutex);
	bool rwlock = call->function->domain == NPTL_DOMAIN_RWLOCK;
	struct ptt_lock_used lock __attribute__((cleanup(end_wait_apart))) = {
		.function = call->function, .object = object, .site = call->site, .shared = rwlock && !ptt_lock_seems_held(object),
	};

	ptt_report_lock_free(&lock);
	ptt_lock_note_free(object);
	return call_plainly(call);
}

static long wait_for_cond(const struct call *call)
{
	struct ptt_lock_used cond = used_in(call);
	pthread_mutex_t *mutex = (pthread_mutex_t *)argument(call->with, call->function->mutex);
	long result;

	if (!ptt_wait_is_traced())
		return call_plainly(call);
	ptt_tell_lock_type(&cond);
	REPORT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond.object, call->site, .mutex = ptt_ptr48(mutex));
	{
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_COND, NPTL_EV_COND_WAIT_OUT, cond.object, call->site);

		wait.mutex = mutex;
		REPORT(MUTEX, MUTEX_FREE, mutex, call->site);
		result = call_real(call);
		wait.result = ptt_lock_has_done(call->function, result) ? 0 : ETIMEDOUT;
	}
	return result;
}

static long wake(const struct call *call)
{
	struct ptt_lock_used cond = used_in(call);

	ptt_tell_lock_type(&cond);
	if (call->function->does == PTT_LOCK_WAKE_ALL)
		REPORT(COND, COND_BROADCAST, cond.object, call->site);
	else
		REPORT(COND, COND_SIGNAL, cond.object, call->site);
	return call_real(call);
}

/* ------------------------------------------------------------ barriers */

/*
 * Without an object, the barrier is the barrier of the thread's team. The thread may run other work of the team
 * meanwhile, so calls inside are traced.
 */
static long meet_team(const struct call *call)
{
	long result;

	if (ptt_teams_by_ompt || !ptt_team_wait(call->site))
		return call_plainly(call);
	result = call_plainly(call);
	ptt_team_waited(call->site);
	return result;
}

static long meet(const struct call *call)
{
	struct ptt_lock_used barrier = used_in(call);

	ptt_tell_lock_type(&barrier);
	EMIT(BARRIER, BARRIER_WAIT_IN, barrier.object, call->site);
	{
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_BARRIER, NPTL_EV_BARRIER_WAIT_OUT, barrier.object, call->site);
		long result = call_real(call);

		wait.result = 0;
		return result;
	}
}

static long call_untraced(const struct call *call)
{
	if (call->function->does == PTT_LOCK_TEAM)
		return ptt_team_run_plainly(call->with->at, (void (*)(void))call->real);
	return call_plainly(call);
}

/* ------------------------------------------------------------ entry */

static long traced(const struct call *call)
{
	if (call->function->does == PTT_LOCK_TEAM)
		return ptt_team_run(call->function, call->with->at, (void (*)(void))call->real, call->site);
	if (call->function->domain == NPTL_DOMAIN_BARRIER)
		return call->function->object == PTT_LOCK_NONE ? meet_team(call) : meet(call);
	switch (call->function->does) {
	case PTT_LOCK_ACQUIRE:
	case PTT_LOCK_ACQUIRE_SHARED:
		return acquire(call);
	case PTT_LOCK_TRY:
	case PTT_LOCK_TRY_SHARED:
		return try_to_acquire(call);
	case PTT_LOCK_RELEASE:
		return release(call);
	case PTT_LOCK_INIT:
		return initialize(call);
	case PTT_LOCK_DESTROY:
		return destroy(call);
	case PTT_LOCK_WAIT:
		return wait_for_cond(call);
	case PTT_LOCK_WAIT_APART:
		return wait_apart(call);
	default:
		return wake(call);
	}
}

long ptt_lock_call(struct ptt_lock_arguments *with, uint32_t number, void *site)
{
	const struct ptt_lock_function *function = ptt_lock_function(number);
	struct call call = {
		.function = function, .number = number, .with = with, .real = ptt_real_lock(number, site), .site = site,
	};
	uintptr_t lock;
	uint64_t before;
	long result;

	if (unlikely(!call.real))
		return 0;
	/* a lock function that a lock function calls is a part of the outer call */
	if (!ptt_level((enum nptl_trace_domain)function->domain) || ptt_in_lock)
		return call_untraced(&call);
	if (function->needs != PTT_LOCK_NONE && !ptt_real_lock(ptt_lock_beside(number, function->needs), site))
		return call_untraced(&call);
	lock = function->mutex != PTT_LOCK_NONE ? (uintptr_t)argument(with, function->mutex) : (uintptr_t)object_of(&call);
	before = ptt_lock_of_call;
	/* locks of the catalogue's libraries are private to a process */
	ptt_lock_of_call = PTT_LOCK_WORD(lock, number < PTT_LOCK_GIVEN ? PTT_OTHER_PRIVATE : PTT_OTHER_UNKNOWN);
	result = traced(&call);
	ptt_lock_of_call = before; /* the lock of the call that a signal handler interrupted */
	return result;
}

/*
 * The entry: stubs jump here, with the number of the function in a register that passes no argument. The entry stores
 * the arguments in memory for ptt_lock_call(). Stubs of the user's functions use the second name.
 */
#if defined(__x86_64__)
__asm__(".text\n"
	"	.globl	ptt_lock_entry\n"
	"	.type	ptt_lock_entry, @function\n"
	"	.globl	__nptl_trace_lock_entry\n"
	"	.set	__nptl_trace_lock_entry, ptt_lock_entry\n"
	"	.p2align 4\n"
	"ptt_lock_entry:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq	%rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 6, -16\n"
	"	movq	%rsp, %rbp\n"
	"	.cfi_def_cfa_register 6\n"
	"	pushq	%r9\n"
	"	pushq	%r8\n"
	"	pushq	%rcx\n"
	"	pushq	%rdx\n"
	"	pushq	%rsi\n"
	"	pushq	%rdi\n"
	"	movq	%rsp, %rdi\n"
	"	movl	%r11d, %esi\n"
	"	movq	8(%rbp), %rdx\n"
	"	call	ptt_lock_call\n"
	"	leave\n"
	"	.cfi_def_cfa 7, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	ptt_lock_entry, . - ptt_lock_entry\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	"	.globl	ptt_lock_entry\n"
	"	.type	ptt_lock_entry, %function\n"
	"	.globl	__nptl_trace_lock_entry\n"
	"	.set	__nptl_trace_lock_entry, ptt_lock_entry\n"
	"	.p2align 4\n"
	"ptt_lock_entry:\n"
	"	.cfi_startproc\n"
	"	hint	#34\n" /* bti c */
	"	stp	x29, x30, [sp, #-80]!\n"
	"	.cfi_def_cfa_offset 80\n"
	"	.cfi_offset 29, -80\n"
	"	.cfi_offset 30, -72\n"
	"	mov	x29, sp\n"
	"	stp	x0, x1, [sp, #16]\n"
	"	stp	x2, x3, [sp, #32]\n"
	"	stp	x4, x5, [sp, #48]\n"
	"	stp	x6, x7, [sp, #64]\n"
	"	add	x0, sp, #16\n"
	"	mov	w1, w16\n"
	"	mov	x2, x30\n"
	"	bl	ptt_lock_call\n"
	"	ldp	x29, x30, [sp], #80\n"
	"	.cfi_restore 30\n"
	"	.cfi_restore 29\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	ptt_lock_entry, . - ptt_lock_entry\n");
#elif defined(__riscv)
__asm__(".text\n"
	"	.globl	ptt_lock_entry\n"
	"	.type	ptt_lock_entry, @function\n"
	"	.globl	__nptl_trace_lock_entry\n"
	"	.set	__nptl_trace_lock_entry, ptt_lock_entry\n"
	"	.p2align 2\n"
	"ptt_lock_entry:\n"
	"	.cfi_startproc\n"
	"	addi	sp, sp, -80\n"
	"	.cfi_def_cfa_offset 80\n"
	"	sd	ra, 72(sp)\n"
	"	.cfi_offset 1, -8\n"
	"	sd	a0, 0(sp)\n"
	"	sd	a1, 8(sp)\n"
	"	sd	a2, 16(sp)\n"
	"	sd	a3, 24(sp)\n"
	"	sd	a4, 32(sp)\n"
	"	sd	a5, 40(sp)\n"
	"	sd	a6, 48(sp)\n"
	"	sd	a7, 56(sp)\n"
	"	mv	a0, sp\n"
	"	mv	a1, t2\n"
	"	mv	a2, ra\n"
	"	call	ptt_lock_call\n"
	"	ld	ra, 72(sp)\n"
	"	.cfi_restore 1\n"
	"	addi	sp, sp, 80\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	ptt_lock_entry, . - ptt_lock_entry\n");
#endif
