/* SPDX-License-Identifier: MIT */
/* futex.c - futex calls through syscall(), as the locks of Rust and C++20 make them: waits and wake-ups. */
/*
 * The calls of futex2 (Linux 6.7) are reported as the equivalent operations of futex(2). A wait for several futexes
 * is reported as a wait for the first futex.
 */
#include <linux/futex.h>

#include "syscall_numbers.h"
#include "wait.h"

long ptt_syscall_futex(long number, long word, long op, long value, long timeout, long word2, long value3) HIDDEN;

/* Do not read a pointer into the first page: the kernel returns EFAULT. */
static int64_t timeout_of(long timeout)
{
	return timeout >= 4096 ? (int64_t)ptt_ns((const struct timespec *)timeout) : -1;
}

static bool is_wait(int command)
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

static bool is_wake(int command)
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

static inline long call_real(long number, const long *arg)
{
	return ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static inline __attribute__((always_inline)) long wait_on(long number, const long *arg, const void *word, int op,
							  uint32_t expected, long timeout, void *site)
{
	EMIT_WITH(FUTEX, FUTEX_WAIT_IN, futex_wait_in, word, site, .op = (uint16_t)op, .lock = ptt_site_futex(site),
		  .expected = expected, .timeout_ns = timeout_of(timeout));
	{
		struct ptt_wait wait WAIT_GUARD = ptt_begin_wait(NPTL_DOMAIN_FUTEX, NPTL_EV_FUTEX_WAIT_OUT, word, site);
		long result = call_real(number, arg);

		wait.result = result < 0 ? errno : 0;
		return result;
	}
}

/* @value2: the second value of the call, as the kernel takes it; @wakes: threads to wake, at most; -1: the call wakes none */
static inline __attribute__((always_inline)) long call_on(long number, const long *arg, const void *word, int op,
							  uint32_t value, long value2, int wakes, void *site)
{
	long result;

	REPORT_WITH(FUTEX, FUTEX_CALL_IN, futex_call_in, word, site, .op = (uint16_t)op, .value = value,
		    .value2 = (uint64_t)value2);
	/* before the wake-up: no effect is earlier than its cause */
	if (wakes >= 0)
		REPORT_WITH(FUTEX, FUTEX_WAKE, futex_wake, word, site, .op = (uint16_t)op, .count = wakes);
	result = call_real(number, arg);
	REPORT_WITH(FUTEX, FUTEX_CALL_OUT, futex_call_out, word, site, .result = result < 0 ? -errno : result);
	return result;
}

/* As syscall(), sets errno only if the call fails. */
long ptt_syscall_futex(long number, long word, long op, long value, long timeout, long word2, long value3)
{
	const long arg[] = {word, op, value, timeout, word2, value3};
	int command = (int)op & FUTEX_CMD_MASK, wakes = -1;
	void *site = CALL_SITE;

	if (!ptt_level(NPTL_DOMAIN_FUTEX) || ptt_in_lock)
		return call_real(number, arg);
	if (is_wait(command))
		return wait_on(number, arg, (void *)word, (int)op, (uint32_t)value, timeout, site);
	if (is_wake(command))
		wakes = command == FUTEX_UNLOCK_PI ? 1 : (int)value;
	return call_on(number, arg, (void *)word, (int)op, (uint32_t)value, timeout, wakes, site);
}

/* ------------------------------------------------------------ futex2 */

/* struct futex_waitv of <linux/futex.h>: a futex of futex_waitv() and futex_requeue(). */
struct waiter {
	uint64_t value;
	uint64_t word;
	uint32_t flags;
	uint32_t reserved;
};

/* The equivalent operation of futex(2), private to the process if @flags say so. */
static int operation(int command, long flags)
{
	return command | (int)(flags & FUTEX_PRIVATE_FLAG);
}

/* The first of @count waiters; zeros if the kernel would refuse the pointer. */
static struct waiter first_of(long waiters, long count)
{
	return waiters >= 4096 && count > 0 ? *(const struct waiter *)waiters : (struct waiter){0};
}

long ptt_syscall_futex2(long number, const long *arg, void *site)
{
	struct waiter first;

	switch (number) {
	case SYS_futex_wait:
		return wait_on(number, arg, (void *)arg[0], operation(FUTEX_WAIT_BITSET, arg[3]), (uint32_t)arg[1], arg[4],
			       site);
	case SYS_futex_waitv:
		first = first_of(arg[0], arg[1]);
		return wait_on(number, arg, (void *)first.word, operation(FUTEX_WAIT_BITSET, first.flags),
			       (uint32_t)first.value, arg[3], site);
	case SYS_futex_wake:
		return call_on(number, arg, (void *)arg[0], operation(FUTEX_WAKE_BITSET, arg[3]), (uint32_t)arg[2], arg[1],
			       (int)arg[2], site);
	default:
		first = first_of(arg[0], 2);
		return call_on(number, arg, (void *)first.word, operation(FUTEX_CMP_REQUEUE, first.flags),
			       (uint32_t)arg[2], arg[3], (int)arg[2], site);
	}
}
