/* SPDX-License-Identifier: MIT */
/* site_journal.c - more call sites than the journal holds: sites without room are counted, and announced later. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "collector.h"
#include "session_directory.h"
#include "writer/writer.h"
#include "origin/site.h"

#define THREADS 4u
#define SITES 20000u /* of all threads, which see the same sites; the journal has room for 16384 */
#define FIRST UINT64_C(0x400000)

static char session[] = "/tmp/site-journal-XXXXXX";
static uint64_t told[PTT_SITE_COUNT]; /* by id */
static uint32_t taken;

static void die(const char *what)
{
	fprintf(stderr, "site_journal: %s (errno %d)\n", what, errno);
	exit(1);
}

static void *see_sites(void *number)
{
	uint64_t i, at = (uint64_t)(uintptr_t)number * (SITES / THREADS);

	for (i = 0; i < SITES; i++)
		ptt_ring_site(FIRST + 16 * ((at + i) % SITES));
	return NULL;
}

static void take_sites(struct ptt_collector *collector)
{
	struct ptt_site sites[256];
	int i, n;

	while ((n = ptt_collector_sites(collector, sites, 256)) > 0) {
		for (i = 0; i < n; i++) {
			if (sites[i].address == PTT_SITE_VOID)
				continue;
			if (sites[i].process != 0 || sites[i].id >= PTT_SITE_COUNT || told[sites[i].id])
				die("a site that is none, or told twice");
			told[sites[i].id] = sites[i].address;
			taken++;
		}
		ptt_collector_sites_taken(collector, (uint32_t)n);
	}
}

int main(void)
{
	struct ptt_collector_options options = {.chunk_size = 8192, .budget = 16 * 8192};
	char segment[sizeof(session) + 16];
	struct ptt_collector_stats stats = {0};
	struct ptt_collector *collector;
	struct ptt_message message;
	pthread_t thread[THREADS];
	uint32_t round, i;
	uint64_t site;

	if (!mkdtemp(session))
		return 2;
	snprintf(segment, sizeof(segment), "%s/segment", session);
	options.segment = segment;
	options.trace = session;
	if (ptt_collector_create(&options, &collector, &message) ||
	    ptt_ring_attach_mapped(collector->segment, session))
		die("attach");
	/* in the first round no thread takes sites out, so the journal overflows; in the second some take while others put */
	for (round = 0; round < 2; round++) {
		for (i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, see_sites, (void *)(uintptr_t)i);
		for (i = 0; round && i < 1000; i++)
			take_sites(collector);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		ptt_collector_pass(collector, 0, &stats);
		if (!round && !stats.lost_sites)
			die("an overflow that nobody noticed");
		take_sites(collector);
	}
	see_sites(NULL);
	take_sites(collector);
	if (taken != SITES)
		die("sites are missing");
	for (site = FIRST; site < FIRST + 16 * SITES; site += 16)
		if (told[ptt_ring_site(site)] != site)
			die("a site of another name");
	ptt_ring_detach();
	ptt_collector_close(collector);
	ptt_collector_finish(collector, NULL);
	ptt_collector_destroy(collector);
	remove_session(session);
	printf("%u sites, each told once\n", taken);
	return 0;
}
