/* SPDX-License-Identifier: MIT */
/* retired.c - memory of former sessions: unmapped once no thread can come back to it. */
#include "session.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../platform/raw_syscall.h"

/* With more users or segments than this, segments stay mapped for ever. */
#define USERS_MAX 4096u
#define SEGMENTS_MAX 64u

/* By entry: threads that had an entry in the session when the process left it, and late threads, which took an entry since then. */
static uint32_t users[USERS_MAX], late[USERS_MAX];
static uint32_t user_count;

/* In order of time. */
static struct {
	struct ptt_segment *segment;
	bool unused; /* no thread used it at the last look */
} retired[SEGMENTS_MAX];
static uint32_t retired_count;

static uint32_t entries_in_use(const struct ptt_segment *segment)
{
	/* relaxed: a late thread is found the next time */
	uint32_t high = __atomic_load_n(&segment->thread_high, __ATOMIC_RELAXED);

	return high < segment->thread_count ? high : segment->thread_count;
}

static uint32_t note(struct ptt_segment *segment, uint32_t *tids)
{
	uint32_t count = entries_in_use(segment);

	for (uint32_t i = 0; i < count && i < USERS_MAX; i++)
		tids[i] = ptt_threads(segment)[i].pid == ptt_session.pid ? ptt_threads(segment)[i].tid : 0;
	return count;
}

void ptt_retired_note(struct ptt_segment *segment)
{
	user_count = note(segment, users);
}

/* Keep the thread ids in the entries of the former segment. A thread that comes even later writes its own id there. */
static void keep_users(struct ptt_segment *segment, uint32_t late_count)
{
	for (uint32_t i = 0; i < user_count; i++)
		if (users[i])
			ptt_threads(segment)[i].pad = users[i];
	for (uint32_t i = 0; i < late_count; i++)
		if (late[i])
			ptt_threads(segment)[i].tid = late[i];
}

static bool lives(uint32_t tid)
{
	return ptt_raw_syscall(SYS_tgkill, ptt_session.pid, tid, 0, 0, 0, 0) == 0;
}

static bool is_in(struct ptt_segment *segment, uint32_t tid)
{
	uint32_t count = entries_in_use(segment);

	for (uint32_t i = 0; i < count; i++)
		if (ptt_threads(segment)[i].tid == tid || ptt_threads(segment)[i].pad == tid)
			return true;
	return false;
}

static bool is_in_later(uint32_t number, uint32_t tid)
{
	for (uint32_t i = number + 1; i < retired_count; i++)
		if (is_in(retired[i].segment, tid))
			return true;
	return false;
}

static bool is_used(uint32_t number)
{
	struct ptt_segment *segment = retired[number].segment;
	uint32_t count = entries_in_use(segment);

	for (uint32_t i = 0; i < count; i++) {
		const struct ptt_thread *entry = &ptt_threads(segment)[i];

		if (entry->tid && lives(entry->tid) && !is_in_later(number, entry->tid))
			return true;
		if (entry->pad && lives(entry->pad) && !is_in_later(number, entry->pad))
			return true;
	}
	return false;
}

static void release(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < retired_count; i++) {
		bool unused = !is_used(i), release = unused && retired[i].unused;

		retired[i].unused = unused;
		if (release)
			munmap(retired[i].segment, retired[i].segment->size);
		retired[i].segment = release ? NULL : retired[i].segment;
	}
	for (uint32_t i = 0; i < retired_count; i++)
		if (retired[i].segment)
			retired[kept++] = retired[i];
	retired_count = kept;
}

bool ptt_retired_add(struct ptt_segment *segment)
{
	/* in the child of a fork these ids belong to threads of the parent */
	bool ours = (uint32_t)getpid() == ptt_session.pid;
	uint32_t late_count = note(segment, late);

	if (!ptt_segment_retire(segment))
		return false;
	if (!ours)
		retired_count = 0;
	else if (user_count <= USERS_MAX && late_count <= USERS_MAX && retired_count < SEGMENTS_MAX) {
		keep_users(segment, late_count);
		retired[retired_count].segment = segment;
		retired[retired_count++].unused = false;
	}
	release();
	return true;
}
