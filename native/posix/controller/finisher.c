/* SPDX-License-Identifier: MIT */
/* finisher.c - a process that outlives a controller, and ends its stream as posix_trace_shutdown() does. */
/*
 * A controller cannot flush its streams any more if it is killed, leaves by _exit() or executes another program. So each
 * stream with a log has a finisher. The finisher is a child that shares the log's state and waits for the agent's mutex. The
 * kernel wakes the finisher if the agent dies with the mutex. No signal reports the end of the child, and no wait() of the
 * program returns the child. The child has a copy of its parent's memory, but not the other threads of the parent. So the
 * child allocates nothing, and takes no lock that these threads might hold.
 */
#include "controller.h"

#include <linux/futex.h>
#include <sys/wait.h>

#include "platform/missing.h"
#include "platform/raw_syscall.h"

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer does not survive in a child that it did not make itself. */
uint32_t px_finisher_start(struct px_trace *t)
{
	(void)t;
	return 0;
}
#else
/* Wait until the agent does not hold the stream any more. Return: true if the agent died. */
static bool wait_for_death(struct px_stream *stream)
{
	static const struct timespec second = {.tv_sec = 1};
	uint32_t *life = (uint32_t *)stream->life;

	for (;;) {
		/* acquire: pairs with the release of the mutex, or with the kernel's mark */
		uint32_t word = __atomic_load_n(life, __ATOMIC_ACQUIRE);

		if (!word || word & FUTEX_OWNER_DIED)
			return word;
		/* as a waiter of a mutex does: the kernel, or the thread that unlocks the mutex, then wakes us */
		if (!(word & FUTEX_WAITERS) && !__atomic_compare_exchange_n(life, &word, word | FUTEX_WAITERS, false,
									    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		ptt_raw_futex(life, FUTEX_WAIT, word | FUTEX_WAITERS, &second);
	}
}

static void close_all_but(unsigned int fd)
{
	if (fd)
		ptt_raw_syscall(SYS_close_range, 0, fd - 1, 0, 0, 0, 0);
	ptt_raw_syscall(SYS_close_range, fd + 1, ~0u, 0, 0, 0, 0);
}

/* The agent may have died after it took a record out of the stream, and before it added the record to the log. */
static void recover_last(struct px_trace *t)
{
	uint64_t tail = __atomic_load_n(&t->buffer.stream->tail, __ATOMIC_ACQUIRE), place = PX_TAIL_PLACE(tail);
	uint64_t taken = px_log_taken(t->log);

	if (tail & PX_TAIL_GAP || t->reading->phase != PX_NORMAL || t->scratch->position != (uint32_t)taken ||
	    taken + t->scratch->cells != place)
		return;
	px_log_add(t->log, t->scratch, place);
	t->reading->reader.expected = place;
}

static void finish(struct px_trace *t, uint32_t controller)
{
	static const int asked_for = 0;
	struct px_event event = {
		.id = POSIX_TRACE_STOP, .pid = controller, .data = &asked_for, .size = sizeof(asked_for)};
	struct px_stream *stream = t->buffer.stream;
	struct px_registry *registry;
	int fd;

	recover_last(t);
	px_put_own(&t->buffer, &event, PX_HEAD_STOPPED | PX_HEAD_FULL, 0, PX_HEAD_STOPPED, 0);
	px_close(stream);
	px_flush(t, true);
	fd = px_registry_lock(&t->directory, t->user, &registry);
	if (fd >= 0) {
		px_stream_withdraw(t, registry);
		px_registry_unlock(fd, registry);
	}
}

uint32_t px_finisher_start(struct px_trace *t)
{
	uint32_t controller = px_own_pid();
	long pid = ptt_raw_syscall(SYS_clone, 0, 0, 0, 0, 0, 0);

	if (pid)
		return pid > 0 ? (uint32_t)pid : 0;
	px_guard_reset();
	px_identity_forked();
	ptt_raw_syscall(SYS_setsid, 0, 0, 0, 0, 0, 0);
	close_all_but((unsigned int)px_log_descriptor(t->log));
	if (wait_for_death(t->buffer.stream))
		finish(t, controller);
	ptt_raw_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}
#endif

void px_finisher_end(uint32_t finisher)
{
	while (ptt_raw_syscall(SYS_wait4, finisher, 0, (long)__WCLONE, 0, 0, 0) == -EINTR)
		continue;
}
