/* SPDX-License-Identifier: MIT */
/* grow.c - brings the pages of the segment that nobody needs yet, as they come to be needed. */
/*
 * To reserve 64 MiB and to give them back takes as long as all the rest of a short recording, and most recordings never
 * have so much in their buffers. So the first chunks are there from the beginning, and the others are ABSENT. A thread makes
 * them FREE step by step: some while the program is being loaded, and as many again as there are whenever half of them are
 * taken. It looks for that itself, as a writer that finds no room has to make a system call. Should the file system fill up
 * in the meantime, the rest stays absent: less room, and nothing else.
 *
 * LOOP and UNTIL_FULL promise a certain amount of events, and have all chunks from the beginning. Where threads do not wait
 * for room, or more was asked for than usual, all of them come at once.
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

/* How often the thread looks: while chunks are being taken, and otherwise. */
#define LOOK_NS 4000000
#define LOOK_SELDOM_NS 32000000

/* grow_word: how many chunks there shall be, or this */
#define GROW_STOP UINT32_MAX

static uint64_t chunk_begin(const struct ptt_segment *seg, uint32_t index)
{
	return seg->chunk_offset + (uint64_t)index * seg->chunk_size;
}

/* grow_first_count - how many chunks are in the first part; the reserve comes next. */
uint32_t grow_first_count(const struct ptt_segment *seg)
{
	uint64_t count = FIRST_PART / seg->chunk_size, most = seg->chunk_count - seg->chunk_reserve;

	return (uint32_t)(count < most ? count : most);
}

/* Return: index of the first chunk that is not in the first part. */
static uint32_t first_absent(const struct ptt_segment *seg)
{
	uint64_t count = FIRST_PART / seg->chunk_size;

	if (seg->shared_offset || seg->policy != PTT_POLICY_FLUSH || count >= seg->chunk_count)
		return seg->chunk_count;
	return (uint32_t)count;
}

/* grow_first_part - Return: bytes of the segment that have to be there before anyone maps it. */
uint64_t grow_first_part(const struct ptt_segment *seg)
{
	uint32_t absent = first_absent(seg);

	return absent < seg->chunk_count ? chunk_begin(seg, absent) : seg->size;
}

static uint32_t there(const struct ptt_collector *c)
{
	/* relaxed: only the growing thread writes it; to others it is a hint of how many there are */
	return __atomic_load_n(&c->there, __ATOMIC_RELAXED);
}

/* Return: false if there is no room for chunks up to @end. */
static bool bring(struct ptt_collector *c, uint32_t end)
{
	const struct ptt_segment *seg = &c->head;
	uint32_t begin = there(c), i;

	if (posix_fallocate(c->grow_fd, (off_t)chunk_begin(seg, begin), (off_t)(end - begin) * seg->chunk_size))
		return false;
	/* release: pairs with the claim; the pages are there */
	for (i = begin; i < end; i++)
		__atomic_store_n(&c->chunk_state[i], PTT_CHUNK_FREE, __ATOMIC_RELEASE);
	__atomic_store_n(&c->there, end, __ATOMIC_RELAXED);
	__atomic_store_n(&c->segment->chunks_there, end, __ATOMIC_RELEASE); /* where writers look for them */
	wake_writers(c, end - begin);
	return true;
}

/* Of the chunks for all threads. */
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

/* Have @wanted chunks. */
static void want(struct ptt_collector *c, uint32_t wanted)
{
	/* relaxed: the word is all that this thread and the growing one exchange */
	uint32_t before = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

	while (before < wanted && !__atomic_compare_exchange_n(&c->grow_word, &before, wanted, true, __ATOMIC_RELAXED,
							       __ATOMIC_RELAXED))
		;
}

/* Have twice as many chunks as there are. */
static void want_more(struct ptt_collector *c)
{
	uint32_t count = c->head.chunk_count;

	want(c, there(c) < count / 2 ? there(c) * 2 : count);
}

/* There are as many chunks as are wanted: sleep until there shall be more. */
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

	/* relaxed: for grow_to_the_end() */
	__atomic_store_n(&c->grower_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	while (there(c) < count) {
		/* relaxed: pairs with want_more() and grow_stop(), which hand over nothing but the word */
		uint32_t wanted = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

		if (wanted == GROW_STOP)
			break;
		if (there(c) >= wanted) {
			wait_for_need(c, wanted);
			continue;
		}
		if (!bring(c, count - there(c) > step ? there(c) + step : count))
			__atomic_store_n(&c->grow_word, GROW_STOP, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * grow_begin - bring more of the segment beside everything else
 * @fd: of the segment; is closed when it is not needed any more
 * Return: 0; what cannot be brought is not missed.
 */
int grow_begin(struct ptt_collector *c, int fd)
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
	return 0;
}

static void wake_grower(struct ptt_collector *c)
{
	syscall(SYS_futex, &c->grow_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* grow_is_on - will there be more chunks in a moment? */
bool grow_is_on(const struct ptt_collector *c)
{
	uint32_t wanted = __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED);

	return c->grows && wanted != GROW_STOP && there(c) < wanted;
}

/* grow_more - half of the chunks that are there are taken: have twice as many, now */
void grow_more(struct ptt_collector *c)
{
	if (!c->grows || grow_is_on(c))
		return;
	want_more(c);
	if (grow_is_on(c))
		wake_grower(c);
}

/* grow_to_the_end - have all chunks as soon as can be */
void grow_to_the_end(struct ptt_collector *c)
{
	/* there is no such thread any more once all is there */
	if (!c->grows || there(c) >= c->head.chunk_count)
		return;
	/* relaxed: set before there was anything to bring */
	be_prompt(c, __atomic_load_n(&c->grower_tid, __ATOMIC_RELAXED));
	want(c, c->head.chunk_count);
	wake_grower(c);
}

/* grow_stop - nobody writes any more: the thread ends beside what the recorder still has to do */
void grow_stop(struct ptt_collector *c)
{
	if (!c->grows)
		return;
	__atomic_store_n(&c->grow_word, GROW_STOP, __ATOMIC_RELAXED);
	wake_grower(c);
}

/* grow_end - the segment is not needed any more */
void grow_end(struct ptt_collector *c)
{
	if (!c->grows)
		return;
	grow_stop(c);
	pthread_join(c->grower, NULL);
	close(c->grow_fd);
	c->grows = false;
}
