/* SPDX-License-Identifier: MIT */
/* thread_entries.c - thread entries: finds ended and dead threads, counts lost events, and gives entries back. */
#include "../collector.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t threads_high(const struct ptt_collector *c)
{
	/* acquire: pairs with the release of the writer that took the entry */
	uint32_t high = __atomic_load_n(&c->segment->thread_high, __ATOMIC_ACQUIRE);

	return high < c->head.thread_count ? high : c->head.thread_count;
}

static uint32_t owner_of(const struct ptt_collector *c, uint32_t i)
{
	/* acquire: pairs with the release of a collector that gave the entry back; the state shows the progress of the writer */
	return __atomic_load_n(&c->thread_owner[i], __ATOMIC_ACQUIRE);
}

#define REAP_MIN 1024u

/* Does the kernel say that the thread does not exist? We cannot ask for ids in other PID namespaces. */
static bool is_dead(const struct ptt_collector *c, uint32_t i)
{
	const struct ptt_process *process = &c->process[(owner_of(c, i) - 1) % c->head.process_count];
	uint32_t pid = process->pid, tid = c->thread[i].tid;

	return process->pid_namespace && process->pid_namespace == c->pid_namespace && pid && tid &&
	       syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

/*
 * A thread may send an event after it has reported its end, such as from a destructor of thread-specific data in the last round.
 * It then gets an entry that it never gives back. So whenever the number of live entries has doubled, this function ends the
 * entries of dead threads.
 */
static void reap(struct ptt_collector *c)
{
	uint32_t live = 0;

	if (c->stats.live_threads < (c->reap_at ? c->reap_at : REAP_MIN))
		return;
	for (uint32_t i = 0; i < threads_high(c); i++) {
		struct stream *s = &c->stream[i];

		/* acquire: pairs with the release of LIVE; the entry is filled in */
		if (!owner_of(c, i) || s->ended || __atomic_load_n(&c->thread[i].state, __ATOMIC_ACQUIRE) != PTT_THREAD_LIVE)
			continue;
		if (is_dead(c, i))
			s->gone = s->ended = 1;
		else
			live++;
	}
	c->stats.live_threads = live;
	c->reap_at = 2 * live > REAP_MIN ? 2 * live : REAP_MIN;
}

/* Called before the look at the chunks: the chunks of a thread that has ended by now are all visible. */
void threads_look(struct ptt_collector *c)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < threads_high(c); i++) {
		struct stream *s = &c->stream[i];
		uint32_t owner = owner_of(c, i);

		if (!owner) {
			s->ended = 0;
			continue;
		}
		s->gone |= process_is_gone(c, owner - 1);
		/* acquire: pairs with the release of ENDED after the thread's last slot */
		s->ended = s->gone || __atomic_load_n(&c->thread[i].state, __ATOMIC_ACQUIRE) == PTT_THREAD_ENDED;
		live += !s->ended;
	}
	c->stats.live_threads = live;
	reap(c);
}

/*
 * A thread that has ended leaves its chunks behind. In FLUSH, drained chunks are free by now. In LOOP and UNTIL_FULL, chunks
 * stay until the end of the recording, or until writers overwrite them.
 */
static void leave_chunks(struct ptt_collector *c)
{
	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		uint32_t state = state_of(c, i), thread = PTT_CHUNK_THREAD(state);

		if (state == PTT_CHUNK_FREE || state == PTT_CHUNK_ABSENT || thread >= c->head.thread_count ||
		    !c->stream[thread].ended)
			continue;
		if (PTT_CHUNK_STATUS(state) == PTT_CHUNK_OWNED && c->head.policy != PTT_POLICY_FLUSH)
			/* if the swap fails, another thread has taken the chunk meanwhile */
			__atomic_compare_exchange_n(&c->chunk_state[i], &state, state | PTT_CHUNK_FULL, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		else if (PTT_CHUNK_STATUS(state) == PTT_CHUNK_CLAIMED && c->stream[thread].gone)
			chunk_free(c, i, c->head.chunk_size); /* the thread was killed before it prepared the chunk */
	}
}

/* Clear the entry of a thread that has left, for the next thread. A second call, after a kill in the first, is harmless. */
static void clear_entry(struct ptt_collector *c, uint32_t i)
{
	struct ptt_thread *t = &c->thread[i];

	t->head &= ~PTT_HEAD_OFFSET_MASK; /* keep the count of changes */
	t->t_base = 0;
	t->revoke = PTT_REVOKE_NONE;
	t->lost_full = t->lost_closed = t->lost_real_time = t->lost_stalled = t->wait_ns = 0;
	t->pid = t->tid = t->process = t->hint = t->waiting = 0;
	t->serial++;
	/* release: a collector that takes over sees LEFT, or a completely cleared entry */
	__atomic_store_n(&t->state, 0, __ATOMIC_RELEASE);
	/* release: pairs with the acquire of the thread that takes the entry next */
	__atomic_store_n(&c->thread_owner[i], 0, __ATOMIC_RELEASE);
	/* relaxed, both: only a hint */
	if (i < __atomic_load_n(&c->segment->thread_hint, __ATOMIC_RELAXED))
		__atomic_store_n(&c->segment->thread_hint, i, __ATOMIC_RELAXED);
}

static void give_back(struct ptt_collector *c, uint32_t i)
{
	struct ptt_thread *t = &c->thread[i];
	struct stream *s = &c->stream[i];

	packet_write_losses(c, i);
	s->discarded_base += t->lost_full + t->lost_closed;
	c->stats.lost_full += t->lost_full;
	c->stats.lost_closed += t->lost_closed;
	c->stats.lost_real_time += t->lost_real_time;
	c->stats.lost_stalled += t->lost_stalled;
	c->stats.wait_ns += t->wait_ns;
	/* relaxed, both: a thread that was killed while it waited for room is still counted in waiters */
	__atomic_fetch_sub(&c->segment->waiters, __atomic_load_n(&t->waiting, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	s->gone = s->ended = 0;
	s->idle_head = 0;
	/* relaxed, both: a count that only the collector changes */
	if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) == PTT_THREAD_ENDED)
		__atomic_store_n(&c->segment->taken_back, c->segment->taken_back + 1, __ATOMIC_RELAXED);
	/* If the collector is killed from here on, threads_take_up() of the next collector finishes the work. */
	__atomic_exchange_n(&t->state, PTT_THREAD_LEFT, __ATOMIC_SEQ_CST);
	clear_entry(c, i);
}

void threads_take_up(struct ptt_collector *c)
{
	for (uint32_t i = 0; i < threads_high(c); i++) {
		struct stream *s = &c->stream[i];

		/* acquire: pairs with the exchange in give_back() of the collector before */
		if (__atomic_load_n(&c->thread[i].state, __ATOMIC_ACQUIRE) == PTT_THREAD_LEFT) {
			s->discarded_base = s->discarded;
			clear_entry(c, i);
		} else if (s->used && s->last_serial != c->thread[i].serial && c->head.policy == PTT_POLICY_FLUSH) {
			/* the thread of the last packet has left, and its losses are final */
			s->discarded_base = s->discarded;
		}
	}
}

/* An ended thread keeps its entry while it has chunks that are not drained. */
static void keep_undrained(struct ptt_collector *c)
{
	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		uint32_t state = state_of(c, i), thread = PTT_CHUNK_THREAD(state);

		if (state != PTT_CHUNK_FREE && state != PTT_CHUNK_ABSENT && thread < c->head.thread_count)
			c->stream[thread].ended = 0;
	}
}

void threads_recycle(struct ptt_collector *c)
{
	uint32_t i, freed = c->stats.freed_chunks, room;
	bool any = false;

	for (i = 0; i < threads_high(c) && !any; i++)
		any = c->stream[i].ended;
	if (!any)
		return;
	leave_chunks(c);
	room = c->stats.freed_chunks - freed;
	if (c->head.policy == PTT_POLICY_FLUSH || c->final)
		keep_undrained(c);
	for (i = 0; i < threads_high(c); i++) {
		if (!c->stream[i].ended || !owner_of(c, i))
			continue;
		give_back(c, i);
		room++; /* a new thread may wait for the entry: see are_entries_short() of the writer */
	}
	if (room)
		wake_writers(c, room);
}

void threads_sum_losses(struct ptt_collector *c)
{
	struct ptt_collector_stats *stats = &c->stats;

	for (uint32_t i = 0; i < threads_high(c); i++) {
		if (!owner_of(c, i))
			continue;
		/* relaxed: counts, which order nothing */
		stats->lost_full += __atomic_load_n(&c->thread[i].lost_full, __ATOMIC_RELAXED);
		stats->lost_closed += __atomic_load_n(&c->thread[i].lost_closed, __ATOMIC_RELAXED);
		stats->lost_real_time += __atomic_load_n(&c->thread[i].lost_real_time, __ATOMIC_RELAXED);
		stats->lost_stalled += __atomic_load_n(&c->thread[i].lost_stalled, __ATOMIC_RELAXED);
		stats->wait_ns += __atomic_load_n(&c->thread[i].wait_ns, __ATOMIC_RELAXED);
	}
	stats->lost_threads = processes_lost_threads(c);
}

void threads_mark_processes(struct ptt_collector *c)
{
	memset(c->process_used, 0, c->head.process_count * sizeof(*c->process_used));
	for (uint32_t i = 0; i < threads_high(c); i++) {
		uint32_t owner = owner_of(c, i);

		if (owner && owner <= c->head.process_count)
			c->process_used[owner - 1] = 1;
	}
}

int threads_list(const struct ptt_collector *c, struct ptt_collector_thread *threads, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < threads_high(c) && n < count; i++) {
		const struct ptt_thread *t = &c->thread[i];

		/* acquire: pairs with the release of LIVE; the entry is filled in */
		if (!owner_of(c, i) || __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) != PTT_THREAD_LIVE)
			continue;
		threads[n++] = (struct ptt_collector_thread){t->pid, t->tid, t->process, i, t->serial};
	}
	return (int)n;
}
