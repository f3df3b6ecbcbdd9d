/* SPDX-License-Identifier: MIT */
/* grow.c - adds pages to the segment while the program runs, before threads need them. */
/*
 * To reserve and free 64 MiB takes as long as the rest of a short recording, and most recordings never fill so much. So only
 * the first chunks exist from the beginning, and the others are ABSENT. A thread of the collector makes ABSENT chunks FREE step
 * by step. It adds some chunks while the program is being loaded, and doubles the number of chunks whenever half of them are
 * taken. The thread polls the number, because a writer without room would need a system call. If the file system fills up
 * meanwhile, the rest of the chunks stays ABSENT: there is less room, and nothing else changes.
 *
 * LOOP and UNTIL_FULL promise room for a certain amount of events, so all their chunks exist from the beginning. If threads
 * do not wait for room, or the budget is larger than usual, the thread adds all chunks at once.
 */
#include "collector.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_PART (UINT64_C(2) << 20)
#define SECOND_PART (UINT64_C(16) << 20)
#define STEP (UINT64_C(2) << 20)
#define USUAL_BUDGET (UINT64_C(64) << 20)

/* Periods of the thread: while threads take chunks, and at other times. */
#define LOOK_NS 4000000
#define LOOK_SELDOM_NS 32000000

/* grow_word: the wanted number of chunks, or this value */
#define GROW_STOP UINT32_MAX

static uint64_t chunk_begin(const struct ptt_segment *seg, uint32_t index)
{
	return seg->chunk_offset + (uint64_t)index * seg->chunk_size;
}

/* grow_first_count - number of chunks in the first part; the reserve comes next. */
uint32_t grow_first_count(const struct ptt_segment *seg)
{
	uint64_t count = FIRST_PART / seg->chunk_size, most = seg->chunk_count - seg->chunk_reserve;

	return (uint32_t)(count < most ? count : most);
}

/* Return: index of the first ABSENT chunk. */
static uint32_t first_absent(const struct ptt_segment *seg)
{
	uint64_t count = FIRST_PART / seg->chunk_size;

	if (seg->shared_offset || seg->policy != PTT_POLICY_FLUSH || count >= seg->chunk_count)
		return seg->chunk_count;
	return (uint32_t)count;
}

/* grow_first_part - bytes of the segment that must be reserved before anyone maps it. */
uint64_t grow_first_part(const struct ptt_segment *seg)
{
	uint32_t absent = first_absent(seg);

	return absent < seg->chunk_count ? chunk_begin(seg, absent) : seg->size;
}

static uint32_t there(const struct ptt_collector *c)
{
	/* relaxed: only the growing thread stores it; for other threads it is a hint */
	return __atomic_load_n(&c->there, __ATOMIC_RELAXED);
}

/* Add the chunks up to @end. Return: false if the file system has no room for them. */
static bool add_chunks(struct ptt_collector *c, uint32_t end)
{
	const struct ptt_segment *seg = &c->head;
	uint32_t begin = there(c), i;

	if (posix_fallocate(c->grow_fd, (off_t)chunk_begin(seg, begin), (off_t)(end - begin) * seg->chunk_size))
		return false;
	/* release: pairs with the claim of a writer, which finds the pages */
	for (i = begin; i < end; i++)
		__atomic_store_n(&c->chunk_state[i], PTT_CHUNK_FREE, __ATOMIC_RELEASE);
	__atomic_store_n(&c->there, end, __ATOMIC_RELAXED);
	__atomic_store_n(&c->segment->chunks_there, end, __ATOMIC_RELEASE); /* writers look for chunks below this */
	wake_writers(c, end - begin);
	return true;
}

/* The number of chunks that are not reserved for real-time threads. */
static uint32_t ordinary_there(const struct ptt_collector *c)
{
	uint32_t n = there(c), at = c->head.chunk_reserve_at, end = at + c->head.chunk_reserve;

	return n <= at ? n : n <= end ? at : n - c->head.chunk_reserve;
}

static uint32_t taken(const struct ptt_collector *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < there(c); i++)
		/* relaxed: an estimate; nothing is read from the chunks */
		n += !is_reserved(c, i) && __atomic_load_n(&c->chunk_state[i], __ATOMIC_RELAXED) != PTT_CHUNK_FREE;
	return n;
}

/* Ask for @wanted chunks. */
static void want(struct ptt_collector *c, uint32_t wanted)
{
	/* relaxed: this thread and the growing thread exchange only the word */
	uint32_t before = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

	while (before < wanted && !__atomic_compare_exchange_n(&c->grow_word, &before, wanted, true, __ATOMIC_RELAXED,
							       __ATOMIC_RELAXED))
		;
}

/* Ask for twice the present number of chunks. */
static void want_more(struct ptt_collector *c)
{
	uint32_t count = c->head.chunk_count;

	want(c, there(c) < count / 2 ? there(c) * 2 : count);
}

/* Sleep until more than @wanted chunks are wanted. */
static void wait_for_need(struct ptt_collector *c, uint32_t wanted)
{
	struct timespec period = {.tv_nsec = LOOK_NS};
	uint32_t n = 0, before;

	while (__atomic_load_n(&c->grow_word, __ATOMIC_RELAXED) == wanted) {
		before = n;
		n = taken(c);
		if (n > ordinary_there(c) / 2)
			want_more(c);
		if (n > before + there(c) / 64)
			period.tv_nsec = LOOK_NS;
		else if (period.tv_nsec < LOOK_SELDOM_NS)
			period.tv_nsec *= 2;
		syscall(SYS_futex, &c->grow_word, FUTEX_WAIT_PRIVATE, wanted, &period, NULL, 0);
	}
}

static void *grow(void *collector)
{
	struct ptt_collector *c = collector;
	uint32_t count = c->head.chunk_count, step = (uint32_t)(STEP / c->head.chunk_size);

	/* relaxed: pairs with grow_to_the_end(), which needs nothing else */
	__atomic_store_n(&c->grower_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	while (there(c) < count) {
		/* relaxed: pairs with want() and grow_stop(), which hand over only the word */
		uint32_t wanted = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

		if (wanted == GROW_STOP)
			break;
		if (there(c) >= wanted) {
			wait_for_need(c, wanted);
			continue;
		}
		if (!add_chunks(c, count - there(c) > step ? there(c) + step : count))
			__atomic_store_n(&c->grow_word, GROW_STOP, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * grow_begin - mark the ABSENT chunks, and start the thread that adds them
 * @fd: the segment; this file closes it when it is not needed any more
 */
void grow_begin(struct ptt_collector *c, int fd)
{
	const struct ptt_segment *seg = &c->head;
	sigset_t all, before;

	c->grow_fd = fd;
	c->chunk_state = (void *)(c->base + seg->chunk_state_offset);
	c->there = c->segment->chunks_there = first_absent(seg);
	for (uint32_t i = first_absent(seg); i < seg->chunk_count; i++)
		c->chunk_state[i] = PTT_CHUNK_ABSENT;
	if (first_absent(seg) < seg->chunk_count) {
		c->grow_word = first_absent(seg) + (uint32_t)(SECOND_PART / seg->chunk_size);
		if (c->grow_word > seg->chunk_count || seg->when_full == PTT_WHEN_FULL_DROP ||
		    seg->size > USUAL_BUDGET * 9 / 8)
			c->grow_word = seg->chunk_count;
		sigfillset(&all);
		sigdelset(&all, SIGBUS); /* see truncation.h */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		c->grows = true;
		if (pthread_create(&c->grower, NULL, grow, c)) {
			c->grows = false;
			c->grow_word = seg->chunk_count;
			grow(c);
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!c->grows)
		close(fd);
}

static void wake_grower(struct ptt_collector *c)
{
	syscall(SYS_futex, &c->grow_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* grow_is_on - is the thread adding chunks now? */
bool grow_is_on(const struct ptt_collector *c)
{
	uint32_t wanted = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

	return c->grows && wanted != GROW_STOP && there(c) < wanted;
}

/* grow_more - half of the chunks are taken: double their number now */
void grow_more(struct ptt_collector *c)
{
	if (!c->grows || grow_is_on(c))
		return;
	want_more(c);
	if (grow_is_on(c))
		wake_grower(c);
}

/* grow_to_the_end - add all chunks as soon as possible */
void grow_to_the_end(struct ptt_collector *c)
{
	/* the thread ends once all chunks exist */
	if (!c->grows || there(c) >= c->head.chunk_count)
		return;
	/* relaxed: stored before the thread added the first chunk */
	be_prompt(c, __atomic_load_n(&c->grower_tid, __ATOMIC_RELAXED));
	want(c, c->head.chunk_count);
	wake_grower(c);
}

/* grow_stop - no thread writes any more: let the thread end while the recorder does other work */
void grow_stop(struct ptt_collector *c)
{
	if (!c->grows)
		return;
	__atomic_store_n(&c->grow_word, GROW_STOP, __ATOMIC_RELAXED);
	wake_grower(c);
}

/* grow_end - wait for the end of the thread, and close the file */
void grow_end(struct ptt_collector *c)
{
	if (!c->grows)
		return;
	grow_stop(c);
	pthread_join(c->grower, NULL);
	close(c->grow_fd);
	c->grows = false;
}
