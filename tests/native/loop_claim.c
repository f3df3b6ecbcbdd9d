/* SPDX-License-Identifier: MIT */
/* loop_claim.c - LOOP: no writer takes over a full chunk that becomes another thread's while the writer checks that it is whole. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "collector.h"
#include "session_directory.h"
#include "writer/session.h"
#include "writer/writer.h"

#define ID (2u << 6 | 3u) /* any event of one slot */
#define CHUNKS 16u

static char session[] = "/tmp/loop-claim-XXXXXX";
static struct ptt_segment *seg;
static uint32_t trapped;
static volatile sig_atomic_t sprung;

static void die(const char *what)
{
	fprintf(stderr, "loop_claim: %s (errno %d)\n", what, errno);
	exit(1);
}

static char *chunk_of(uint32_t index)
{
	return (char *)seg + seg->chunk_offset + (uint64_t)index * seg->chunk_size;
}

/* The part that the writer has not checked yet. */
static char *second_half(void)
{
	return chunk_of(trapped) + seg->chunk_size / 2;
}

/* The writer has reached the second half: the chunk returns, full, from another thread, with a hole in the first half. */
static void spring(int number, siginfo_t *info, void *context)
{
	struct ptt_slot *slot = (struct ptt_slot *)(chunk_of(trapped) + PTT_CHUNK_HEAD);
	char *at = info->si_addr;

	(void)number, (void)context;
	if (sprung || at < second_half() || at >= second_half() + seg->chunk_size / 2)
		_exit(3);
	sprung = 1;
	mprotect(second_half(), seg->chunk_size / 2, PROT_READ | PROT_WRITE);
	slot[1].w0 = 0;
	ptt_chunk_states(seg)[trapped] = PTT_CHUNK_STATE(7, 1, PTT_CHUNK_FULL);
}

static uint32_t current(void)
{
	return ptt_chunk_index(seg, ptt_local_load(&ptt_ring_self->head) - 1);
}

/* Write until the thread has another chunk. */
static void fill(void)
{
	uint32_t before = current();

	while (current() == before)
		ptt_ring_put1(ptt_ring_self, ID, 1, false);
}

static void check(void)
{
	struct sigaction action = {.sa_sigaction = spring, .sa_flags = SA_SIGINFO};

	ptt_ring_put1(ptt_ring_self, ID, 1, false);
	/* until chunks are taken over */
	while (!seg->overwritten)
		fill();
	trapped = seg->chunk_hand % seg->chunk_count;
	sigaction(SIGSEGV, &action, NULL);
	if (mprotect(second_half(), seg->chunk_size / 2, PROT_NONE))
		die("mprotect");
	fill();
	if (!sprung)
		die("the oldest chunk was not looked at");
	if (current() == trapped)
		die("a chunk with a hole was taken over");
}

int main(void)
{
	struct ptt_collector_options options = {.policy = PTT_POLICY_LOOP, .chunk_size = 8192, .budget = CHUNKS * 8192};
	char trace[sizeof(session) + 8], segment[sizeof(session) + 16];
	struct ptt_collector *collector;
	struct ptt_message message;

	if (!mkdtemp(session))
		die("mkdtemp");
	snprintf(trace, sizeof(trace), "%s/trace", session);
	snprintf(segment, sizeof(segment), "%s/segment", session);
	mkdir(trace, 0700);
	options.segment = segment;
	options.trace = trace;
	if (ptt_collector_create(&options, &collector, &message)) {
		fprintf(stderr, "%s\n", message.text);
		return 1;
	}
	seg = collector->segment;
	if (ptt_ring_attach_mapped(seg, session))
		die("attach");
	check();
	ptt_ring_detach();
	ptt_collector_destroy(collector);
	rmdir(trace);
	remove_session(session);
	return 0;
}
