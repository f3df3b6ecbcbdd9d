/* SPDX-License-Identifier: MIT */
/* grow.c - brings the pages of the segment that nobody needs yet, while the program starts. */
/*
 * To reserve 64 MiB and to give them back takes as long as all the rest of a short recording. So the first chunks are
 * there from the beginning, the others are ABSENT, and a thread makes them FREE step by step: some while the program is
 * being loaded, the rest after a moment, or as soon as half of what is there is taken. Should the file system fill up in
 * the meantime, the rest stays absent: less room, and nothing else.
 *
 * LOOP and UNTIL_FULL promise a certain amount of events, and have all chunks from the beginning.
 */
#include "internal.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PART (UINT64_C(2) << 20)
#define SECOND_PART (UINT64_C(14) << 20)
#define STEP (UINT64_C(2) << 20)

/* grow_word; a program that runs no longer than the delay, and writes little, never needs the rest */
#define GROW_LATER 0u
#define GROW_NOW 1u
#define GROW_STOP 2u
static const struct timespec delay = {.tv_nsec = 15 * 1000 * 1000};

static uint64_t chunk_begin(const struct ptt_segment *seg, uint32_t index)
{
	return seg->chunk_offset + (uint64_t)index * seg->chunk_size;
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

static void *grow(void *collector)
{
	struct ptt_collector *c = collector;
	const struct ptt_segment *seg = c->segment;
	uint32_t i = first_absent(seg), step = (uint32_t)(STEP / seg->chunk_size), end;
	uint32_t later = i + (uint32_t)(SECOND_PART / seg->chunk_size);

	while (i < seg->chunk_count && __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED) != GROW_STOP) {
		uint32_t begin = i;

		if (i >= later && c->grows) {
			syscall(SYS_futex, &c->grow_word, FUTEX_WAIT_PRIVATE, GROW_LATER, &delay, NULL, 0);
			later = seg->chunk_count;
			continue;
		}
		end = seg->chunk_count - i > step ? i + step : seg->chunk_count;
		if (posix_fallocate(c->grow_fd, (off_t)chunk_begin(seg, i), (off_t)(end - i) * seg->chunk_size))
			break;
		/* release: pairs with the claim; the pages are there */
		for (; i < end; i++)
			__atomic_store_n(&c->chunk_state[i], PTT_CHUNK_FREE, __ATOMIC_RELEASE);
		wake_writers(c, end - begin);
	}
	return NULL;
}

/*
 * grow_begin - bring the rest of the segment beside everything else
 * @fd: of the segment; is closed when it is not needed any more
 * Return: 0; what cannot be brought is not missed.
 */
int grow_begin(struct ptt_collector *c, int fd)
{
	const struct ptt_segment *seg = c->segment;
	sigset_t all, before;

	c->grow_fd = fd;
	c->chunk_state = (void *)(c->base + seg->chunk_state_offset);
	for (uint32_t i = first_absent(seg); i < seg->chunk_count; i++)
		c->chunk_state[i] = PTT_CHUNK_ABSENT;
	if (first_absent(seg) < seg->chunk_count) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		c->grows = true;
		if (pthread_create(&c->grower, NULL, grow, c)) {
			c->grows = false;
			grow(c);
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!c->grows)
		close(fd);
	return 0;
}

static void tell(struct ptt_collector *c, uint32_t word)
{
	__atomic_store_n(&c->grow_word, word, __ATOMIC_RELAXED);
	syscall(SYS_futex, &c->grow_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* grow_now - chunks are being taken: do not wait any longer */
void grow_now(struct ptt_collector *c)
{
	if (c->grows && __atomic_load_n(&c->grow_word, __ATOMIC_RELAXED) == GROW_LATER)
		tell(c, GROW_NOW);
}

/* grow_end - the segment is not needed any more */
void grow_end(struct ptt_collector *c)
{
	if (!c->grows)
		return;
	tell(c, GROW_STOP);
	pthread_join(c->grower, NULL);
	close(c->grow_fd);
	c->grows = false;
}
